/**
 * Starts the engine: finds out the workspace, brings the rows into a state that can be served, and starts the loops. A
 * state dir that knows its workspace starts without the gateway.
 */
import type { Client } from "../../client/client.ts";
import { openDirtyLog } from "../../content/dirty-log.ts";
import type { Layout } from "../../content/layout.ts";
import type { StateDisk } from "../../content/state-disk.ts";
import { type Scope, UPLOAD_SCOPES } from "../../contract/scopes.ts";
import type { Logger } from "../../lib/log.ts";
import type { Runtime } from "../../lib/runtime.ts";
import { type Connection, onDamage, onDiskFailure } from "../../metadata/database.ts";
import { createMetadata, type Metadata } from "../../metadata/metadata.ts";
import {
  type Accounts,
  type Engine,
  type EngineCondition,
  type EngineStatus,
  type FastPath,
  type HandleTable,
  type KernelCache,
  type Passthrough,
  StartError,
} from "../api/index.ts";
import { type EngineSettings, type Host, type Kernel, parseRequest, type Remote, type Request } from "../core/index.ts";
import { createBacklog } from "../files/index.ts";
import { HISTORY_FOLDER, historyFolderName, withHistory } from "../history/index.ts";
import {
  createActivity,
  createDisk,
  createFreshness,
  createNetwork,
  createReadOnly,
  createRowClock,
  type Disk,
  type DiskLimits,
} from "../host/index.ts";
import {
  createFileSystem,
  createNameDropping,
  createTreePrefetch,
  drain,
  listQueue,
  pausedKinds,
  retryNow,
} from "../ops/index.ts";
import { createFollower, createJournalStream, createReplays, withReplays } from "../remote/index.ts";
import { createQuota } from "../sync/index.ts";
import { createWriteBack, type Outgoing } from "../upload/index.ts";
import { createParts, type Parts } from "./parts.ts";
import { recoverOpenFiles } from "./recover.ts";
import type { Resumed } from "./resume.ts";
import type { RetryBudget } from "./retry-at-start.ts";
import { type View, WHOLE } from "./view.ts";
import { findOut, goOn, hearLater, missingScopes } from "./which-workspace.ts";

const WRITE_SCOPES = [...new Set<Scope>([...UPLOAD_SCOPES, "node.node.update"])];

export interface EngineOptions {
  readonly runtime: Runtime;
  readonly client: Client;
  readonly log: Logger;
  readonly paths: Layout;
  readonly database: Connection;
  /** Makes committed rows durable. */
  readonly syncRows: () => Promise<void>;
  readonly settings: EngineSettings;
  /** Absent: this machine has no accounts. */
  readonly accounts?: Accounts;
  /** Name or id of the workspace. */
  readonly workspace: string;
  /** The part of the workspace to show. Absent: all of it, as it is now. */
  readonly view?: View;
  /** The scopes that the token names. Undefined: the token names none. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The time to wait for a gateway that fails, if the state dir does not know the workspace yet. Default: a moment. */
  readonly patience?: RetryBudget;
  /** Called when the database turns out to be damaged. */
  readonly onDamage?: (error: unknown) => void;
  /** Absent: the kernel cannot be told of changes. */
  readonly kernelCache?: KernelCache;
  /** Absent: no passthrough. */
  readonly passthrough?: Passthrough;
  /** Absent: no fast path. */
  readonly fastPath?: FastPath | undefined;
  /** The mount that the requests belong to, and its state that this daemon takes over. Absent: a mount of its own. */
  readonly mount?: { readonly id: string; readonly resumed?: Resumed };
  /** Absent: open handles end with this process. */
  readonly handleTable?: HandleTable;
  /** Absent: the disk is not watched. */
  readonly stateDisk?: StateDisk;
  readonly limits?: DiskLimits;
  /** Work in the background begins when this resolves. Absent: at once. */
  readonly inUse?: Promise<unknown>;
}

/** The engine with the state behind it, so that tests can check its invariants. */
interface StartedEngine extends Engine {
  readonly context: Parts;
}

/**
 * Rejects with a StartError, in words for a person, if the mount must not start. Rejects with the error itself if the
 * disk, the database or a recovery step fails.
 */
export async function startEngine(options: EngineOptions): Promise<StartedEngine> {
  const { client, log, paths, settings, scopes, view = WHOLE } = options;
  const metadata = createMetadata<Request>(options.database, parseRequest);
  const time = createRowClock(options.runtime, metadata, settings.boot);
  const { runtime } = time;
  const activity = createActivity();
  /** Undefined: the parts are not put together yet. */
  let running: Parts | undefined;
  let stream: ReturnType<typeof createJournalStream> | undefined;
  const disk = createDisk({
    stateDisk: options.stateDisk,
    limits: options.limits,
    folder: paths.root,
    log,
    onChange() {
      // The reserve for the rows may be given up in this turn: no write on the fast path must take its room.
      running?.cacheFiles.revokeWriteLeases();
      activity.wake();
      activity.progressed();
      if (disk.trouble === "gone" && running !== undefined) running.cacheFiles.keepOpenForUpload();
    },
  });
  onDiskFailure(options.database, (error) => disk.commitFailed(error));
  onDamage(options.database, (error) => {
    if (disk.trouble !== "damaged") options.onDamage?.(error);
    disk.isDamaged(error);
  });
  const dirtyLog = await openDirtyLog(runtime.files, paths.dirtyLog, log);
  const start =
    (options.mount?.resumed === undefined ? undefined : goOn(metadata, client)) ??
    (await findOut(metadata, runtime, client, options.workspace, view, scopes, log, options.patience));
  const readOnly = createReadOnly(start.workspace, {
    isAskedFor: settings.readOnly,
    lack: lackOf(scopes),
    isRootDeleted() {
      const seen = metadata.nodes.ofNodeId(start.workspace.rootId)?.seen;
      return seen != null && "deleted" in seen;
    },
    onChange(isForRole) {
      log.warn({ why: readOnly.why }, isForRole ? "nothing can be changed or sent" : "the role for changes was given");
      if (isForRole) running?.quota.lookLater();
      else {
        activity.expedite();
        stream?.renew();
      }
      activity.wake();
      activity.progressed();
    },
  });
  const network = createNetwork(runtime, {
    scopes,
    isOnline: start.trouble === undefined,
    onLacksRole: readOnly.refused,
    onChange: (what) => {
      if (what !== "state") readOnly.tokenChanged(lackOf(network.scopes));
      if (what !== "state") activity.expedite();
      // Answers to the earlier token prove nothing about the new one. Until there is a stream with the new token, pages
      // of the journal prove it.
      if (what === "token") stream?.renew();
      if (network.loginNeeded !== undefined) running?.fresh.lost(network.loginNeeded);
      activity.wake();
      activity.progressed();
    },
  });
  network.failed(start.trouble);
  const context: Parts = createParts({
    ...{ metadata, runtime, client, log, paths, settings, disk, dirtyLog, readOnly, network, activity },
    workspace: start.workspace,
    fresh: createFreshness(options.runtime),
    accounts: options.accounts,
    handleTable: options.handleTable,
    kernelCache: options.kernelCache,
    passthrough: options.passthrough,
    fastPath: options.fastPath,
    replays: () => replays,
    quota: () => quota,
    async syncRows() {
      await Promise.all([options.syncRows(), dirtyLog.sync()]);
    },
  });
  running = context;
  const replays = createReplays(context);
  metadata.changed.onTell((changed) => {
    try {
      context.kernel.invalidate(changed);
      replays.note(changed);
    } catch (error) {
      // The change is committed all the same.
      log.error({ err: error }, "the changes could not be read for the kernel, which asks for everything again");
      context.kernel.expireAll();
    }
  });
  const { fresh } = context;
  runtime.step("start: workspace known");
  const quota = createQuota(context, start.workspace, network.isOnline && start.asked === undefined);
  if (start.asked !== undefined) {
    network.doubts(`the gateway has not said yet whether it has workspace "${start.workspace.name}"`);
    void hearLater(context, start.asked);
  }
  await disk.restore();
  const resumed = beginMount(metadata, options.mount);
  if (resumed === undefined) metadata.transaction(() => metadata.past.forgetAll());
  if (resumed !== undefined) context.kernel.negativeUnknown();
  const { restored, sweep } = await recoverOpenFiles(context, resumed);
  runtime.step("start: recovered");
  metadata.settings.set("boot", settings.boot);
  // From here on bytes may be newer than the rows that power loss would leave.
  await context.syncRows();
  time.keep();
  context.shown.positionsNotAhead();
  metadata.rereads.add(start.workspace.rootId);

  const writeBack = createWriteBack(context);
  const backlog = createBacklog(context, metadata.nodes.pendingBytes);
  stream = client.features.isFull && view.at === undefined ? createJournalStream(context) : undefined;
  // Without a journal stream, no flow would recover from a rollback.
  if (stream === undefined && context.timeline.isRolledBack()) context.timeline.forget();
  const follower = createFollower(context, stream);
  fresh.onEnd(() => {
    log.info({}, "the journal is not live any more: the kernel asks for everything again");
    stream?.renew();
    context.kernel.expireAll();
  });
  const treePrefetch = createTreePrefetch(context);
  const nameDropping = createNameDropping(context);
  if (options.stateDisk !== undefined) context.space.start();
  // A mount of the past needs no loops: nothing changes there, and nothing is sent.
  if (view.at === undefined) {
    context.background("sweeping the remains of an earlier mount", async () => {
      await options.inUse;
      await sweep?.().finally(() => writeBack.start());
    });
    if (sweep === undefined) writeBack.start();
    follower.start();
    stream?.start();
    fresh.start();
    quota.start();
    context.orphans.startProbe();
    context.background("reading the names of the workspace", async () => {
      await options.inUse;
      await Promise.all([treePrefetch.run(), nameDropping.run()]);
    });
  }
  const ofNow = withReplays(context, createFileSystem(context), replays);
  const fileSystem = withHistory(context, ofNow, {
    at: view.at,
    status: () => JSON.stringify(status(), null, 2).concat("\n"),
  });

  function condition(): EngineCondition {
    const pauseReason = network.isOnline ? context.pauses.reason()?.why : undefined;
    const paused = [
      ...(pauseReason === undefined || readOnly.why !== undefined ? [] : [pauseReason]),
      ...pausedKinds(context),
    ];
    return {
      workspace: { id: start.workspace.id, name: start.workspace.name },
      online: network.isOnline,
      ...(readOnly.why === undefined ? {} : { readOnly: readOnly.why }),
      ...(paused.length === 0 ? {} : { paused: paused.join("; ") }),
      ...(view.path === undefined ? {} : { folder: folder() }),
      ...(view.at === undefined ? {} : { at: view.at }),
    };
  }

  /** Only the folder's own name: the mount shows nothing above it. */
  function folder(): NonNullable<EngineStatus["folder"]> {
    const { rootId: id } = start.workspace;
    return { id, name: metadata.nodes.ofNodeId(id)?.base?.name ?? "" };
  }

  function status(): EngineStatus {
    const { dirty, parked, oldest } = metadata.nodes.counts();
    const written = metadata.settings.getNumber("written");
    const shown = Math.min(metadata.settings.getNumber("cursor"), metadata.settings.getNumber("indexed"));
    const { offlineSince } = network;
    const detached = context.detachedFiles.all();
    const history = historyFolderName(context);
    return {
      ...condition(),
      ...(view.at === undefined ? freshness(context) : { live: true }),
      ...(offlineSince === undefined ? {} : { offlineMs: runtime.ageOf(offlineSince) }),
      dirty,
      uploading: writeBack.inFlight().length,
      parked,
      bytesPending: backlog.bytes(),
      settled: dirty === 0 && (!client.features.isFull || (shown >= written && !context.shown.isAnyUnconfirmed())),
      ...(client.features.isFull ? { position: metadata.settings.getNumber("cursor") } : {}),
      ...(history === HISTORY_FOLDER ? {} : { history: history ?? null }),
      ...(detached.length === 0 ? {} : { overtaken: detached }),
      conflicts: activity.conflicts,
      names: { known: metadata.entries.count(), rest: view.at === undefined ? treePrefetch.rest() : "visited" },
      cacheBytes: metadata.cacheFiles.totalBytes(),
      cacheLimit: settings.cacheLimit,
      oldestPendingMs: oldest === null ? 0 : runtime.ageOf(oldest),
      ...(restored === undefined ? {} : { restored }),
      ...(quota.limit === undefined
        ? {}
        : { quota: { limit: quota.limit, used: quota.used, waiting: quota.waiting() } }),
      ...(options.stateDisk === undefined ? {} : { disk: diskStatus(disk) }),
    };
  }

  return {
    fileSystem,
    replays,
    context,
    owners: settings.owners,
    tokenChanged: (scopes) => context.network.tokenChanged(scopes),
    gatewayAnswered: () => context.network.isThere(),
    databaseDamaged: (damage) => context.disk.isDamaged(damage),
    measure: backlog.measure,
    expireKernelCache: () => context.kernel.expireAll(),
    condition,
    queue: (limit) => listQueue(context, writeBack.inFlight, limit),
    retry: (paths) => retryNow(context, paths),
    drain: (drainOptions) => drain(context, writeBack, backlog, drainOptions),
    status,
    async leave(quiet) {
      // With the durability "remote", a close waits for its upload, so write-back goes on until all calls have ended.
      // Otherwise no call waits for uploads.
      const isAwaited = settings.durability === "remote";
      if (isAwaited) await quiet();
      await writeBack.stop();
      if (!isAwaited) await quiet();
      context.orphans.stopProbe();
      nameDropping.stop();
      context.orphans.dropForgotten();
      await dirtyLog.flush();
    },
    async stop() {
      context.orphans.stopProbe();
      treePrefetch.stop();
      nameDropping.stop();
      context.space.stop();
      quota.stop();
      fresh.stop();
      await stream?.stop();
      await follower.stop();
      await writeBack.stop();
      const inWriting = context.cacheFiles.passthroughWritten();
      for (const handle of [...context.handles.keys()]) await fileSystem.release(handle);
      context.orphans.dropForgotten();
      await context.cacheFiles.stop();
      // The programs of these files may go on writing: a mapping outlives the mount, and a descriptor outlives a mount
      // that was only detached.
      for (const inode of inWriting) metadata.writers.begin(inode);
      runtime.step("stop: quiet");
      await context.cacheFiles.closeKept();
      try {
        context.detachedFiles.resolve();
        // All bytes are synced, by one call, before the rows say so.
        await runtime.files.syncDisk(paths.root);
        if (disk.trouble !== "damaged") metadata.transaction(() => metadata.settings.clear("boot"));
        await options.syncRows();
        metadata.checkpoint();
      } catch (error) {
        // The committed rows are in the log of the database. Only power loss could lose them now.
        log.error({ err: error }, "the rows could not be synced at the end");
      }
      runtime.step("stop: checkpoint made");
      metadata.close();
      await dirtyLog.close();
    },
  };
}

/** The reason why a mount with this token is read-only. Undefined: it is not. */
function lackOf(scopes: ReadonlySet<string> | undefined): string | undefined {
  const missing = missingScopes(scopes, WRITE_SCOPES);
  return missing.length === 0 ? undefined : `the token lacks ${missing.join(", ")}`;
}

/**
 * Returns the state that a takeover goes on with. Otherwise clears the request log, because it says nothing about the
 * requests of a new mount. Throws a StartError if another mount used the state dir before the takeover.
 */
function beginMount(
  { settings, done, transaction }: Metadata<Request>,
  mount: EngineOptions["mount"],
): Resumed | undefined {
  if (mount?.resumed !== undefined) {
    if (settings.get("mount") === mount.id) return mount.resumed;
    throw new StartError("the state dir was used by another mount meanwhile");
  }
  transaction(() => {
    done.clear();
    if (mount === undefined) settings.clear("mount");
    else settings.set("mount", mount.id);
  });
  return undefined;
}

/** As the kernel has it: when the journal ceases to be live, the kernel is made to ask for everything again. */
function freshness(context: Kernel & Remote & Host & Outgoing): Pick<EngineStatus, "live" | "staleMs" | "staleWhy"> {
  const { fresh, network, client, runtime } = context;
  const { stale } = fresh;
  if (stale === undefined) return { live: true };
  const known = client.features.isFull ? context.pauses.loginNeeded() : "the gateway has no journal";
  const staleWhy = known ?? (network.isOnline ? network.doubt : "the gateway does not answer") ?? stale.why;
  return { live: false, staleMs: Math.max(0, runtime.wallClock() - stale.since), staleWhy };
}

function diskStatus(disk: Disk): NonNullable<EngineStatus["disk"]> {
  const { trouble, reason, total, available, reserve, keepFree, unsentLimit } = disk;
  return {
    state: trouble ?? (disk.hasRows ? "ok" : "broken"),
    ...(reason === undefined ? {} : { reason }),
    total,
    available,
    reserve,
    keepFree,
    ...(unsentLimit === undefined ? {} : { unsentLimit }),
  };
}

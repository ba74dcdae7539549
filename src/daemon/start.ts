/**
 * A daemon's life: the one place where its long-lived objects are built, in order, and closed in reverse. This file
 * knows what each object needs of the others, and nothing of what they do.
 */

import { existsSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createClient } from "../client/create-client.ts";
import { type Credentials, tokenFile } from "../client/credentials.ts";
import { savedLogin } from "../client/login/saved-login.ts";
import { parseProfile } from "../client/profile.ts";
import { describeToken } from "../client/token-claims.ts";
import { createDiskFiles } from "../content/disk-files.ts";
import { createHashWorkers } from "../content/hash-workers.ts";
import { createLayout } from "../content/layout.ts";
import { createReserve } from "../content/reserve.ts";
import { createStateDisk, removeNow, spaceAt } from "../content/state-disk.ts";
import * as systemCalls from "../content/system-calls.ts";
import { mountName } from "../contract/mount-name.ts";
import { type Engine, type EngineCondition, OutdatedError, StartError } from "../engine/api/index.ts";
import { type EngineOptions, type EngineSettings, type RetryBudget, viewKey } from "../engine/start/index.ts";
import { openControl } from "../fuse/native.ts";
import { startCheckpoints } from "../lib/checkpoints.ts";
import { deferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/log.ts";
import { every } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import { checkpoint } from "../metadata/database.ts";
import { createDone } from "../metadata/request-log.ts";
import { createSettings } from "../metadata/settings.ts";
import { createAccounts } from "./accounts.ts";
import { chooseOwners } from "./choose-owners.ts";
import { chooseStateFolder, lockState } from "./choose-state-folder.ts";
import { startDatabaseBackups } from "./database-backups.ts";
import { detachMounts } from "./detach-mounts.ts";
import { deviceTransport } from "./device-transport.ts";
import { diskLimits, reserveSize } from "./disk-limits.ts";
import { openGatewayConnection } from "./gateway-connection.ts";
import { openHandleFile } from "./handle-file.ts";
import { bootId } from "./kernel.ts";
import { noteMount } from "./last-mounts.ts";
import { openLibrary } from "./library-transport.ts";
import type { DaemonLog } from "./log-file.ts";
import { noticeTokens, watchTokens } from "./notice-tokens.ts";
import { noteDamage, openMetadata } from "./open-metadata.ts";
import { openToCommands } from "./open-to-commands.ts";
import { identifyProcess } from "./processes.ts";
import { reportUnsent } from "./report-unsent.ts";
import { createRowSync } from "./row-sync.ts";
import { createRuntime } from "./runtime.ts";
import { type MountRecord, stateDirOf } from "./runtime-folder.ts";
import type { DaemonSettings, Reload, Restarts } from "./settings.ts";
import { DATABASE, ownerOtherThan, writeOwner } from "./state-folder.ts";
import { openSupervisorLink, type SupervisorLink } from "./supervisor-link.ts";
import { createSupervisorWatch } from "./supervisor-watch.ts";
import type { ServedMount, Serving } from "./transport.ts";
import { DRAIN_LIMIT_MS, requestLimitMs } from "./waiting.ts";
import { withTimeout } from "./with-timeout.ts";

/** The engine closes the database when it stops. */
export type StartEngine = (options: EngineOptions) => Promise<Engine>;

/**
 * Write-back waits this long for more changes of the same file. It is longer than the time between two steps of an
 * editor's save, and short enough for other mounts to show the change within a second.
 */
const DEBOUNCE_MS = 750;
/** The longest wait of write-back for more changes of the same file. */
const MAXIMUM_AGE_MS = 10_000;
const POLL_MS = 1000;
/**
 * The largest number of requests in flight; the loop finds out how many are of use. It is larger than the number of
 * connections (gateway-connection.ts): a connection that becomes free finds the next request there, however busy this
 * thread is.
 */
const REQUESTS = 48;
/** The file with the state of this mount that outlives the daemon. */
const HANDLE_TABLE = "handles";
const NOTHING_KEPT = "the state dir has no record of this mount, so no daemon can take it over";
/** The interval of heartbeats for the supervisor. */
const HEARTBEAT_INTERVAL_MS = 1000;

type Closer = () => unknown;

export interface DaemonOptions {
  readonly settings: DaemonSettings;
  readonly controlDescriptor: number;
  readonly startEngine: StartEngine;
  /** This daemon takes over the mount of daemons that died or gave way. Undefined: it is the first. */
  readonly restarts: Restarts | undefined;
  readonly reload: Reload | undefined;
  /** Behave as with a kernel that never resends requests. */
  readonly noResend: boolean;
  readonly log: DaemonLog;
  /** Applied to modes of new nodes that the gateway does not store. */
  readonly umask: number;
  /** Aborts on SIGTERM. */
  readonly signaled: AbortSignal;
}

/** Resolves with the exit code when everything is closed. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  const { controlDescriptor, log, signaled } = options;
  const closers: Closer[] = [];
  const takesOver = options.restarts !== undefined;
  const link = openSupervisorLink((onLine, onEnd) => openControl(controlDescriptor, onLine, onEnd), log, takesOver);
  closers.push(() => link.close());
  closers.push(every(systemClock, HEARTBEAT_INTERVAL_MS, () => link.heartbeat()).cancel);

  const stopped = Promise.race([link.ending, aborted(signaled)]);
  const started = start(options, link, closers);
  started.catch(() => {});
  let isHandedOver = false;
  try {
    const outcome = await Promise.race([started, stopped.then(() => undefined)]);
    if (outcome === undefined) {
      // The daemon was told to end while it starts. Unfinished work is left as after a crash.
      log.info({}, "told to end before the mount was usable");
      log.toFileOnly();
      return 0;
    }
    isHandedOver = (await serve(outcome, log, link, stopped)) && (await outcome.serving.handOver.tell(link));
    if (!isHandedOver) await reportUnsent(outcome.engine, log);
    return 0;
  } catch (error) {
    const exitCode = error instanceof StartError ? error.exitCode : 1;
    log.error({ err: error, told: true }, "the daemon cannot go on");
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof OutdatedError) link.outdated(text);
    else link.failed(exitCode, text);
    return exitCode;
  } finally {
    systemClock.step("daemon: ending");
    // If a daemon that takes over never served, another one follows it, as long as a supervisor has the device.
    const isFollowed = takesOver && link.servedMs() === undefined && !link.isGone();
    // Nothing is closed when a successor follows, as if this daemon died here: the handles must stay open.
    if (!isHandedOver && !isFollowed) await closeAll(closers, log);
    systemClock.step("daemon: ended");
    log.info({}, "ended");
  }
}

interface Started {
  readonly engine: Engine;
  readonly serving: Serving;
  /** Resolves when the mount is gone and all work that came from it is done. */
  readonly mountOver: Promise<void>;
}

async function start(options: DaemonOptions, link: SupervisorLink, closers: Closer[]): Promise<Started> {
  const { settings, umask, startEngine, restarts, reload, log } = options;
  const openTransport = settings.fuseNative === undefined ? deviceTransport : await openLibrary(settings.mountpoint);
  const supervisor = identifyProcess(process.ppid);
  const self = identifyProcess(process.pid);
  if (supervisor === undefined || self === undefined) throw new StartError("the supervisor is gone");

  let running: Engine | undefined;
  const credentials = noticeTokens(credentialsOf(settings), (token) => {
    running?.tokenChanged(scopesIn(token));
  });
  closers.push(watchTokens(credentials, systemClock));
  const { baseUrl, gatewaySocket } = settings;
  const gateway = openGatewayConnection(settings, log);
  const client = createClient({
    transport: gateway.transport,
    credentials,
    log,
    onRefusal: () => running?.gatewayAnswered(),
    mount: mountName(hostname(), settings.mountpoint),
    ...(settings.profile === undefined
      ? {}
      : { profile: parseProfile(settings.profile.text, settings.profile.source) }),
  });
  closers.push(() => client.close());

  const patience: RetryBudget = {
    limitMs: settings.patienceMs,
    onWait: (error) =>
      link.note(
        `the gateway ${settings.baseUrl} fails (${error.message}); asking again for ${settings.patienceMs / 1000} s`,
      ),
  };
  const before = restarts === undefined ? undefined : stateDirOf(settings.runtimeFolder, settings.mountId);
  const stateDir = before ?? settings.stateDir ?? (await chooseStateFolder(settings, client, patience, log));
  const hashWorkers = createHashWorkers();
  closers.push(() => hashWorkers.close());
  const runtime = createRuntime(createDiskFiles({ systemCalls, hashWorkers, elapsed: systemClock.elapsed }));
  const paths = createLayout(runtime.files, stateDir);
  // When the state dir was removed or moved away, a new one would be in the way of a person who moves it back.
  if (restarts !== undefined && !existsSync(join(stateDir, HANDLE_TABLE))) throw new StartError(NOTHING_KEPT);
  const { lock, takeBack } = lockState(paths.lock, settings.runtimeFolder);
  closers.push(() => lock.release());
  let isUsed = false;
  // Runs while the lock is still held. The files of a mount that never came to be are of no use.
  closers.push(() => isUsed || takeBack?.());
  log.openFile(stateDir);
  log.info({ settings, stateDir, node: process.version, restarts }, "starting");
  await paths.prepare();

  const databasePath = join(stateDir, DATABASE);
  const { total } = spaceAt(stateDir);
  const reserve = createReserve(runtime.files, paths.reserve, reserveSize(total), removeNow);
  const boot = bootId();
  const copying = { files: runtime.files, folder: stateDir, database: databasePath, log };
  const { connection: database, repaired } = await openMetadata({
    ...copying,
    // Written to a row, because the daemon that reports a migration may not be the one that did it.
    onMigrated: (changed) => createSettings(changed).set("migrated", reload?.id ?? ""),
    paths,
    boot,
    bootedAt: systemClock.wallClock() - uptime() * 1000,
    reserve,
    now: systemClock.wallClock,
  });
  closers.push(() => database.open && database.close());
  if (repaired !== undefined) link.note(`${repaired}; damaged files are in ${join(stateDir, "quarantine")}`);
  const stranger = ownerOtherThan(stateDir, settings.workspace);
  if (stranger !== undefined && createSettings(database).get("workspace") === undefined) {
    throw new StartError(`the state dir belongs to workspace "${stranger}", not to "${settings.workspace}"`);
  }
  const owners = chooseOwners(settings, stateDir, createSettings(database));
  const accounts = createAccounts({ log, elapsed: systemClock.elapsed, onChange: () => running?.expireKernelCache() });
  closers.push(() => accounts.close());
  const stateDisk = createStateDisk({ lock, lockPath: paths.lock, database: databasePath, reserve });
  const rowSync = createRowSync(runtime.files, databasePath);
  closers.push(() => rowSync.close());
  const limits = diskLimits(settings, total);
  const copies = startDatabaseBackups({
    ...copying,
    connection: database,
    elapsed: systemClock.elapsed,
    hasRoom: (bytes) => spaceAt(stateDir).available - bytes >= Math.max(limits.keepFree, reserve.room),
    onDamage: (damage) => {
      noteDamage(copying, damage);
      running?.databaseDamaged(new Error(damage));
    },
  });
  closers.push(() => copies.atEnd());
  const kept = openHandleFile(join(stateDir, HANDLE_TABLE), settings.mountId, restarts, log);
  if (kept === undefined) throw new StartError(NOTHING_KEPT);
  closers.push(() => kept.close());
  const overseer = createSupervisorWatch(settings, supervisor, log);
  const lookAfter = (mount: ServedMount) => overseer.replace(link, mount.descriptor, mount.connection);
  const transport = openTransport({
    ...{ settings, stateDir, runtime, log, kept },
    takesOver: restarts !== undefined,
    noResend: options.noResend,
    firstPlace: () => createDone(database).end(),
    hasMount(mount) {
      isUsed = true;
      // Not for a first daemon, which ends when its supervisor dies: the waiting command must learn that it failed.
      if (restarts !== undefined) lookAfter(mount);
    },
  });
  const inUse = deferred<undefined>();
  const engine = await startEngine({
    mount: {
      id: settings.mountId,
      ...(restarts === undefined ? {} : { resumed: { handles: kept.handles } }),
    },
    handleTable: kept.handleTable,
    runtime,
    client,
    log,
    paths,
    database,
    stateDisk,
    limits,
    onDamage: (error) => noteDamage(copying, error instanceof Error ? error.message : String(error)),
    inUse: inUse.promise,
    syncRows: rowSync.sync,
    passthrough: transport.passthrough,
    fastPath: transport.fastPath,
    kernelCache: transport.kernelCache,
    settings: engineSettings(settings, umask, boot, owners),
    accounts,
    workspace: settings.workspace,
    view: { path: settings.path, at: settings.at },
    scopes: await scopesOf(credentials, log),
    patience,
  });
  running = engine;
  closers.push(() => engine.stop());
  closers.push(() => inUse.resolve(undefined));
  closers.push(() => copies.stop());
  const worker = new Worker(new URL("../metadata/checkpoint-worker.js", import.meta.url), {
    workerData: { path: databasePath },
  });
  const finish = () => {
    try {
      checkpoint(database);
    } catch (error) {
      log.warn({ err: error }, "the write-ahead log could not be emptied: it grows");
    }
  };
  const checkpoints = startCheckpoints({ worker, databasePath, lookMs: 1_000, logBytes: 4 * 1024 * 1024, finish, log });
  closers.push(() => checkpoints.close());
  const { workspace, folder } = engine.condition();
  const view = viewKey(settings);
  writeOwner(stateDir, { ...workspace, baseUrl, ...(view === undefined ? {} : { view }) });

  systemClock.step("daemon: prepared");
  // libfuse may have mounted before it reports so.
  isUsed = settings.fuseNative !== undefined;
  const serving = await transport.serve(engine, link, closers);
  const { session } = serving;
  const { connection } = serving.mount;

  const record: MountRecord = {
    connection,
    mountId: settings.mountId,
    mountpoint: settings.mountpoint,
    daemon: self,
    supervisor: overseer.identity,
    stateDir,
    baseUrl,
    ...(gatewaySocket === undefined ? {} : { gatewaySocket }),
    workspace,
    ...(folder === undefined ? {} : { folder: folder.id }),
    ...(settings.at === undefined ? {} : { at: settings.at }),
    ...(reload === undefined ? {} : { reload: cameBy(reload, createSettings(database).get("migrated") === reload.id) }),
  };
  const mountOver = session.ended.then(async (reason) => {
    log.info({ reason }, "the mount is gone");
    await withTimeout(session.drained(), DRAIN_LIMIT_MS);
  });
  const { passthrough } = transport;
  const parts = { engine, serving, passthrough, mountOver, since: kept.since, restarts, reload, overseer };
  await openToCommands(settings, record, parts, log, link, closers);
  const { mountpoint, path } = settings;
  noteMount(settings.stateHome, { mountpoint, stateDir, workspace: workspace.name, path }, log);
  // The record is written by now. It says that the gateway is needed.
  gateway.keep();
  closers.push(() => gateway.letGo());
  if (restarts === undefined) lookAfter(serving.mount);
  systemClock.step("daemon: recorded");
  if (restarts === undefined) noteCondition(engine.condition(), settings.baseUrl, link);
  link.ready();
  inUse.resolve(undefined);
  systemClock.step("daemon: ready");
  log.info({ mountpoint: settings.mountpoint, connection, workspace: workspace.name }, "mounted");
  return { engine, serving, mountOver };
}

/** Tells the user when the mount is restricted: offline, paused or read-only. */
function noteCondition({ online, paused, readOnly }: EngineCondition, baseUrl: string, link: SupervisorLink): void {
  if (!online) link.note(`the gateway ${baseUrl} cannot be used now; the mount goes on from what this machine has`);
  if (paused !== undefined) link.note(`nothing is uploaded for now: ${paused}`);
  if (readOnly !== undefined) link.note(`mounted read-only: ${readOnly}`);
}

function cameBy({ id, since, failed }: Reload, isMigrated: boolean): MountRecord["reload"] {
  const waitedMs = Math.max(0, systemClock.wallClock() - since);
  return { id, waitedMs, isMigrated, ...(failed === undefined ? {} : { failed }) };
}

/** Resolves when this daemon must end and the requests of programs are done. True: a successor takes over the mount. */
async function serve(
  started: Started,
  log: Logger,
  link: SupervisorLink,
  stopped: Promise<"stop" | "unmounted" | "gone" | "signal">,
): Promise<boolean> {
  const { serving, mountOver } = started;
  const { handOver, mount, session } = serving;
  let why = await Promise.race([stopped, mountOver, handOver.begun]);
  if (why === "handOver") {
    log.info({}, "gives way to a successor");
    why = await Promise.race([stopped, mountOver, handOver.rest().then(() => "handOver" as const)]);
    if (why === "handOver") return true;
  }
  if (why === "gone") log.warn({}, "the supervisor is gone; the mount is detached");
  if (why === "signal" && (await isBusy(link))) {
    log.warn({}, "told to end while programs use the mount; it is detached");
  }
  if (why === "gone" || why === "signal") await detachMounts(mount, log);
  await withTimeout(session.drained(), DRAIN_LIMIT_MS);
  return false;
}

/** True if the supervisor could not take the mount off. */
async function isBusy(link: SupervisorLink): Promise<boolean> {
  try {
    return "busy" in (await link.unmount());
  } catch {
    return true;
  }
}

function credentialsOf({ login, tokenFile: file, workspace }: DaemonSettings): Credentials {
  if (login !== undefined) return savedLogin(login.file, { workspace, howToSignIn: login.howToSignIn });
  if (file === undefined) throw new StartError("the mount has neither a token file nor a login");
  return tokenFile(file);
}

function engineSettings(
  settings: DaemonSettings,
  umask: number,
  boot: string,
  owners: EngineSettings["owners"],
): EngineSettings {
  return {
    owners,
    owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
    umask,
    cacheLimit: settings.cacheSize,
    ...(settings.namesAhead === undefined || settings.namesAhead === 0 ? {} : { namesAhead: settings.namesAhead }),
    durability: settings.durability,
    readOnly: settings.readOnly,
    howToLogIn: settings.login?.howToSignIn ?? `put another token into ${settings.tokenFile}`,
    hostName: hostname(),
    boot,
    debounceMs: DEBOUNCE_MS,
    maximumAgeMs: MAXIMUM_AGE_MS,
    pollMs: POLL_MS,
    concurrency: REQUESTS,
    lookupProbeMs: requestLimitMs(settings.shortenWaits),
  };
}

/** Undefined: the token does not tell its scopes. */
function scopesIn(token: string): ReadonlySet<string> | undefined {
  const scopes = describeToken(token)?.scopes;
  return scopes === undefined ? undefined : new Set(scopes);
}

/** Undefined for a token that cannot be read: the engine judges whether the mount can do without a token. */
async function scopesOf(credentials: Credentials, log: Logger): Promise<ReadonlySet<string> | undefined> {
  try {
    return scopesIn(await credentials.token());
  } catch (error) {
    log.info({ err: error }, "the token cannot be read");
    return undefined;
  }
}

async function closeAll(closers: readonly Closer[], log: Logger): Promise<void> {
  for (const close of closers.toReversed()) {
    try {
      await close();
    } catch (error) {
      log.error({ err: error }, "closing failed");
    }
  }
}

function aborted(signal: AbortSignal): Promise<"signal"> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve("signal");
    signal.addEventListener("abort", () => resolve("signal"), { once: true });
  });
}

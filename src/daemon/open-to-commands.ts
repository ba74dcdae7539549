/** Opens a serving daemon to commands: the answers to their requests, and the record by which they find the daemon. */
import { randomUUID } from "node:crypto";
import type { Engine } from "../engine/api/index.ts";
import type { WallTime } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import type { MountStatus, UnmountReply } from "./control-messages.ts";
import { type ControlHandlers, type ControlServer, Refused, startControlServer } from "./control-server.ts";
import { fileIdentity, nextSettings } from "./entry-settings.ts";
import { type Follower, followEnvironment } from "./follow-environment.ts";
import type { Wish } from "./hand-over.ts";
import { readEntrySettings } from "./read-entry.ts";
import { keepRegistered } from "./registration.ts";
import {
  isRecorded,
  type MountRecord,
  makeRuntimeFolder,
  removePredecessors,
  removeRecord,
  socketPath,
  writeRecord,
} from "./runtime-folder.ts";
import type { DaemonSettings, Reload, Restarts } from "./settings.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import type { Overseer } from "./supervisor-watch.ts";
import type { Serving, Transport } from "./transport.ts";
import { packageVersion } from "./version.ts";
import { DRAIN_LIMIT_MS } from "./waiting.ts";
import { watchFile } from "./watch-file.ts";
import { withTimeout } from "./with-timeout.ts";

export interface ServedParts {
  readonly engine: Engine;
  readonly serving: Serving;
  readonly passthrough: Transport["passthrough"];
  readonly mountOver: Promise<void>;
  readonly since: WallTime;
  readonly overseer: Overseer;
  readonly restarts: Restarts | undefined;
  readonly reload: Reload | undefined;
}

/** The record is written last: it says that the state dir is in use and that the gateway is needed. */
export async function openToCommands(
  settings: DaemonSettings,
  firstRecord: MountRecord,
  parts: ServedParts,
  log: Logger,
  link: SupervisorLink,
  closers: (() => unknown)[],
): Promise<void> {
  const { engine, passthrough, mountOver, overseer, since, restarts } = parts;
  const { session, handOver } = parts.serving;
  const { runtimeFolder } = settings;
  const version = packageVersion();
  let isUnmounting = false;
  let record = firstRecord;
  const now = async () => {
    await engine.measure();
    return engine.status();
  };
  const giveWay = async (wish: Wish) => {
    if (isUnmounting) throw new Refused("it is being unmounted");
    await handOver.prepare(wish);
  };
  let follower: Follower | undefined;
  const status = async (): Promise<MountStatus> => ({
    ...(await now()),
    mountpoint: record.mountpoint,
    pid: record.daemon.pid,
    supervisorPid: record.supervisor.pid,
    connection: record.connection,
    stateDir: record.stateDir,
    baseUrl: record.baseUrl,
    version,
    uptime: Math.max(0, Math.floor((systemClock.wallClock() - since) / 1000)),
    ...(restarts === undefined || restarts.count === 0 ? {} : { restarts }),
    transport: settings.fuseNative === undefined ? "kernel" : "fuse-native",
    ...(follower === undefined ? {} : { environment: follower.status() }),
    owners: engine.owners,
    passthrough: passthrough.isOn,
    ...(passthrough.whyOff === undefined ? {} : { passthroughOff: passthrough.whyOff }),
    operations: session.operations(),
    moved: session.moved(),
  });
  const unmount = async (): Promise<UnmountReply> => {
    if (handOver.isUnderWay) throw new Refused("it gives way to another daemon; ask that one");
    isUnmounting = true;
    const resume = engine.replays.pause();
    const goOn = () => {
      isUnmounting = false;
      resume();
    };
    const result = await link.unmount().catch((error: unknown) => {
      goOn();
      throw error;
    });
    if ("busy" in result) {
      goOn();
      return result;
    }
    systemClock.step("daemon: unmounted");
    await (result.isOver ? mountOver : withTimeout(session.drained(), DRAIN_LIMIT_MS));
    const { dirty, parked, bytesPending, disk } = await now();
    const isGone = disk?.state === "gone";
    const more = { ...(result.isOver ? {} : { elsewhere: true }), ...(isGone ? { stateGone: true } : {}) };
    return { unmounted: { dirty, parked, bytesPending, ...more } };
  };
  const { pid } = record.daemon;
  const path = socketPath(runtimeFolder, pid);
  const handlers: ControlHandlers = {
    status,
    async sums() {
      const { dirty, uploading, parked, bytesPending, oldestPendingMs, offlineMs, ...rest } = await now();
      const paused = rest.paused ?? rest.readOnly;
      const optional = {
        ...(paused === undefined ? {} : { paused }),
        ...(offlineMs === undefined ? {} : { offlineMs }),
      };
      return { dirty, uploading, parked, bytesPending, oldestPendingMs, ...optional };
    },
    queue: (limit) => engine.queue(limit),
    retry: (paths) => engine.retry(paths),
    drain: (settle, signal, onProgress) => engine.drain({ settle, signal, onProgress }),
    unmount,
    async reload({ id, changes, environment, program }) {
      const { next, refused } = nextSettings(settings, changes, environment);
      if (refused.length > 0) throw new Refused(refused.join("; "));
      await giveWay({ id, settings: next, ...(program === undefined ? {} : { program }) });
      return () => handOver.begin();
    },
  };
  // A server whose socket file was removed still answers commands that had connected before.
  const controls: ControlServer[] = [];
  const listen = async () => void controls.push(await startControlServer({ path, handlers, log }));
  makeRuntimeFolder(runtimeFolder);
  closers.unshift(() => removeRecord(runtimeFolder, pid));
  systemClock.step("daemon: about to listen");
  closers.push(() => Promise.all(controls.map((control) => control.close())));
  await listen();
  const tell = (news: Partial<MountRecord>) => {
    record = { ...record, ...news };
    writeRecord(runtimeFolder, record);
  };
  // The folder may be gone; `makeAgain` makes it again and writes the record then.
  const tellLater = (news: Partial<MountRecord>) => {
    try {
      tell(news);
    } catch (error) {
      log.warn({ err: error }, "the record of the mount could not be written");
    }
  };
  overseer.onChange((supervisor) => tellLater({ supervisor }));
  // Another supervisor may have replaced the one in the first record.
  tell({ supervisor: overseer.identity });
  removePredecessors(runtimeFolder, record);
  const isThere = () => isRecorded(runtimeFolder, pid);
  const makeAgain = async () => {
    makeRuntimeFolder(runtimeFolder);
    await listen();
    tell({});
  };
  closers.push(keepRegistered({ isThere, makeAgain }, systemClock, log));
  const { environment } = settings;
  if (environment !== undefined) {
    follower = followEnvironment({
      ...{ settings, environment, log, failed: parts.reload?.failed },
      read: readEntrySettings,
      identity: () => fileIdentity(environment.file),
      watch: (onChange) => watchFile(environment.file, systemClock, onChange),
      async giveWay(next) {
        await giveWay({ id: randomUUID(), settings: next });
        handOver.begin();
      },
    });
    closers.push(follower.close);
  }
  // From then on another mount may get this connection's number.
  void session.ended.then(() => tellLater({ isOver: true }));
}

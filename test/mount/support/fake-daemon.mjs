/**
 * A daemon like any other but for its engine, which holds one empty folder and waits for orders in
 * its settings' workspace name. It runs as a child process, from the compiled files.
 *
 *   "ok"           mounts
 *   "fails"        refuses to start
 *   "crashes"      dies of an uncaught error once mounted
 *   "busy-drain"   never finishes a drain
 *   "slow-start"   never gets ready
 *   "slow-stop"    stops only when there is a file "go" in its state dir
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runDaemonProcess } from "../../../dist/daemon/process.js";
import { StartError } from "../../../dist/engine/api/engine.js";
import { FsError } from "../../../dist/engine/api/errors.js";

const time = { seconds: 1_700_000_000, nanoseconds: 0 };
const stat = {
  inode: 1,
  kind: "folder",
  mode: 0o755,
  links: 2,
  uid: process.getuid(),
  gid: process.getgid(),
  rdev: 0,
  size: 4096,
  blocks: 8,
  atime: time,
  mtime: time,
  ctime: time,
  btime: time,
};

const fileSystem = new Proxy(
  {
    async lookup() {
      throw new FsError("ENOENT", "an empty folder");
    },
    forget() {},
    noteProgramTime() {},
    async getattr() {
      return { stat, validMs: 1000 };
    },
    async access() {},
    async statfs() {
      const none = { blocks: 0, free: 0, available: 0, files: 0, filesFree: 0 };
      return { blockSize: 4096, nameLength: 255, ...none };
    },
    async opendir() {
      return { handle: 1, keepCache: false };
    },
    async readdir() {
      return [];
    },
    async releasedir() {},
  },
  {
    get: (known, name) =>
      known[name] ??
      (async () => {
        throw new FsError("EROFS", `${String(name)}: an empty folder for ever`);
      }),
  },
);

await runDaemonProcess(async ({ workspace: name, settings, database, log, paths }) => {
  if (name === "fails") throw new StartError("the engine\nwill not start", 1);
  if (name === "slow-start") await new Promise((resolve) => setTimeout(resolve, 1e8));
  if (name === "crashes") {
    setTimeout(() => {
      throw new Error("a bug", { cause: new Error("its cause") });
    }, 300);
  }
  const dirty = name === "dirty" || name === "busy-drain" ? 3 : 0;
  return {
    fileSystem,
    // Nobody else changes anything.
    replays: { formerly: new Set(), onAny() {}, pause: () => () => {} },
    context: { settings },
    status: () => ({
      workspace: { id: `id-of-${name}`, name },
      online: true,
      dirty,
      uploading: 0,
      parked: 0,
      bytesPending: dirty * 1024,
      settled: dirty === 0,
      live: false,
      conflicts: 0,
      cacheBytes: 0,
      cacheLimit: settings.cacheLimit,
      oldestPendingMs: 0,
    }),
    condition: () => ({ workspace: { id: `id-of-${name}`, name }, online: true }),
    async measure() {},
    async *queue() {},
    retry: async () => ({ retried: 0, unknown: [] }),
    async drain({ signal, onProgress }) {
      onProgress?.({ dirty, parked: 0, bytesPending: dirty * 1024, bytesSent: 0, settled: false });
      if (dirty === 0) return { drained: true, left: [] };
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { drained: false, left: ["/a: time is up"] };
    },
    async stop() {
      const go = join(paths.root, "go");
      while (name === "slow-stop" && !existsSync(go)) await new Promise((resolve) => setTimeout(resolve, 20));
      database.close();
      log.info({}, "the fake engine has stopped");
    },
  };
});

/**
 * A mount that libfuse serves: connects libfuse's calls to those of the file system, and notices the end of the mount.
 * calls.ts has the meaning of the calls, requests.ts the deadlines. This file has one line for each call, with the form
 * of its answer.
 */

import { type FileSystem, FsError, type KernelCache } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import type { Clock, Timer } from "../lib/runtime.ts";
import { createCalls } from "./calls.ts";
import type { Done, Operations } from "./library.ts";
import { createPaths } from "./paths.ts";
import { nativeEntry, nativeSpace, nativeStat } from "./replies.ts";
import { createRequests, type Kind } from "./requests.ts";

export interface LibrarySessionOptions {
  readonly fileSystem: FileSystem;
  readonly log: Logger;
  readonly clock: Clock;
  /** Milliseconds that an operation may take if it may ask the network. */
  readonly deadlineMs: number;
}

export interface LibrarySession {
  /** The callbacks of libfuse. */
  readonly operations: Operations;
  /** Forgets remembered folders when something changed remotely. Invalidations cannot be sent through libfuse. */
  readonly kernelCache: KernelCache;
  /** The numbers of requests that came, by their names in the protocol. */
  counts(): Record<string, number>;
  drained(): Promise<void>;
  /**
   * Calls `isConnected` until it is false, because libfuse does not report the end. Resolves with the reason of the
   * end.
   */
  watch(isConnected: () => boolean): Promise<string>;
  close(): void;
}

/** The time between two looks whether the mount is still there. */
const LOOK_MS = 100;

export function createLibrarySession(options: LibrarySessionOptions): LibrarySession {
  const { fileSystem, log, clock, deadlineMs } = options;
  const paths = createPaths(fileSystem);
  const calls = createCalls(fileSystem, paths);
  const requests = createRequests({
    clock,
    deadlineMs,
    log,
    unheard: () => fileSystem.unheard(),
    noteProgramTime: (milliseconds, mayAsk) => fileSystem.noteProgramTime(milliseconds, mayAsk),
  });
  let timer: Timer | undefined;
  let isOver = false;
  let end: (why: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    end = (why) => {
      if (isOver) return;
      isOver = true;
      timer?.cancel();
      log.info({ reason: why, inFlight: requests.count() }, "no more requests");
      requests.cancel(new FsError("EIO", `the mount ended: ${why}`));
      resolve(why);
    };
  });

  const local = { local: true } as const;
  const changes = { changes: true } as const;
  const release = { undo: (number: number) => calls.release(number) };
  const { begin } = requests;

  /** For calls whose answer is only that they are done. */
  function plain(
    kind: Kind<unknown>,
    values: readonly unknown[],
    done: Done,
    action: Parameters<typeof begin<unknown>>[2],
  ): void {
    begin(kind, values, action, () => done(0), done);
  }

  // biome-ignore format: a table is read by its columns
  const operations: Operations = {
    getattr: (path, done) => begin({ name: "GETATTR" }, [path], (c) => calls.getattr(c, path), (stat) => done(0, nativeStat(stat)), done),
    readdir: (path, done) =>
      begin({ name: "READDIR" }, [path], (c) => calls.readdir(c, path), (all) => done(0, all.map(({ name }) => name), all.map(nativeEntry)), done),
    readlink: (path, done) => begin({ name: "READLINK" }, [path], (c) => calls.readlink(c, path), (target) => done(0, target), done),
    statfs: (_path, done) => begin({ name: "STATFS" }, [], (c) => calls.statfs(c), (space) => done(0, nativeSpace(space)), done),

    chmod: (path, mode, done) => plain({ name: "SETATTR", ...changes }, [path, mode], done, (c) => calls.chmod(c, path, mode)),
    chown: (path, uid, gid, done) => plain({ name: "SETATTR", ...changes }, [path, uid, gid], done, (c) => calls.chown(c, path, uid, gid)),
    utimens: (path, atime, mtime, done) => plain({ name: "SETATTR", ...changes }, [path, atime, mtime], done, (c) => calls.utimens(c, path, atime, mtime)),
    truncate: (path, size, done) => plain({ name: "SETATTR", ...changes }, [path, size], done, (c) => calls.truncate(c, path, size)),
    ftruncate: (path, fd, size, done) => plain({ name: "SETATTR", ...changes }, [path, fd, size], done, (c) => calls.truncate(c, path, size, fd)),

    mknod: (path, mode, device, done) => plain({ name: "MKNOD", ...changes }, [path, mode, device], done, (c) => calls.mknod(c, path, mode, device)),
    mkdir: (path, mode, done) => plain({ name: "MKDIR", ...changes }, [path, mode], done, (c) => calls.mkdir(c, path, mode)),
    symlink: (target, path, done) => plain({ name: "SYMLINK", ...changes }, [target, path], done, (c) => calls.symlink(c, target, path)),
    link: (from, to, done) => plain({ name: "LINK", ...changes }, [from, to], done, (c) => calls.link(c, from, to)),
    rename: (from, to, done) => plain({ name: "RENAME", ...changes }, [from, to], done, (c) => calls.rename(c, from, to)),
    unlink: (path, done) => plain({ name: "UNLINK", ...changes }, [path], done, (c) => calls.unlink(c, path)),
    rmdir: (path, done) => plain({ name: "RMDIR", ...changes }, [path], done, (c) => calls.rmdir(c, path)),

    open: (path, flags, done) => begin({ name: "OPEN", ...changes, ...release }, [path, flags], (c) => calls.open(c, path, flags), (fd) => done(0, fd), done),
    create: (path, mode, done) => begin({ name: "CREATE", ...changes, ...release }, [path, mode], (c) => calls.create(c, path, mode), (fd) => done(0, fd), done),
    read: (path, fd, into, length, offset, done) =>
      begin({ name: "READ" }, [path, fd, length, offset], (c) => calls.read(c, path, fd, offset, length), (bytes) => { into.set(bytes); done(bytes.length); }, done),
    write: (path, fd, from, length, offset, done) =>
      begin({ name: "WRITE", ...local }, [path, fd, length, offset], (c) => calls.write(c, fd, offset, from.subarray(0, length)), done, done),
    flush: (path, fd, done) => plain({ name: "FLUSH", ...local }, [path, fd], done, (c) => calls.flush(c, fd)),
    fsync: (path, dataOnly, fd, done) => plain({ name: "FSYNC", ...local }, [path, fd, dataOnly], done, (c) => calls.fsync(c, fd, dataOnly !== 0)),
    fsyncdir: (path, _dataOnly, _fd, done) => plain({ name: "FSYNCDIR", ...local }, [path], done, (c) => calls.fsyncdir(c, path)),
    release: (path, fd, done) => plain({ name: "RELEASE", ...local }, [path, fd], done, () => calls.release(fd)),

    setxattr: (path, name, value, _position, flags, done) => {
      // The library takes its buffer back when the deadline has passed.
      const own = Buffer.from(value);
      plain({ name: "SETXATTR", ...changes }, [path, name, own, flags], done, (c) => calls.setxattr(c, path, name, own, flags));
    },
    getxattr: (path, name, _position, done) =>
      begin({ name: "GETXATTR" }, [path, name], (c) => calls.getxattr(c, path, name), (value) => done(0, Buffer.from(value)), done),
    listxattr: (path, done) => begin({ name: "LISTXATTR" }, [path], (c) => calls.listxattr(c, path), (names) => done(0, names), done),
    removexattr: (path, name, done) => plain({ name: "REMOVEXATTR", ...changes }, [path, name], done, (c) => calls.removexattr(c, path, name)),
  };

  return {
    operations,
    kernelCache: { expiresNames: false, tell: () => paths.forgetFolders(), everything: () => paths.forgetFolders() },
    counts: () => requests.counts(),
    drained: () => requests.drained(),
    watch(isConnected) {
      const look = (): void => {
        if (isOver) return;
        if (isConnected()) timer = clock.setTimer(LOOK_MS, look);
        else end("ENODEV");
      };
      look();
      return ended;
    },
    close: () => end("closed"),
  };
}

/**
 * Files whose calls take effect late and out of order, as those of a thread pool: each waits some
 * turns of the microtask queue first. `turns` says how many, so that a seed repeats a run.
 */
import type { Files, OpenFile } from "../../../src/lib/files.ts";

export function slowFiles<T extends Files>(files: T, turns: () => number): T {
  const wait = async () => {
    for (let left = turns(); left > 0; left -= 1) await undefined;
  };

  function slowHandle(file: OpenFile): OpenFile {
    let underWay = 0;
    let idle = () => {};
    let isClosed = false;
    // As promised by lib/files.ts: close waits for the calls under way.
    const later = async <R>(call: () => Promise<R>): Promise<R> => {
      if (isClosed) return call();
      underWay += 1;
      try {
        await wait();
        return await call();
      } finally {
        underWay -= 1;
        if (underWay === 0) idle();
      }
    };
    return {
      ...(file.descriptor === undefined ? {} : { descriptor: file.descriptor }),
      read: (buffer, offset, length, position) => later(() => file.read(buffer, offset, length, position)),
      write: (buffer, position) => later(() => file.write(buffer, position)),
      truncate: (size) => later(() => file.truncate(size)),
      stat: () => later(() => file.stat()),
      setTimes: (mtime) => later(() => file.setTimes(mtime)),
      sync: () => later(() => file.sync()),
      seek: (kind, offset) => later(() => file.seek(kind, offset)),
      allocate: (mode, offset, length) => later(() => file.allocate(mode, offset, length)),
      async close() {
        isClosed = true;
        if (underWay > 0) {
          await new Promise<void>((resolve) => {
            idle = resolve;
          });
        }
        await file.close();
      },
    };
  }

  const slow: Files = {
    currentTime: () => files.currentTime(),
    async open(path, mode) {
      await wait();
      return slowHandle(await files.open(path, mode));
    },
    stat: async (path) => wait().then(() => files.stat(path)),
    rename: async (from, to) => wait().then(() => files.rename(from, to)),
    remove: async (path) => wait().then(() => files.remove(path)),
    makeFolder: async (path) => wait().then(() => files.makeFolder(path)),
    list: async (path) => wait().then(() => files.list(path)),
    syncDisk: async (path) => wait().then(() => files.syncDisk(path)),
    syncFolder: async (path) => wait().then(() => files.syncFolder(path)),
    clone: async (from, to) => wait().then(() => files.clone(from, to)),
    hash: async (path, signal) => wait().then(() => files.hash(path, signal)),
    beginHash(path) {
      const running = files.beginHash(path);
      return { ...running, finish: async (signal) => wait().then(() => running.finish(signal)) };
    },
    space: async (path) => wait().then(() => files.space(path)),
  };
  return { ...files, ...slow };
}

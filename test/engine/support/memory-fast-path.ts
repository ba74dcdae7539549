/** A device that moves bytes by itself, over files in memory; see src/engine/api/fast-path.ts. */
import type { FastPath, HandleId } from "../../../src/engine/api/index.ts";
import type { MemoryFiles } from "../../support/memory-files.ts";

export interface MemoryFastPath extends FastPath {
  /** As a WRITE of the kernel that passes everybody by. False: it may not, and nothing happened. */
  write(handle: HandleId, bytes: Uint8Array, at: number): boolean;
  /** As a READ; undefined: it may not. */
  read(handle: HandleId, size: number, at: number): Uint8Array | undefined;
}

export function createMemoryFastPath(files: MemoryFiles, now: () => number): MemoryFastPath {
  const readers = new Map<HandleId, number>();
  const writers = new Map<HandleId, { descriptor: number; until: number }>();
  return {
    grantRead: (handle, descriptor) => void readers.set(handle, descriptor),
    grantWrite: (handle, descriptor, milliseconds) =>
      void writers.set(handle, { descriptor, until: now() + milliseconds }),
    revokeReads(descriptor) {
      for (const [handle, given] of readers) if (given === descriptor) readers.delete(handle);
    },
    revokeWrites(descriptor) {
      for (const [handle, given] of writers) if (given.descriptor === descriptor) writers.delete(handle);
    },
    end(handle) {
      readers.delete(handle);
      writers.delete(handle);
    },
    write(handle, bytes, at) {
      const found = writers.get(handle);
      if (found === undefined || now() >= found.until) return false;
      files.passed(found.descriptor).write(bytes, at);
      return true;
    },
    read(handle, size, at) {
      const descriptor = readers.get(handle);
      if (descriptor === undefined) return undefined;
      const buffer = new Uint8Array(size);
      return buffer.subarray(0, files.passed(descriptor).read(buffer, at));
    },
  };
}

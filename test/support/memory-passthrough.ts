/** Passthrough over files in memory, with the kernel's rule that a file is served in one way at a time. */
import { backingId, type Passthrough } from "../../src/engine/api/index.ts";
import type { MemoryFiles, PassedFile } from "./memory-files.ts";

export interface MemoryPassthrough extends Passthrough {
  /** Behind the id that an open was answered with; from the first such open to the last release. */
  fileOf(id: number): PassedFile;
  /** How many ids are given out: for finding leaks. */
  registered(): number;
}

export function createMemoryPassthrough(files: MemoryFiles): MemoryPassthrough {
  const registered = new Map<number, PassedFile>();
  let lastId = 0;
  return {
    isOn: true,
    // As before Linux 6.13: changes at one moment of the virtual clock look alike.
    timesAreExact: false,
    register(descriptor) {
      lastId += 1;
      registered.set(lastId, files.passed(descriptor));
      return backingId(lastId);
    },
    unregister(id) {
      if (!registered.delete(id)) throw new Error(`backing id ${id} is not registered`);
    },
    fileOf(id) {
      const file = registered.get(id);
      if (file === undefined) throw new Error(`an open was answered with backing id ${id}, which is not registered`);
      return file;
    },
    registered: () => registered.size,
  };
}

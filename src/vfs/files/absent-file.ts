/** Stands for a live file that could not be made: it holds nothing, so nothing of it must be read or written. */
import type { OpenFile } from "../../lib/files.ts";
import { FsError } from "../errors.ts";

const NEVER = { seconds: 0, nanoseconds: 0 };

/** All of it counts as missing; whoever wants to change it has to open the file anew. */
export function absentFile(size: number): OpenFile {
  const refuse = () => Promise.reject(new FsError("ENOSPC", "the file is not kept here: open it again"));
  return {
    // What is missing lies over it.
    async read(buffer, offset, length, position) {
      const end = Math.min(length, Math.max(0, size - position));
      buffer.fill(0, offset, offset + end);
      return end;
    },
    write: refuse,
    truncate: refuse,
    setTimes: refuse,
    allocate: refuse,
    sync: async () => {},
    stat: async () => ({ size, allocated: 0, mtime: NEVER, ctime: NEVER }),
    seek: async (kind, offset) => (kind === "hole" && offset < size ? offset : undefined),
    close: async () => {},
  };
}

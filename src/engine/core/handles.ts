/** The open handles. A new handle is in the handle table before it is known here, and before the kernel hears of it. */
import type { DirectoryStream } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Caller, HandleId, HandleTable, KernelNodeId } from "../api/index.ts";
import type { RowClockRuntime } from "../host/index.ts";
import type { CacheFile, Reader } from "./cache-file.ts";

/** The open file or folder behind a handle. */
export type Handle =
  | {
      readonly kind: "file";
      readonly cacheFile: CacheFile;
      readonly write: boolean;
      readonly append: boolean;
      readonly reader: Reader;
    }
  | {
      readonly kind: "folder";
      readonly inode: InodeId;
      /** The listing under way; undefined before the first readdir. */
      directoryStream: DirectoryStream | undefined;
    };

export class Handles extends Map<HandleId, Handle> {
  readonly #table: HandleTable;
  readonly #runtime: Pick<RowClockRuntime, "step">;

  constructor(table: HandleTable, runtime: Pick<RowClockRuntime, "step">) {
    super();
    this.#table = table;
    this.#runtime = runtime;
  }

  give(caller: Caller, kernelNodeId: KernelNodeId, handle: Handle): HandleId {
    const isFile = handle.kind === "file";
    const id = this.#table.add({
      request: caller.mark?.id,
      kernelNodeId,
      kind: handle.kind,
      write: isFile && handle.write,
      append: isFile && handle.append,
      backing: isFile ? handle.cacheFile.backingId : undefined,
    });
    this.set(id, handle);
    this.#runtime.step("handle: written down");
    return id;
  }
}

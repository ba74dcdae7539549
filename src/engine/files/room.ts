/** The parts that flows of this room take: those of core/context.ts, with the state that only this room sees. */
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Host, Kernel, Remote, Rows, LocalFiles as SharedLocalFiles, Uploads } from "../core/index.ts";
import type { FirstState, OpenCacheFile } from "./cache-file.ts";
import type { FileState } from "./file-state.ts";

type CacheFiles = SharedLocalFiles["cacheFiles"];

/** By kernel node id. */
export interface OpenCacheFiles extends CacheFiles {
  get(kernelNodeId: KernelNodeId): OpenCacheFile | undefined;
  values(): Iterable<OpenCacheFile>;
  open(...args: Parameters<CacheFiles["open"]>): Promise<OpenCacheFile>;
  make(first: FirstState): OpenCacheFile;
  set(kernelNodeId: KernelNodeId, cacheFile: OpenCacheFile): void;
  delete(kernelNodeId: KernelNodeId): void;
}

export interface LocalFiles extends SharedLocalFiles {
  readonly cacheFiles: OpenCacheFiles;
  readonly fileState: FileState;
}

export interface Parts extends Rows, LocalFiles, Kernel, Remote, Uploads, Host {}

/** The state of an open cache file, in parts. Each part is a class: only its methods change it. */
import type { CacheFile } from "../core/index.ts";
import type { FileChanges } from "./file-changes.ts";
import type { FileOnDisk } from "./file-on-disk.ts";
import type { FileUse } from "./file-use.ts";
import type { OriginRanges } from "./origin-ranges.ts";
import type { PassthroughUse } from "./passthrough-use.ts";

export interface OpenCacheFile extends CacheFile {
  readonly ranges: OriginRanges;
  readonly disk: FileOnDisk;
  readonly use: FileUse;
  readonly changes: FileChanges;
  readonly passthrough: PassthroughUse;
}

/** The state in which a file is found when it is opened. */
export type FirstState = Pick<OpenCacheFile, "kernelNodeId" | "inode" | "path" | "ranges" | "disk" | "use" | "changes">;

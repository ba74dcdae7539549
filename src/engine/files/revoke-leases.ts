/**
 * Revokes the write leases that fast-path.ts granted: the next WRITE to this file comes to JavaScript and is counted.
 */
import type { OpenCacheFile } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";

export function revokeWriteLeases({ fastPath }: Pick<LocalFiles, "fastPath">, cacheFile: OpenCacheFile): void {
  if (cacheFile.disk.file.descriptor !== undefined) fastPath.revokeWrites(cacheFile.disk.file.descriptor);
}

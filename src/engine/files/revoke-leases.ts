/**
 * Revokes the write leases that fast-path.ts granted: from here on the next WRITE to this file comes to us and is
 * counted.
 */
import type { CacheFile, LocalFiles } from "../core/index.ts";

export function revokeWriteLeases({ fastPath }: Pick<LocalFiles, "fastPath">, cacheFile: CacheFile): void {
  if (cacheFile.disk.file.descriptor !== undefined) fastPath.revokeWrites(cacheFile.disk.file.descriptor);
}

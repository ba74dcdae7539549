/** The files in memory as a back of the shared cases, with a clock that ticks when told. */
import type { FilesUnderTest } from "../../support/files-cases.ts";
import { createMemoryFiles, type MemoryFiles } from "../../support/memory-files.ts";

export async function createMemoryUnderTest(
  capacity?: number,
): Promise<Omit<FilesUnderTest, "files"> & { files: MemoryFiles }> {
  let nanoseconds = 1;
  const files = createMemoryFiles({
    now: () => ({ seconds: 1_750_000_000, nanoseconds }),
    ...(capacity === undefined ? {} : { capacity }),
  });
  await files.makeFolder("/state");
  return {
    files,
    root: "/state",
    async tick() {
      nanoseconds++;
    },
    async end() {},
  };
}

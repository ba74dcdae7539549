/** The real disk as a back of the shared cases: a fresh folder, removed afterwards. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDiskFiles } from "../../src/content/disk-files.ts";
import { createHashWorkers } from "../../src/content/hash-workers.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { compareTimes } from "../../src/lib/time.ts";
import type { FilesUnderTest } from "./files-cases.ts";
import { systemCalls } from "./system-calls.ts";

export async function createDiskUnderTest(): Promise<FilesUnderTest> {
  const root = await mkdtemp(join(tmpdir(), "wsfs-files-"));
  const clockFolder = await mkdtemp(join(tmpdir(), "wsfs-clock-"));
  const hashWorkers = createHashWorkers();
  const files = createDiskFiles({ systemCalls, hashWorkers, elapsed: systemClock.elapsed });

  /** The kernel stamps with a coarse clock: writes until the stamp has moved. */
  async function tick(): Promise<void> {
    const file = await files.open(join(clockFolder, "clock"), "w+");
    try {
      await file.write(Buffer.alloc(1), 0);
      const { mtime } = await file.stat();
      do await file.write(Buffer.alloc(1), 0);
      while (compareTimes((await file.stat()).mtime, mtime) === 0);
    } finally {
      await file.close();
    }
  }

  async function end(): Promise<void> {
    await hashWorkers.close();
    await rm(root, { recursive: true });
    await rm(clockFolder, { recursive: true });
  }

  return { files, root, tick, end };
}

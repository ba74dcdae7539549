/** A fresh folder below the system's temporary one, removed after the test that made it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "wsfs-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

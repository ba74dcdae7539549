/** A file is watched by its folder, whether that is there yet, is replaced, or goes. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, test } from "vitest";
import { watchFile } from "../../src/daemon/watch-file.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { until } from "../support/child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("each change is told", { timeout: 60_000 }, async () => {
  const above = await temporaryFolder();
  const folder = join(above, "wsfs");
  const file = join(folder, "config.json");
  let told = 0;
  const watcher = watchFile(file, systemClock, () => {
    told += 1;
  });
  onTestFinished(() => watcher.close());
  const isTold = async (what: string, change: () => void) => {
    const before = told;
    change();
    await until(what, () => told > before, 10_000);
  };
  await isTold("the folder is made", () => mkdirSync(folder));
  await isTold("the file is made", () => writeFileSync(file, "{"));
  await isTold("another in its place", () => {
    writeFileSync(join(folder, "beside"), "{}");
    renameSync(join(folder, "beside"), file);
  });
  await isTold("removed", () => rmSync(file));
  await isTold("there again", () => writeFileSync(file, "{}"));
  // Each of several files that go is an event, and so is the folder.
  for (const name of ["config.json.lock", "a", "b"]) writeFileSync(join(folder, name), "");
  await isTold("the folder is removed", () => rmSync(folder, { recursive: true }));
  await isTold("the folder is there again", () => {
    mkdirSync(folder);
    writeFileSync(file, "{}");
  });
  await isTold("changed in it", () => writeFileSync(file, "{ }"));
});

import { test } from "vitest";
import { writeFileSync } from "node:fs";
import { playHistory } from "./history.ts";
import { playHistories, runSettings } from "./run.ts";
test("debug", { timeout: 600_000 }, async () => {
  const settings = runSettings(1, 1);
  const failure = await playHistories({ mounts: process.env.ONE ? 1 : 2, ...(process.env.ONE ? {lag: { path: 3_000, journal: 5_000 }} : {}), ...settings, shrinkMs: Number(process.env.SHRINK ?? 0) });
  writeFileSync("/tmp/debug.log", failure === undefined ? "holds" : failure.text + "\n" + ((failure.error as never as {lines: string[]}).lines ?? []).join("\n"));
  void playHistory;
});

/**
 * Counts the files of the engine whose code runs for one small file, in a world of the simulation; with --names, names
 * them: node --import ./scripts/typescript.mjs test/support/traced-files.ts [--names]
 */
import { Session } from "node:inspector/promises";
import { bytesOf } from "../sim/support/programs.ts";
import { createWorld } from "../sim/support/world.ts";

const ENGINE = /\/src\/engine\/(.+)\.ts$/;
/** All that is under way at the start has ended, or what was sent has been told. */
const AT_REST_MS = 60_000;

const world = await createWorld({ seed: 1, mounts: ["alpha"] });
const [mount] = world.mounts;
const calls = mount?.process?.kernel;
const engine = mount?.process?.engine;
if (calls === undefined || engine === undefined) throw new Error("the mount is not there");
await world.clock.advance(AT_REST_MS);

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** The files with a function that was called since the last call. */
async function filesThatRan(): Promise<Set<string>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)));
  return new Set(ran.flatMap(({ url }) => ENGINE.exec(url)?.[1] ?? []));
}

await filesThatRan();
const fd = await world.run(calls.open("file", { write: true, create: true }));
await world.run(calls.write(fd, 0, bytesOf("file", 40)));
await world.run(calls.close(fd));
const made = await filesThatRan();
await world.clock.advance(AT_REST_MS);
if (engine.status().dirty > 0) throw new Error("the file is not uploaded");
const uploaded = await filesThatRan();

const rows = {
  "create, write and close": made,
  "upload and its echo": uploaded,
  both: new Set([...made, ...uploaded]),
};
for (const [what, files] of Object.entries(rows)) {
  process.stdout.write(`${what.padEnd(24)} ${files.size} files\n`);
  if (process.argv.includes("--names")) process.stdout.write(`  ${[...files].sort().join("\n  ")}\n`);
}
process.exit(0);

/**
 * `npm run soak -- fuzz Mm [NAME]`: the fuzz targets, in turn, for M minutes all together, or the one of that name, with
 * seeds drawn anew. Stops at the first fault; what shows it stays in a folder that is named.
 */
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TARGETS } from "../fuzz/targets.ts";

/** Of one target in a row. */
const TURN_S = 60;

const [given = "", name] = process.argv.slice(2);
const [, minutes] = /^(\d+)m$/.exec(given) ?? [];
const chosen = TARGETS.filter((target) => name === undefined || target.name === name);
if (minutes === undefined || chosen.length === 0) {
  const names = TARGETS.map((target) => target.name).join(", ");
  process.stderr.write(
    `soak fuzz: expected minutes as "60m" and perhaps one of ${names}, got "${process.argv.slice(2).join(" ")}"\n`,
  );
  process.exit(2);
}
const end = performance.now() + Number(minutes) * 60_000;
const folder = mkdtempSync(join(tmpdir(), "wsfs-fuzz-"));
for (const { name: skipped, lacks } of chosen)
  if (lacks !== undefined) process.stdout.write(`${skipped} is skipped: there is no ${lacks}\n`);
const able = chosen.filter(({ lacks }) => lacks === undefined);
for (let turn = 0; able.length > 0 && performance.now() < end; turn++) {
  const target = able[turn % able.length];
  if (target === undefined) break;
  const seconds = Math.ceil(Math.min(TURN_S, (end - performance.now()) / 1000));
  const seed = randomInt(1, 2 ** 31);
  try {
    process.stdout.write(`${target.name}: ${await target.run(folder, { seconds, seed })}\n`);
  } catch (error) {
    process.stdout.write(
      `${target.name} with seed ${seed}: ${error instanceof Error ? error.message : error}\nkept: ${folder}\n`,
    );
    process.exit(1);
  }
}
rmSync(folder, { recursive: true });
process.stdout.write("all hold\n");

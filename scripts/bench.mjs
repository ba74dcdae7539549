/**
 * `npm run bench [-- NAME ... [--FLAG ...]]`: set-up, then the benchmarks test/bench/NAME.ts, all
 * when none is named, one after the other, each in a node of its own (types removed by
 * typescript.mjs) with the flags. They find the compiled program in dist/.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runNode } from "./child.mjs";
import { projectFolder, setup } from "./setup.mjs";

const folder = join(projectFolder, "test/bench");
const all = existsSync(folder)
  ? readdirSync(folder)
      .filter((name) => name.endsWith(".ts"))
      .map((name) => name.slice(0, -3))
      .sort()
  : [];
const given = process.argv.slice(2);
const firstFlag = given.findIndex((argument) => argument.startsWith("-"));
const asked = firstFlag < 0 ? given : given.slice(0, firstFlag);
const flags = firstFlag < 0 ? [] : given.slice(firstFlag);
const unknown = asked.find((name) => !all.includes(name));
if (unknown !== undefined || all.length === 0) {
  process.stderr.write(`bench: expected names out of ${all.join(", ") || "(none yet)"}, got "${unknown ?? ""}"\n`);
  process.exit(2);
}

// The benchmarks need the programs of the tests.
await setup({ forTests: true });
for (const name of asked.length > 0 ? asked : all) {
  const loader = join(projectFolder, "scripts/typescript.mjs");
  const args = ["--enable-source-maps", "--import", loader, join(folder, `${name}.ts`), ...flags];
  const code = await runNode(args, { cwd: projectFolder });
  if (code !== 0) process.exit(code);
}

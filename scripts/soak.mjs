/**
 * `npm run soak -- NAME [ARGUMENT ...]`: set-up, then test/soak/NAME.ts in a node of its own (types removed by
 * typescript.mjs): the same code as in the tests, longer. `--help` shows the head comments of these files.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runNode } from "./child.mjs";
import { projectFolder, setup } from "./setup.mjs";

const folder = join(projectFolder, "test/soak");
const [name = "", ...rest] = process.argv.slice(2);
const known = readdirSync(folder)
  .flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -3)] : []))
  .sort();

/** Returns the head comment of the file, without the stars. */
function headOf(known) {
  const [, head = ""] = /^\/\*\*\n(.*?)\n \*\//s.exec(readFileSync(join(folder, `${known}.ts`), "utf8")) ?? [];
  return head.replaceAll(/^ \* ?/gm, "");
}

if (name === "--help" || rest.includes("--help")) {
  const asked = known.includes(name) ? [name] : known;
  process.stdout.write(`${asked.map(headOf).join("\n\n")}\n`);
  process.exit(0);
}
if (!known.includes(name)) {
  process.stderr.write(`soak: expected one of ${known.join(", ")}, or --help, got "${name}"\n`);
  process.exit(2);
}

// The soak tests need the programs of the tests.
await setup({ forTests: true });
const loader = join(projectFolder, "scripts/typescript.mjs");
const args = ["--enable-source-maps", "--import", loader, join(folder, `${name}.ts`), ...rest];
process.exitCode = await runNode(args, { cwd: projectFolder });

/**
 * `npm run soak -- NAME [ARGUMENT ...]`: set-up, then test/soak/NAME.ts in a node of its own (types
 * removed by typescript.mjs): the same code as in the tests, longer. The first argument is a count.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runNode } from "./child.mjs";
import { projectFolder, setup } from "./setup.mjs";

const folder = join(projectFolder, "test/soak");
const [name = "", ...rest] = process.argv.slice(2);
if (!/^[\w-]+$/.test(name) || !existsSync(join(folder, `${name}.ts`))) {
  const known = readdirSync(folder).flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -3)] : []));
  process.stderr.write(`soak: expected one of ${known.sort().join(", ")}, got "${name}"\n`);
  process.exit(2);
}

setup();
const loader = join(projectFolder, "scripts/typescript.mjs");
const args = ["--enable-source-maps", "--import", loader, join(folder, `${name}.ts`), ...rest];
process.exitCode = await runNode(args, { cwd: projectFolder });

/** What `npm run pack` makes, installed into empty projects as a user would. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./child.ts";

const PACK = fileURLToPath(new URL("../../scripts/pack.mjs", import.meta.url));

/** Into `folder`; answers the paths of the two. */
export async function makePackages(folder: string): Promise<{ product: string; client: string }> {
  const { code, stdout, stderr } = await run(process.execPath, [PACK, "--to", folder], { timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`pack: ${stderr}`);
  const [product = "", client = ""] = stdout.trimEnd().split("\n");
  return { product, client };
}

/** A project in `folder` that depends on the package alone. `env`: whatever npm and what it starts are to have. */
export async function install(
  folder: string,
  file: string,
  options: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  // What npm has in its cache is not asked for again.
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...options, file];
  const { code, stdout, stderr } = await run("npm", args, { cwd: folder, env, timeoutMs: 240_000 });
  if (code !== 0) throw new Error(`npm ${args.join(" ")}: ${stdout}${stderr}`);
}

/**
 * Clients that others' tools make of /openapi.json: they compile strictly, and do the main calls against a real local
 * gateway. The tools are a project of their own (generated/package.json), as they need another compiler.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningGateway, startGateway } from "../../src/gateway/start.ts";
import { run } from "../support/child.ts";

const PROJECT = fileURLToPath(new URL("generated", import.meta.url));

/** Each has a workspace of its own. */
const PROGRAMS = ["openapi-fetch", "hey-api"];

let folder = "";
let gateway: RunningGateway | undefined;

async function tool(name: string, ...args: readonly string[]): Promise<void> {
  const ended = await run(join(folder, "node_modules/.bin", name), args, { cwd: folder });
  expect(ended.code, `${name}: ${ended.stdout}${ended.stderr}`).toBe(0);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-generated-"));
  cpSync(PROJECT, folder, { recursive: true });
  // What npm has in its cache is not asked for again.
  const args = ["ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  const installed = await run("npm", args, { cwd: folder, timeoutMs: 240_000 });
  expect(installed.code, installed.stderr).toBe(0);
  gateway = await startGateway({ dataDir: join(folder, "gateway"), workspaces: PROGRAMS });
  const document = await fetch(`${gateway.baseUrl}/openapi.json`);
  writeFileSync(join(folder, "openapi.json"), await document.text());
}, 300_000);

afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each([
  ["openapi-fetch", "openapi-typescript", ["openapi.json", "-o", "api.d.ts"]],
  ["hey-api", "openapi-ts", ["-i", "openapi.json", "-o", "hey", "-c", "@hey-api/client-fetch"]],
])("%s", { timeout: 120_000 }, async (program, maker, args) => {
  const compilerOptions = { target: "es2023", module: "nodenext", types: ["node"], strict: true };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [`${program}.ts`] }));
  await tool(maker, ...args);
  await tool("tsc", "-p", ".");
  const token = await gateway?.issueToken({ workspace: program });
  const env = { ...process.env, WSFS_BASE_URL: gateway?.baseUrl, WSFS_TOKEN: token };
  const ended = await run(process.execPath, [`${program}.js`], { cwd: folder, env });
  expect(ended).toMatchObject({ code: 0, stdout: "all of it\n", stderr: "" });
});

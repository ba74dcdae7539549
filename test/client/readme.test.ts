/**
 * The examples of docs/sdk.md as a user has them: copied out, compiled against the
 * package's own types, run against a real local gateway, their output as the page says. Needs the
 * package built (dist/).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import { openAccounts } from "../../src/gateway/accounts/index.ts";
import { type RunningGateway, startGateway, workspacesIn } from "../../src/gateway/start.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { Browser, PASSWORD } from "../gateway/sign-in/support.ts";
import { run } from "../support/child.ts";
import { COMPILER_OPTIONS, examplesOf } from "./support/page-examples.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(root, "docs/sdk.md"), "utf8");

const examples = examplesOf(page);
const programs = examples.filter(({ output }) => output !== undefined);

/** A project that depends on wsfs and nothing else, with all examples in it. */
let folder = "";
let gateway: RunningGateway | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-readme-"));
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "@types"), { recursive: true });
  symlinkSync(root, join(modules, "wsfs"));
  symlinkSync(join(root, "node_modules/@types/node"), join(modules, "@types/node"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const emitted = { module: "nodenext", rewriteRelativeImportExtensions: true, skipLibCheck: true };
  const project = { compilerOptions: { ...COMPILER_OPTIONS, ...emitted }, include: ["*.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  for (const { file, code } of examples) writeFileSync(join(folder, file), code);
  const dataDir = join(folder, "gateway");
  gateway = await startGateway({ dataDir });
  const accounts = openAccounts(dataDir, systemClock);
  const command = [process.execPath, join(folder, "greet.js")];
  const scopes = SCOPES.filter((scope) => scope.startsWith("node."));
  const ada = await accounts.accounts.add("ada", PASSWORD);
  for (const { id } of workspacesIn(dataDir)) accounts.accounts.setRole(ada.id, id, "editor");
  accounts.engines.add({ name: "greet", description: "", command, timeLimitSeconds: 60, scopes, inputSchema: null });
  accounts.close();
  writeFileSync(join(folder, "token"), await gateway.issueToken({ workspace: "workspace" }), { mode: 0o600 });
});

afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("every block of code of the page is an example that is run, but the shared one", () => {
  expect(page.match(/^```(?!text\b)\S+.*$/gm)).toHaveLength(examples.length);
  expect(examples.filter(({ output }) => output === undefined).map(({ file }) => file)).toEqual([
    "client.ts",
    "greet.ts",
  ]);
  expect(programs.length).toBeGreaterThan(8);
});

test("the examples fit the package's types, checked strictly", async () => {
  const compiled = await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder]);
  expect(`${compiled.stdout}${compiled.stderr}`).toBe("");
  expect(compiled.code).toBe(0);
});

test("login.ts does what the page says, once ada has approved it in a browser", async () => {
  const example = programs.find(({ file }) => file === "login.ts");
  const env = { ...process.env, WSFS_BASE_URL: gateway?.baseUrl };
  const child = spawn(process.execPath, ["login.js"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    const [, code, address = ""] = /^Approve the code (\S+) at (\S+)$/.exec(line) ?? [];
    if (code === undefined) continue;
    expect(address).toContain(`${gateway?.baseUrl}/`);
    const browser = new Browser(gateway?.baseUrl ?? "");
    await browser.signIn(code);
    await browser.submit("/sign-in/approval", { decision: "approve" });
  }
  expect(await ended).toEqual([0, null]);
  expect(`${lines.join("\n")}\n`.replace(/code \S+ at \S+/, "code … at …")).toBe(example?.output);
});

const others = programs.filter(({ file }) => file !== "login.ts");
test.each(others.map((example) => [example.file, example] as const))(
  "%s does what the page says",
  async (_, { file, output }) => {
    const baseUrl = gateway?.baseUrl ?? "";
    const ended = await run(process.execPath, [file.replace(/ts$/, "js")], {
      cwd: folder,
      env: { ...process.env, WSFS_BASE_URL: baseUrl, WSFS_TOKEN_FILE: join(folder, "token") },
    });
    expect(ended.stderr).toBe("");
    expect(ended.stdout).toBe(output);
    expect(ended.code).toBe(0);
  },
);

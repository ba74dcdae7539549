/**
 * The package wsfs-client, installed into an empty project: nothing is compiled there, its types hold as strictly as
 * they can be checked in each way of finding modules, and the examples of its page run.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningGateway, startGateway } from "../../src/gateway/start.ts";
import { run } from "../support/child.ts";
import { install, makePackages } from "../support/packages.ts";
import { COMPILER_OPTIONS, type Example, examplesOf } from "./support/page-examples.ts";

const TSC = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

let folder = "";
let project = "";
let page = "";
let examples: Example[] = [];
let gateway: RunningGateway | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-package-"));
  project = join(folder, "project");
  await install(project, (await makePackages(folder)).client);
  page = readFileSync(join(project, "node_modules/wsfs-client/README.md"), "utf8");
  examples = examplesOf(page);
  for (const { file, code } of examples) writeFileSync(join(project, file), code);
  gateway = await startGateway({ dataDir: join(folder, "gateway") });
  writeFileSync(join(project, "token"), await gateway.issueToken({ workspace: "workspace" }), { mode: 0o600 });
}, 300_000);

afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("it is installed with what it uses alone, and nothing is run for that", () => {
  const { packages } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8")) as {
    packages: Record<string, { hasInstallScript?: boolean }>;
  };
  const { "": _, ...installed } = packages;
  const names = Object.keys(installed).map((path) => path.replace(/^node_modules\//, ""));
  expect(names.sort()).toEqual([
    ...["@types/node", "eventsource-parser", "jose", "oauth4webapi", "openid-client", "undici", "undici-types"],
    ...["wsfs-client", "zod"],
  ]);
  expect(Object.values(installed).filter(({ hasInstallScript }) => hasInstallScript)).toEqual([]);
});

test("its page speaks of it", () => {
  expect(examples.length).toBeGreaterThan(8);
  expect(examples.map(({ code }) => code).join("")).toContain('from "wsfs-client"');
  expect(examples.map(({ code }) => code).join("")).not.toContain('"wsfs/client"');
});

const WAYS = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
];

test.each(WAYS)("its types hold with $moduleResolution, its own checked too", async (way) => {
  // Without "types": it brings Node's own along.
  const { types: _, ...strict } = COMPILER_OPTIONS;
  const compilerOptions = { ...strict, ...way, skipLibCheck: false, noEmit: true, allowImportingTsExtensions: true };
  const wrong = 'import { gateway } from "./client.ts";\n// @ts-expect-error\ngateway.nodes.list({ pathh: "/" });\n';
  writeFileSync(join(project, "wrong.ts"), wrong);
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const compiled = await run(process.execPath, [TSC, "-p", project]);
  expect(`${compiled.stdout}${compiled.stderr}`).toBe("");
  expect(compiled.code).toBe(0);
});

test("its examples run", { timeout: 120_000 }, async () => {
  const compilerOptions = { ...COMPILER_OPTIONS, module: "nodenext", rewriteRelativeImportExtensions: true };
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, include: ["*.ts"], exclude: ["wrong.ts"] }),
  );
  expect(await run(process.execPath, [TSC, "-p", project])).toMatchObject({ code: 0, stdout: "" });
  const env = { ...process.env, WSFS_BASE_URL: gateway?.baseUrl, WSFS_TOKEN_FILE: join(project, "token") };
  const some = examples.filter(({ file }) => ["first.ts", "streams.ts", "follow.ts", "failure.ts"].includes(file));
  expect(some).toHaveLength(4);
  for (const { file, output } of some) {
    const ended = await run(process.execPath, [file.replace(/ts$/, "js")], { cwd: project, env });
    expect(ended, file).toMatchObject({ code: 0, stdout: output, stderr: "" });
  }
});

/**
 * The sessions of docs/gateway/api.md and faults.md, run in one shell against real gateways: what stands below
 * each command is what it prints. "…" stands for any text within a line.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import { openAccounts } from "../../src/gateway/accounts/index.ts";
import { issueToken, startGateway } from "../../src/gateway/start.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { finished } from "../support/child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = new URL("../../docs/gateway/", import.meta.url);
/** In the order in which they are played. */
const PAGES = ["api.md", "faults.md"];
/** More than any machine needs; a session that hangs ends with it. */
const LIMIT_MS = 240_000;

/**
 * `wsfs gateway token` and `wsfs gateway engine add` as the pages call them, their arguments one a line, without a Node for
 * each: the commands themselves are tested in test/cli.
 */
async function serveCommands(): Promise<string> {
  const server = createServer(async (request, response) => {
    const [, command, ...given] = (await text(request)).trim().split("\n");
    if (command === "engine") return void response.end(addEngine(given));
    const { values } = parseArgs({
      args: given,
      options: {
        data: { type: "string", default: "" },
        workspace: { type: "string" },
        scope: { type: "string", multiple: true },
        ttl: { type: "string", default: "3600" },
      },
    });
    const { data, workspace, scope, ttl } = values;
    const token = await issueToken(data, {
      ttlSeconds: Number(ttl),
      ...(workspace === undefined ? {} : { workspace }),
      ...(scope === undefined ? {} : { scopes: scope }),
    });
    response.end(`${token}\n`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("No port.");
  return `http://127.0.0.1:${address.port}`;
}

/** `add NAME … -- COMMAND…` */
function addEngine(given: readonly string[]): string {
  const end = given.indexOf("--");
  const { values, positionals } = parseArgs({
    args: given.slice(1, end),
    options: { data: { type: "string", default: "" }, "time-limit": { type: "string", default: "3600" } },
    allowPositionals: true,
  });
  const [name = ""] = positionals;
  const accounts = openAccounts(values.data, systemClock);
  const scopes = SCOPES.filter((scope) => scope.startsWith("node."));
  const timeLimitSeconds = Number(values["time-limit"]);
  const command = given.slice(end + 1);
  accounts.engines.add({ name, description: "", command, timeLimitSeconds, scopes, inputSchema: null });
  accounts.close();
  return `There is an engine ${name}\n`;
}

interface Step {
  /** The page, and the line there, from 1. */
  readonly place: string;
  readonly command: string;
  readonly expected: readonly string[];
}

function stepsOf(page: string, text: string): Step[] {
  const steps: { place: string; command: string; expected: string[] }[] = [];
  let within = false;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.startsWith("```")) within = line === "```console";
    else if (!within) continue;
    else if (line.startsWith("$ ")) steps.push({ place: `${page}:${index + 1}`, command: line.slice(2), expected: [] });
    else steps.at(-1)?.expected.push(line);
  }
  return steps;
}

function fits(expected: string, printed: string): boolean {
  const parts = expected.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(printed);
}

/** What each step printed, by a marker line around it: a step that ends without a newline is seen as it is. */
async function play(steps: readonly Step[], environment: Record<string, string>): Promise<string[][]> {
  const mark = "==== step";
  const script = steps.map(({ command }) => `${command}\nprintf '\\n${mark}\\n'`).join("\n");
  const folder = await temporaryFolder();
  const shell = spawn("bash", ["-c", script], {
    cwd: folder,
    env: { ...process.env, LC_ALL: "C.UTF-8", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { code, stdout, stderr } = await finished(shell);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout
    .split(`\n${mark}\n`)
    .slice(0, -1)
    .map((text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n")));
}

test(
  "every session of the pages is as it says",
  async () => {
    const texts = await Promise.all(PAGES.map((page) => readFile(new URL(page, FOLDER), "utf8")));
    const steps = PAGES.flatMap((page, index) => stepsOf(page, texts[index] ?? ""));
    expect(steps.length).toBeGreaterThan(80);
    const [dataDir, lateDir, bin] = await Promise.all([temporaryFolder(), temporaryFolder(), temporaryFolder()]);
    const gateway = await startGateway({ dataDir, workspaces: ["main", "second"] });
    onTestFinished(() => gateway.close());
    const late = await startGateway({ dataDir: lateDir, pathLagMs: 3_600_000, control: true });
    onTestFinished(() => late.close());
    const wsfs = join(bin, "wsfs");
    await writeFile(wsfs, `#!/bin/sh\nprintf '%s\\n' "$@" | curl -s --data-binary @- '${await serveCommands()}'\n`);
    await chmod(wsfs, 0o755);
    const printed = await play(steps, {
      PATH: `${bin}:${process.env.PATH}`,
      BASE: gateway.baseUrl,
      DATA: dataDir,
      LATE_BASE: late.baseUrl,
      LATE_TOKEN: await late.issueToken({ workspace: "workspace" }),
    });
    expect(printed.length).toBe(steps.length);
    const different = steps
      .map((step, index) => ({ ...step, printed: printed[index] ?? [] }))
      .filter(
        ({ expected, printed }) =>
          printed.length !== expected.length || !expected.every((text, at) => fits(text, printed[at] ?? "")),
      );
    expect(different).toEqual([]);
  },
  LIMIT_MS,
);

test("a session that prints something else is seen", () => {
  const text = "# x\n```console\n$ one\na …\n\n$ two\n```\n```\n$ none\n```\n";
  expect(stepsOf("a.md", text)).toEqual([
    { place: "a.md:3", command: "one", expected: ["a …", ""] },
    { place: "a.md:6", command: "two", expected: [] },
  ]);
  expect([fits("a …", "a b"), fits("a.…", "ab"), fits("a", "a b")]).toEqual([true, false, false]);
});

/**
 * A gateway that is killed at each of its fault points while executions wait, begin, run and end: none runs twice, none is
 * lost, none stays running for good, and no process is left.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Execution, execution, executionPage } from "../../../src/contract/engines.ts";
import { journalPage } from "../../../src/contract/resources.ts";
import { openAccounts } from "../../../src/gateway/accounts/index.ts";
import { makeDataFolder } from "../../../src/gateway/data-folder.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { bundleGateway } from "../../support/gateway-bundle.ts";
import { Broken, type Callee, callGateway, jsonBody } from "../../support/gateway-calls.ts";
import { type DeathAt, type GatewayChild, warmGateway } from "../../support/gateway-child.ts";
import { gatewayLabels } from "../../support/step-labels.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const FINAL = ["succeeded", "failed", "cancelled", "timed-out", "interrupted"];
/** A life that does not come by its fault point ends after so long. */
const LIFE_MS = 6000;
const POLL = { timeout: 60_000, interval: 50 };

const labels = [...gatewayLabels()].filter((label) => /execution/.test(label) && !/trigger/.test(label));
const deaths: DeathAt[] = [
  ...labels.flatMap((label) => [1, 3].map((times) => ({ label, times }))),
  ...["gateway: about to commit", "gateway: committed"].flatMap((label) =>
    [4, 6, 7].map((times) => ({ label, times })),
  ),
];

test("there are the fault points that it is killed at", () => {
  expect(labels.sort()).toEqual([
    "gateway: execution ended",
    "gateway: execution started",
    "gateway: execution taken",
    "gateway: left executions ended",
  ]);
});

test(`${deaths.length} kills`, { timeout: 300_000 }, async () => {
  const folder = await temporaryFolder();
  const dataDir = path.join(folder, "data");
  const ran = path.join(folder, "ran");
  await appendFile(ran, "");
  const bundle = await bundleGateway(folder);
  await makeDataFolder(dataDir);
  const accounts = openAccounts(dataDir, systemClock);
  const engine = { description: "", timeLimitSeconds: 300, scopes: [], inputSchema: null };
  const begin = `echo $WSFS_EXECUTION >> '${ran}'`;
  accounts.engines.add({ ...engine, name: "short", command: ["sh", "-c", begin] });
  // A child of its own session that outlives it, unless somebody looks for it.
  const stays = `${begin}; setsid sleep 600 & sleep 600`;
  accounts.engines.add({ ...engine, name: "long", command: ["sh", "-c", stays] });
  accounts.close();

  let child: GatewayChild | undefined;
  onTestFinished(() => child?.end("SIGKILL"));
  /** Undefined: it died during its start. */
  const live = async (death?: DeathAt) => {
    child = await warmGateway(bundle, dataDir).start(death);
    return child;
  };
  const call = async (to: Callee, method: string, at: string, body?: object) => {
    const answer = await callGateway(to, method, at, body === undefined ? {} : jsonBody(body));
    return { status: answer.status, json: answer.body.length === 0 ? undefined : JSON.parse(String(answer.body)) };
  };
  const keys: string[] = [];
  const answered = new Map<string, string>();
  const start = async (to: Callee, key: string): Promise<void> => {
    const body = { engine: key.startsWith("long") ? "long" : "short", idempotencyKey: key };
    const { status, json } = await call(to, "POST", "/v1/executions", body);
    expect([key, status]).toEqual([key, 201]);
    const { id } = execution.parse(json);
    expect(answered.get(key) ?? id).toBe(id);
    answered.set(key, id);
  };
  const first = await live();
  if (first === undefined) throw new Error("The gateway did not start.");
  for (const name of ["short", "long"]) {
    expect((await call(first, "POST", "/v1/installations", { engine: name })).status).toBe(201);
  }
  first.end("SIGKILL");
  await first.ended;

  for (const [number, death] of deaths.entries()) {
    const gateway = await live(death);
    if (gateway === undefined) continue;
    const wanted = [...keys.slice(-2), `short-${number}`, `long-${number}`, `short-again-${number}`];
    for (const key of wanted) {
      if (!keys.includes(key)) keys.push(key);
      try {
        await start(gateway, key);
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
      }
    }
    const timer = setTimeout(() => gateway.end("SIGKILL"), LIFE_MS);
    await gateway.ended;
    clearTimeout(timer);
  }

  const last = await live();
  if (last === undefined) throw new Error("The gateway did not start.");
  for (const key of keys) await start(last, key);
  const list = async (): Promise<Execution[]> =>
    executionPage.parse((await call(last, "GET", "/v1/executions?pageSize=1000")).json).items;
  for (const { id, engine: of } of await list()) {
    if (of.name === "long") expect((await call(last, "POST", `/v1/executions/${id}/cancel`)).status).toBe(200);
  }
  await expect.poll(async () => (await list()).filter(({ state }) => !FINAL.includes(state)), POLL).toEqual([]);

  const all = await list();
  expect(all.map(({ id }) => id).sort()).toEqual([...answered.values()].sort());
  expect(all).toHaveLength(keys.length);
  const lines = (await readFile(ran, "utf8")).split("\n").filter((line) => line !== "");
  expect(lines.filter((line, index) => lines.indexOf(line) !== index)).toEqual([]);
  const succeeded = all.filter(({ state }) => state === "succeeded").map(({ id }) => id);
  expect(succeeded.filter((id) => !lines.includes(id))).toEqual([]);
  // Each kill is told of some that it interrupted.
  expect(all.filter(({ state }) => state === "interrupted").length).toBeGreaterThan(deaths.length / 2);
  const journal = journalPage.parse((await call(last, "GET", "/v1/journal?pageSize=1000")).json).items;
  for (const { id, state, startedAt } of all) {
    const told = journal.filter(({ by }) => by?.execution === id).map(({ kind }) => kind.replace("execution.", ""));
    expect(told).toEqual(startedAt === null ? ["queued", state] : ["queued", "running", state]);
  }
  last.end("SIGTERM");
  await last.ended;
  expect(processesBelow(dataDir)).toEqual([]);
});

/** Working folders of processes there. */
function processesBelow(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readlinkSync(`/proc/${pid}/cwd`)];
      } catch {
        return [];
      }
    })
    .filter((cwd) => cwd.startsWith(`${folder}/`));
}

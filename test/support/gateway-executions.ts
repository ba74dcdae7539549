/**
 * Executions and a trigger among what a gateway is asked for while it is killed again and again: each that was asked for, and
 * each for an entry that the trigger waits for, is queued once, runs at most once, and ends.
 */
import { appendFileSync, readFileSync } from "node:fs";
import path from "node:path";
import { execution, executionPage, installationPage } from "../../src/contract/engines.ts";
import type { JournalEntry } from "../../src/contract/resources.ts";
import { trigger } from "../../src/contract/triggers.ts";
import { openAccounts } from "../../src/gateway/accounts/index.ts";
import { makeDataFolder } from "../../src/gateway/data-folder.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { type Callee, callGateway, jsonBody } from "./gateway-calls.ts";
import { PARENT } from "./gateway-requests.ts";

/** The kind of entries that the trigger waits for. */
export const MARK = "marked";
const FINAL = ["succeeded", "failed", "cancelled", "timed-out", "interrupted"];
const PATIENCE_MS = 120_000;

export interface ExecutionsUnderKills {
  /** Asks for one after the other until the gateway dies. */
  write(to: Callee, root: string, onAnswer: () => void): Promise<void>;
  /** After a death: what was answered is there, what was not is asked for again with its key. */
  look(to: Callee): Promise<void>;
  /** Waits until all have ended. Throws what was lost or done twice; `activities`: all that the journal tells. */
  verify(to: Callee, activities: () => Promise<readonly JournalEntry[]>): Promise<void>;
}

interface Wanted {
  readonly key: string;
  readonly path: string;
  readonly json: object;
  /** Of the execution, once it was answered. */
  id?: string;
}

export async function executionsUnderKills(dataDir: string): Promise<ExecutionsUnderKills> {
  await makeDataFolder(dataDir);
  const ran = path.join(dataDir, "..", `${path.basename(dataDir)}.ran`);
  appendFileSync(ran, "");
  const accounts = openAccounts(dataDir, systemClock);
  const engine = { description: "", timeLimitSeconds: 60, scopes: [], inputSchema: null };
  accounts.engines.add({ ...engine, name: "note", command: ["sh", "-c", `echo $WSFS_EXECUTION >> '${ran}'`] });
  accounts.close();
  let triggerId: string | undefined;
  let number = 0;
  let asked = 0;
  /** Not answered yet, and answered since the last look. */
  const open = new Set<Wanted>();
  let answered: Wanted[] = [];

  const call = async (to: Callee, method: string, at: string, json?: object) => {
    const { status, body } = await callGateway(to, method, at, json === undefined ? {} : jsonBody(json));
    if (status >= 300 && status !== 409) throw new Error(`${method} ${at}: ${status} ${body}`);
    return { status, json: JSON.parse(String(body)) };
  };

  async function prepare(to: Callee): Promise<void> {
    if (triggerId !== undefined) return;
    // Where the others put their files: nobody else makes a folder.
    await call(to, "POST", "/v1/installations", { engine: "note", path: `/${PARENT}` });
    const installed = installationPage.parse((await call(to, "GET", "/v1/installations")).json);
    if (installed.totalCount !== 1) throw new Error(`there are ${installed.totalCount} installations`);
    const json = { name: "marks", engine: "note", on: { journal: { kinds: [MARK] } }, idempotencyKey: "the-trigger" };
    triggerId = trigger.parse((await call(to, "POST", "/v1/triggers", json)).json).id;
  }

  async function send(to: Callee, wanted: Wanted): Promise<void> {
    const { status, json } = await call(to, "POST", wanted.path, wanted.json);
    if (status !== 201) throw new Error(`${wanted.key}: ${status}`);
    open.delete(wanted);
    if (wanted.path !== "/v1/executions") return;
    const { id } = execution.parse(json);
    if (wanted.id !== undefined && wanted.id !== id) throw new Error(`${wanted.key} is ${wanted.id} and ${id}`);
    wanted.id = id;
    answered.push(wanted);
  }

  const ranTwice = () => {
    const lines = readFileSync(ran, "utf8").split("\n").slice(0, -1);
    return lines.filter((line, index) => lines.indexOf(line) !== index);
  };

  return {
    async write(to, root, onAnswer) {
      await prepare(to);
      for (;;) {
        number += 1;
        const key = `execution-${number}`;
        const isMark = number % 3 === 0;
        const wanted: Wanted = isMark
          ? { key, path: "/v1/journal", json: { nodeId: root, kind: MARK, idempotencyKey: key } }
          : { key, path: "/v1/executions", json: { engine: "note", idempotencyKey: key } };
        if (!isMark) asked += 1;
        open.add(wanted);
        await send(to, wanted);
        onAnswer();
      }
    },
    async look(to) {
      for (const wanted of [...open]) await send(to, wanted);
      const some = answered;
      answered = [];
      for (const wanted of some) await send(to, wanted);
      answered = [];
    },
    async verify(to, activities) {
      await prepare(to);
      // It may wait after many failures: each kill interrupted some.
      await call(to, "PATCH", `/v1/triggers/${triggerId}`, { isEnabled: true });
      const end = Date.now() + PATIENCE_MS;
      for (;;) {
        const { items } = executionPage.parse((await call(to, "GET", "/v1/executions?pageSize=1000")).json);
        const isOver = items.every(({ state }) => FINAL.includes(state));
        // After the states: what has ended by then is told of.
        const told = await activities();
        const count = (kind: string) => told.filter((entry) => entry.kind === kind).length;
        const queued = count("execution.queued");
        const expected = asked + count(MARK);
        if (queued > expected) throw new Error(`${queued} executions were queued, ${expected} were asked for`);
        if (queued === expected && isOver) {
          checkStates(told);
          break;
        }
        if (Date.now() > end) throw new Error(`${queued} of ${expected} executions were queued, and some go on`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const twice = ranTwice();
      if (twice.length > 0) throw new Error(`executions ran twice: ${twice.join(", ")}`);
    },
  };
}

/** Each is queued once and ends once. */
function checkStates(told: readonly JournalEntry[]): void {
  const states = new Map<string, string[]>();
  for (const { kind, by } of told) {
    if (by?.execution === undefined || by === null) continue;
    states.set(by.execution, [...(states.get(by.execution) ?? []), kind.replace("execution.", "")]);
  }
  for (const [id, [queued, running, end, ...more]] of states) {
    const isWhole = queued === "queued" && running === "running" && FINAL.includes(end ?? "") && more.length === 0;
    if (!isWhole)
      throw new Error(`the journal tells of execution ${id}: ${[queued, running, end, ...more].join(", ")}`);
  }
}

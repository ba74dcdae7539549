/**
 * Kills a gateway again and again while it is written to, and holds it to its word: what was
 * answered with 2xx is there after each start, exactly once; what was not answered happened once or
 * not at all, and with its key it happens once in the end; an answered request that is repeated gets
 * the same answer. How each life ends (after how many answers, how long after one, at which fault
 * point, during the start) and what is asked for come from a seed. After each death is looked at
 * what its life has touched; at everything now and then and in the end. Executions: gateway-executions.ts.
 */
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Node } from "../../src/contract/resources.ts";
import { type Answer, Broken, type Callee } from "./gateway-calls.ts";
import { type DeathAt, type GatewayChild, type WarmGateway, warmGateway } from "./gateway-child.ts";
import { executionsUnderKills } from "./gateway-executions.ts";
import { createOracle, getNode, getRoot } from "./gateway-oracle.ts";
import {
  describe,
  drawRequest,
  INLINE_BYTES,
  type Own,
  type Request,
  readAnswer,
  sendRequest,
} from "./gateway-requests.ts";
import { gatewayLabels } from "./step-labels.ts";
import { seededRandom } from "./virtual-clock.ts";

const WRITERS = 6;
/** Answers until the kill; none means that nothing was answered before. */
const ANSWERS_MAX = 30;
/** A life that is to end at a fault point it does not come by ends after so many. */
const ANSWERS_WITHOUT = 60;
/** A random kill comes up to this long after an answer. */
const LATER_MS = 20;
/** One during the start up to this long after its beginning. */
const STARTING_MS = 120;
const PASSED_MAX = 25;
const REPEATS = 3;
/** Whoever hears of a death by a broken connection waits so long for the process to be gone. */
const DEATH_MS = 60_000;
/** Deaths between two looks at everything, and how many contents are read then. */
const WHOLE_EVERY = 100;
const WHOLE_CONTENTS = 100;

export interface KillOptions {
  /** Of gateway-bundle.ts. */
  readonly bundle: string;
  readonly dataDir: string;
  readonly kills: number;
  readonly seed: number;
  readonly onKill?: (kill: number) => void;
}

export interface KillReport {
  readonly kills: number;
  /** Requests answered with 2xx, all of which were found again. */
  readonly answered: number;
  /** Requests that a kill left without an answer … */
  readonly unanswered: number;
  /** … and of these, those that had happened all the same. */
  readonly happened: number;
  /** Answered requests that were sent again after the kill, and answered the same. */
  readonly repeated: number;
  /** How many lives ended which way; fault points by their labels. */
  readonly deaths: Readonly<Record<string, number>>;
}

/** How a life is to end. */
type Plan =
  | { readonly at: "answer" | "moment"; readonly answers: number; readonly laterMs: number }
  | { readonly at: "start"; readonly laterMs: number }
  | { readonly at: "step"; readonly death: DeathAt };

function drawPlan(random: () => number, labels: readonly string[]): Plan {
  const choice = random();
  const answers = 1 + Math.floor(random() * ANSWERS_MAX);
  if (choice < 0.2) return { at: "answer", answers, laterMs: 0 };
  if (choice < 0.5) return { at: "moment", answers, laterMs: random() * LATER_MS };
  if (choice < 0.6) return { at: "start", laterMs: random() * STARTING_MS };
  const label = labels[Math.floor(random() * labels.length)] ?? "";
  return { at: "step", death: { label, times: 1 + Math.floor(random() ** 2 * PASSED_MAX) } };
}

/** Throws what it found when the gateway does not keep its word. */
export async function killGateway({ bundle, dataDir, kills, seed, onKill }: KillOptions): Promise<KillReport> {
  const random = seededRandom(seed);
  const labels = [...gatewayLabels()].sort();
  const oracle = createOracle(random);
  const executions = await executionsUnderKills(dataDir);
  const report = { kills, answered: 0, unanswered: 0, happened: 0, repeated: 0 };
  const deaths: Record<string, number> = {};
  /** Sent, and not answered yet; by now it may have happened. */
  const open = new Set<Request>();
  const touched = new Set<string>();
  let answers: { readonly request: Request; readonly text: string }[] = [];
  let largeVersions = 0;
  let number = 0;
  let root: string | undefined;

  function learn(request: Request, answer: Answer): Node {
    const node = readAnswer(request, answer);
    oracle.expect(node, request.do === "delete");
    touched.add(node.id);
    if ("content" in request && request.content.length > INLINE_BYTES) largeVersions += 1;
    if (request.key !== undefined) answers.push({ request, text: String(answer.body) });
    open.delete(request);
    return node;
  }

  /** Asked for again with its key; without one, looked at. */
  async function resolve(to: Callee, request: Request): Promise<void> {
    if (request.key !== undefined) {
      const hasHappened = oracle.isTold(request.key);
      learn(request, await sendRequest(to, request));
      if (hasHappened) report.happened += 1;
      return;
    }
    if (!("node" in request)) throw new Error(`${describe(request)}: expected a key`);
    const now = await getNode(to, request.node.id);
    open.delete(request);
    touched.add(request.node.id);
    const isDone = "name" in request ? now?.name === request.name : now === undefined;
    if (!isDone) return;
    report.happened += 1;
    const revision = request.node.revision + 1;
    if (now !== undefined && now.revision !== revision) throw new Error(`${describe(request)}: happened in part`);
    oracle.expect(now ?? { ...request.node, revision }, now === undefined);
  }

  async function repeat(to: Callee): Promise<void> {
    const some = answers.sort(() => random() - 0.5).slice(0, REPEATS);
    answers = [];
    for (const { request, text } of some) {
      const { body } = await sendRequest(to, request);
      if ("node" in request) touched.add(request.node.id);
      if (String(body) !== text) throw new Error(`${describe(request)}: first ${text}, when repeated ${body}`);
      report.repeated += 1;
    }
  }

  /** What the life before left: known by now, and as it was answered. */
  async function look(to: Callee, isWhole: boolean): Promise<void> {
    await oracle.readJournal(to);
    for (const request of [...open]) await resolve(to, request);
    await oracle.readJournal(to);
    await oracle.verify(to, touched);
    touched.clear();
    await repeat(to);
    await executions.look(to);
    if (isWhole) await oracle.verifyAll(to, WHOLE_CONTENTS);
  }

  async function write(to: Callee, onAnswer: () => void): Promise<void> {
    let own: Own | undefined;
    root ??= await getRoot(to);
    for (;;) {
      number += 1;
      const request = drawRequest({ random, seed, root, number }, own);
      open.add(request);
      const answer = await sendRequest(to, request).catch((error: unknown) => {
        report.unanswered += 1;
        throw error;
      });
      const node = learn(request, answer);
      report.answered += 1;
      const version = own?.node.id === node.id ? (own.node.head ?? undefined) : undefined;
      own = { node, isDeleted: request.do === "delete", version };
      onAnswer();
    }
  }

  /** Resolves when the gateway is dead. */
  async function live(gateway: GatewayChild, plan: Plan, isWhole: boolean): Promise<void> {
    let rest = "answers" in plan ? plan.answers : ANSWERS_WITHOUT;
    const onAnswer = () => {
      rest -= 1;
      if (rest !== 0) return;
      if (plan.at === "moment") setTimeout(() => gateway.end("SIGKILL"), plan.laterMs);
      else gateway.end("SIGKILL");
    };
    try {
      await look(gateway, isWhole);
      root ??= await getRoot(gateway);
      const runs = executions.write(gateway, root, onAnswer);
      const writers = [runs, ...Array.from({ length: WRITERS }, () => write(gateway, onAnswer))];
      const ends = await Promise.allSettled(writers);
      for (const end of ends) if (end.status === "rejected") throwUnlessBroken(end.reason);
    } catch (error) {
      throwUnlessBroken(error);
    }
    if (!(await isWithin(gateway.ended, DEATH_MS))) throw new Error("The connection broke without a kill.");
  }

  let warm: WarmGateway = warmGateway(bundle, dataDir);
  let running: GatewayChild | undefined;
  try {
    for (let kill = 1; kill <= kills; kill += 1) {
      const plan = drawPlan(random, labels);
      const starting = warm;
      const early = plan.at === "start" ? setTimeout(() => starting.end("SIGKILL"), plan.laterMs) : undefined;
      running = await starting.start(plan.at === "step" ? plan.death : undefined);
      warm = warmGateway(bundle, dataDir);
      if (running !== undefined) await live(running, plan, kill % WHOLE_EVERY === 0);
      else if (plan.at !== "start" && plan.at !== "step") throw new Error("The gateway did not start.");
      clearTimeout(early);
      await starting.ended;
      const way = plan.at === "step" ? plan.death.label : plan.at;
      deaths[way] = (deaths[way] ?? 0) + 1;
      onKill?.(kill);
    }
    running = await warm.start();
    if (running === undefined) throw new Error("The gateway did not start.");
    await look(running, false);
    const last = running;
    await executions.verify(last, async () => {
      await oracle.readJournal(last);
      return oracle.activities;
    });
    await oracle.verifyAll(running, Number.POSITIVE_INFINITY);
    running.end("SIGTERM");
    await running.ended;
    // What was broken off left nothing behind; the last start has collected it.
    const names = await readdir(path.join(dataDir, "blobs"), { recursive: true });
    const blobs = names.filter((name) => path.basename(name).length > 2 && name !== "unfinished");
    if (blobs.length !== largeVersions) throw new Error(`there are ${blobs.length} blobs, expected ${largeVersions}`);
    return { ...report, deaths };
  } finally {
    running?.end("SIGKILL");
    warm.end("SIGKILL");
    await Promise.all([running?.ended, warm.ended]);
  }
}

function throwUnlessBroken(error: unknown): void {
  if (!(error instanceof Broken)) throw error;
}

async function isWithin(event: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const isInTime = await Promise.race([event.then(() => true), late]);
  clearTimeout(timer);
  return isInTime;
}

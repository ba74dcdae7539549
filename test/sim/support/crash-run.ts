/**
 * A short script of programs on one mount whose daemon dies at given places, and is started again each time: the mount,
 * the gateway, rows and files must be as if the interrupted call had happened, or had not.
 */
import { createLayout } from "../../../src/content/layout.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import type { Connection } from "../../../src/metadata/database.ts";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import { CallError, type Calls } from "./calls.ts";
import { violations } from "./invariants.ts";
import { createModel, type Model } from "./model.ts";
import { type Mount, STATE } from "./mount.ts";
import { createOracle } from "./oracle.ts";
import { edit } from "./outside.ts";
import { createPaired, type Paired } from "./paired.ts";
import { bytesOf, type Program, runProgram } from "./programs.ts";
import { rowsOf } from "./rows.ts";
import type { Step } from "./steps.ts";
import type { Fault as TransportFault } from "./transport.ts";
import { differences, gatewayTree, treeOf } from "./tree.ts";
import { createWorld, Fault } from "./world.ts";

export type CrashStep =
  | Program
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "drain" | "remount" | "release" | "forget" }
  | { readonly do: "hold"; readonly path: string }
  | { readonly do: "poke"; readonly at: number; readonly size: number; readonly sync: boolean }
  | Extract<Step, { do: "outside" }>;

export interface Script {
  readonly name: string;
  readonly steps: readonly CrashStep[];
  readonly before?: readonly Extract<Step, { do: "outside" }>[];
  /** Somebody else changes the workspace too: the mount is no plain folder then. */
  readonly isShared?: boolean;
  readonly lag?: { readonly path: number; readonly journal: number; readonly id: number };
  readonly cacheLimit?: number;
  /** So many names are read in the background, and more are dropped again. */
  readonly namesAhead?: number;
  /** One way takes up to this. */
  readonly latencyMs?: number;
  /** The kernel writes whole files by itself. */
  readonly isPassing?: boolean;
  /** See CrashOptions. */
  readonly fault?: CrashOptions["fault"];
}

export interface CrashOptions {
  /** The mount dies at these steps, counted from 1 over all its lives. */
  readonly kills?: readonly number[];
  /** This change of the gateway, counted from 1, meets the fault. */
  readonly fault?: { readonly request: number; readonly what: TransportFault };
}

export interface CrashRun {
  /** The steps passed, in order. */
  readonly labels: readonly string[];
  /** Changes asked of the gateway, retries included, in order. */
  readonly requests: readonly string[];
  /** Labels passed before the request of this number was sent. */
  readonly sentAt: readonly number[];
  readonly kills: number;
}

const SEED = 1;
const QUIET_MS = 15_000;
/** A request that was given up arrives this late at the latest, and its key is looked for. */
const LATE_MS = 60_000;
const ROUNDS_MAX = 40;

export async function playScript(script: Script, options: CrashOptions = {}): Promise<CrashRun> {
  const { fault = script.fault } = options;
  const kills = [...(options.kills ?? [])];
  const labels: string[] = [];
  const requests: string[] = [];
  const sentAt: number[] = [];
  const faults: string[] = [];
  let killed = 0;
  let die = () => {};
  let isOver = false;

  const oracle = createOracle(
    () => world.store,
    (what) => faults.push(what),
  );
  const world = await createWorld({
    // See mount.ts.
    seed: script.isPassing === true ? SEED + 1 : SEED,
    mounts: ["alpha"],
    isDown: true,
    settings: {
      pollMs: 4_000,
      ...(script.cacheLimit === undefined ? {} : { cacheLimit: script.cacheLimit }),
      ...(script.namesAhead === undefined ? {} : { namesAhead: script.namesAhead }),
    },
    sabotage: {
      choose(request: HttpRequest) {
        if (request.method === "GET" || isOver) return undefined;
        requests.push(`${request.method} ${request.path}`);
        sentAt.push(labels.length);
        return fault?.request === requests.length ? fault.what : "none";
      },
    },
    onAnswer: oracle.onAnswer,
    onStep(mount, label) {
      if (isOver) return;
      labels.push(label);
      if (kills[0] !== labels.length) return;
      kills.shift();
      killed += 1;
      world.note(`${mount.name} dies at ${labels.length}: ${label}`);
      oracle.crashed(mount);
      const rows = mount.process?.database;
      numbers = rows === undefined || rows.inTransaction ? undefined : numbersIn(rows);
      mount.crash();
      die();
    },
  });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  const theMount: Mount = mount;
  const model: Model | undefined = script.isShared === true ? undefined : createModel();
  let calls: Calls | undefined;
  let paired: Paired | undefined;
  let held: number | undefined;
  let numbers: string | undefined;
  if (script.lag !== undefined) world.setLag(script.lag);
  Object.assign(mount.weather, { latencyMs: script.latencyMs ?? 0 });

  function theCalls(): Calls {
    const now = paired?.calls ?? calls;
    if (now === undefined) throw new Fault("is down");
    return now;
  }

  /** To its end, or the mount's. */
  async function untilDead(work: () => Promise<unknown>): Promise<void> {
    const death = new Promise<"dead">((resolve) => {
      die = () => resolve("dead");
    });
    const done = work().catch((error: unknown) => {
      if (!(error instanceof CallError)) throw error;
      world.note(`  ${error.message}`);
    });
    done.catch(() => {});
    const result = await world.run(Promise.race([done, death]));
    if (result === "dead") await revive();
  }

  async function revive(): Promise<void> {
    const dead: Mount = theMount;
    held = undefined;
    for (;;) {
      const death = new Promise<"dead">((resolve) => {
        die = () => resolve("dead");
      });
      const started = dead.start().then(() => "up" as const);
      started.catch(() => {});
      if ((await world.run(Promise.race([started, death]))) === "up" && dead.process !== undefined) break;
    }
    if (dead.process === undefined) throw new Fault("does not start");
    const now = numbersIn(dead.process.database);
    // What others did comes in as soon as it is up.
    if (paired !== undefined && numbers !== undefined && now !== numbers)
      throw new Fault(`st_ino: before ${numbers}, now ${now}`);
    numbers = undefined;
    const fresh = oracle.watch(dead, dead.process.kernel);
    calls = fresh;
    // What is only looking is not killed.
    await withoutKills(async () => {
      if (paired !== undefined) await world.run(paired.crashed(fresh));
      else if (model !== undefined) paired = createPaired(fresh, model, () => false);
    });
    check();
  }

  async function withoutKills(work: () => Promise<void>): Promise<void> {
    const before = isOver;
    isOver = true;
    await work();
    isOver = before;
  }

  function check(): void {
    world.check();
    if (mount?.process === undefined) throw new Fault("is down");
    oracle.look(mount);
    const [first] = [...violations(mount.process), ...oracle.returned(mount), ...faults];
    if (first !== undefined) throw new Fault(first);
  }

  function carryOut(step: CrashStep, label: string): Promise<unknown> {
    switch (step.do) {
      case "wait":
        return world.clock.advance(0).then(() => sleepOn(step.ms));
      case "drain":
        return drain();
      case "remount":
        return theMount.stop();
      case "hold":
        return theCalls()
          .open(step.path, { write: true })
          .then((fd) => {
            held = fd;
          });
      case "poke": {
        const fd = held;
        if (fd === undefined) return Promise.resolve();
        const written = theCalls().write(fd, step.at, bytesOf(label, step.size));
        return written.then(() => (step.sync ? theCalls().fsync(fd) : undefined));
      }
      case "release": {
        const fd = held;
        held = undefined;
        return fd === undefined ? Promise.resolve() : theCalls().close(fd);
      }
      case "forget":
        mount?.process?.kernel.dropCaches();
        return Promise.resolve();
      case "outside":
        return Promise.resolve();
      default:
        return runProgram(theCalls(), step, label);
    }
  }

  /** Time that ends early with the mount. */
  function sleepOn(ms: number): Promise<void> {
    return new Promise((resolve) => void world.clock.setTimer(ms, resolve));
  }

  async function drain(): Promise<void> {
    const process = mount?.process;
    if (process === undefined) throw new Fault("is down");
    const limit = new AbortController();
    const timer = world.clock.setTimer(10 * 60_000, () => limit.abort());
    const { drained, left } = await process.engine.drain({ settle: true, signal: limit.signal });
    timer.cancel();
    if (!drained) throw new Fault(`does not drain: ${left.join("; ")}`);
  }

  try {
    // What is there before anybody mounts it.
    for (const [index, step] of (script.before ?? []).entries()) await edit(world, step, `before${index}`);
    await revive();
    // From here on the root is known.
    await withoutKills(async () => {
      if (paired !== undefined) await world.run(paired.compare(true));
    });
    for (const [index, step] of script.steps.entries()) {
      world.note(`step ${index}: ${JSON.stringify(step)}`);
      if (step.do === "outside") await edit(world, step, `${index}`);
      else await untilDead(() => carryOut(step, `x${index}`));
      await world.clock.settle();
      if (theMount.process === undefined) await revive();
      // Until it dies it is the run that nothing interrupts, which is checked at its end.
      if (killed > 0) check();
    }
    isOver = true;
    if (held !== undefined) await world.run(theCalls().close(held));
    mount.weather.latencyMs = 0;
    world.setLag({ path: 0, journal: 0, id: 0 });
    await rest();
    await compareAll();
    return { labels, requests, sentAt, kills: killed };
  } catch (error) {
    if (error instanceof Error) Object.assign(error, { lines: world.lines });
    throw error;
  } finally {
    world.end();
  }

  /** All has arrived, been told and come to rest. */
  async function rest(): Promise<void> {
    const process = mount?.process;
    if (process === undefined) throw new Fault("is down");
    await world.clock.advance(fault === undefined ? 0 : LATE_MS);
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      await world.run(drain());
      const before = world.position();
      await world.clock.advance(QUIET_MS);
      check();
      const rows = rowsOf(process.database);
      const isAtRest = process.engine.status().dirty === 0 && rows.rereads().length === 0 && rows.arrivals() === 0;
      if (isAtRest && world.position() === before) return;
    }
    const left = [];
    for await (const items of process.engine.queue(5)) left.push(...items);
    throw new Fault(`does not come to rest: ${JSON.stringify(left)}`);
  }

  async function compareAll(): Promise<void> {
    const process = mount?.process;
    if (process === undefined) throw new Fault("is down");
    if (paired !== undefined) await world.run(paired.compare(true));
    const there = await world.run(gatewayTree(world.outside, world.workspace.root));
    const shown = await world.run(treeOf(process.kernel, { withContent: true }));
    const found = [
      ...differences(shown, there, ["the mount", "the gateway"]),
      ...oracle.missing(),
      ...strays(there.size),
      ...(await leftovers()),
    ];
    if (found.length > 0) throw new Fault(found.join("\n"));
  }

  /** Live nodes nobody can see, and contents that became a version of one node twice. */
  function strays(shown: number): string[] {
    const live = Number(world.store.prepare("SELECT count(*) FROM node WHERE deleted = 0").pluck().get());
    const twice = world.store
      .prepare(
        "SELECT node, hash, count(*) AS times FROM version WHERE size > 0 GROUP BY node, hash HAVING count(*) > 1",
      )
      .all();
    return [
      ...(live === shown + 1 ? [] : [`the gateway has ${live} nodes, the tree ${shown} and its root`]),
      ...twice.map((row) => `one content, more than one version: ${JSON.stringify(row)}`),
    ];
  }

  /** What lies in the state dir that no row knows, and rows whose file is not there. */
  async function leftovers(): Promise<string[]> {
    const process = mount?.process;
    if (process === undefined) return [];
    const paths = createLayout(process.files, STATE);
    const files = new Set<number>();
    for await (const id of paths.cacheFiles()) files.add(id);
    const snapshots: number[] = [];
    for await (const id of paths.snapshots()) snapshots.push(id);
    const rows = new Map(process.database.prepare("SELECT lineage, bytes FROM live").raw().all() as [number, number][]);
    const unlike: string[] = [];
    for (const [id, bytes] of rows) {
      // A row without a file is made anew when it is opened.
      const { allocated } = files.has(id)
        ? await process.files.stat(paths.cacheFile(kernelNodeId(id)))
        : { allocated: 0 };
      if (allocated !== bytes) unlike.push(`cache file ${id} takes ${allocated} bytes, its row says ${bytes}`);
    }
    return [
      ...[...files].filter((id) => !rows.has(id)).map((id) => `cache file ${id} has no row`),
      ...unlike,
      ...snapshots.map((id) => `snapshot ${id} is still there`),
    ];
  }
}

/** Every name with its st_ino. */
function numbersIn(rows: Connection): string {
  return JSON.stringify(rows.prepare("SELECT parent, name, inode FROM entry ORDER BY parent, name").raw().all());
}

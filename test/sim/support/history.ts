/** Plays a history: the steps, what is checked after each, and the end in which all must agree. */
import { ALL_FEATURES, type Features } from "../../../src/contract/features.ts";
import { minus, plus } from "../../../src/lib/clocks.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { CallError, type Calls, NETWORK_CODES } from "./calls.ts";
import { createEnding } from "./ending.ts";
import { violations } from "./invariants.ts";
import { createModel } from "./model.ts";
import type { Mount, Process, Sabotage } from "./mount.ts";
import { createOracle, type Oracle } from "./oracle.ts";
import { edit } from "./outside.ts";
import { createPaired, type Paired } from "./paired.ts";
import { createPast, type Past } from "./past.ts";
import { bytesOf, type Program, runProgram } from "./programs.ts";
import { describeStep, type Step } from "./steps.ts";
import { count, type Tally } from "./tally.ts";
import type { Fault as TransportFault } from "./transport.ts";
import { lookAround } from "./tree.ts";
import { createWorld, Fault, type World } from "./world.ts";

export interface HistoryOptions {
  readonly seed: number;
  /** Several share the folders and conflict; one alone must behave like a plain folder throughout. */
  readonly mounts: 1 | 2 | 3;
  /** At the start, milliseconds. */
  readonly lag?: { readonly path: number; readonly journal: number; readonly id: number };
  /** Whatever breaks the engine on purpose, before it starts. */
  readonly sabotage?: Sabotage;
  /** What the gateway is taken to be able to do, where not all. */
  readonly features?: Features;
  /** Counts what is played. */
  readonly tally?: Tally | undefined;
  /** Faults of the network, where not all. */
  readonly faults?: readonly TransportFault[];
  /** Of several mounts: the past is looked at, restored and taken back too; see past.ts. */
  readonly hasPast?: true;
}

export const NAMES: readonly string[] = ["alpha", "beta", "gamma"];
/** How often a mount asks for news, drawn by the world's seed: also the long wait at the end goes by with it. */
const POLLS_MS = [1_000, 5_000, 2_000, 5_000];
const LESSER_POLLS_MS = [5_000, 20_000, 10_000, 20_000];
/** Longer than any time after which rows are looked at again … */
const QUIET_MS = 15_000;
/** … and than it takes to ask so often. */
const QUIET_POLLS = 3;
/** A death at a place that is not come to in this time does not happen. */
const DEATH_MS = 2_000;
/** Between two looks at a mount alone while time goes by. */
const LOOK_MS = 700;

/**
 * So many names are read in the background, and more are dropped again: none are read, few, some, all of these small
 * trees.
 */
const FEW_NAMES = 3;
const NAMES_AHEAD = [undefined, FEW_NAMES, 12, 1000];
/**
 * Where few names are kept: few bytes are, so that names without bytes are there to be dropped, and a folder may lose
 * its names soon after its last use. These kernels take in an answer at once.
 */
const FEW = { lookupProbeMs: 1_000 };
const FEW_BYTES = { cacheLimit: 1_000 };

/** What may go wrong for a program when somebody else changes the same names. */
const ORDINARY = new Set(["ENOENT", "EEXIST", "ENOTDIR", "EISDIR", "ENOTEMPTY", "EINVAL", "ELOOP", "EPERM", "EBUSY"]);

/** Rejects with a Fault when something did not hold; resolves with the lines of what happened. */
export async function playHistory(steps: readonly Step[], options: HistoryOptions): Promise<readonly string[]> {
  let world: World | undefined;
  let past: Past | undefined;
  try {
    const names = NAMES.slice(0, options.mounts);
    const polls = options.features === undefined ? POLLS_MS : LESSER_POLLS_MS;
    const pollMs = polls[(options.seed - 1) % polls.length] ?? 1_000;
    const namesAhead = NAMES_AHEAD[options.seed % NAMES_AHEAD.length];
    const deaths: Deaths = { left: undefined, die: () => {} };
    const faults: string[] = [];
    const oracle: Oracle = createOracle(
      () => (world as World).store,
      (what) => faults.push(what),
      options.features,
    );
    world = await createWorld({
      seed: options.seed,
      mounts: names,
      sabotage: options.sabotage,
      features: options.features,
      faults: options.faults,
      settings: {
        pollMs,
        ...(namesAhead === undefined ? {} : { namesAhead }),
        ...(namesAhead === FEW_NAMES ? FEW : {}),
        // Contents of the past that were read have to be there offline, so the cache keeps its size.
        ...(namesAhead === FEW_NAMES && options.hasPast !== true ? FEW_BYTES : {}),
      },
      apartMs: 331,
      cutsTrees: true,
      onStep(mount, label) {
        if (label === "names: dropped" && options.tally !== undefined) options.tally.drops += 1;
        if (deaths.left === undefined || deaths.mount !== mount) return;
        deaths.left -= 1;
        if (deaths.left > 0) return;
        deaths.left = undefined;
        if (options.tally !== undefined) count(options.tally.deaths, label);
        world?.note(`  ${mount.name} dies at: ${label}`);
        oracle.crashed(mount);
        mount.crash();
        deaths.die();
      },
      onAnswer: oracle.onAnswer,
      onHandled: () => past?.record.note(),
      tally: options.tally,
    });
    if (options.hasPast === true) past = createPast(world, options.seed, options.tally);
    const quietMs = Math.max(QUIET_MS, QUIET_POLLS * pollMs);
    const player = await createPlayer(world, oracle, { ...options, quietMs, deaths });
    for (const [index, step] of steps.entries()) {
      world.note(`step ${index}: ${describeStep(step, names)}`);
      if (options.tally !== undefined) count(options.tally.steps, step.do);
      await player.play(step, `${index}`);
      await player.check();
      await past?.between(player, index);
      const [first] = faults;
      if (first !== undefined) throw new Fault(first);
    }
    await player.end();
    await past?.after(player);
    if (options.tally !== undefined) options.tally.histories += 1;
    const [first] = faults;
    if (first !== undefined) throw new Fault(first);
    return world.lines;
  } catch (error) {
    if (error instanceof Error) Object.assign(error, { lines: world?.lines ?? [] });
    throw error;
  } finally {
    world?.end();
  }
}

interface Held {
  readonly fd: number;
  readonly write: boolean;
}

/** Which mount is to die at its how many-eth place from now. */
interface Deaths {
  mount?: Mount;
  left: number | undefined;
  die(): void;
}

interface PlayerOptions extends HistoryOptions {
  readonly quietMs: number;
  readonly deaths: Deaths;
}

async function createPlayer(world: World, oracle: Oracle, options: PlayerOptions) {
  const { clock, mounts } = world;
  const { features = ALL_FEATURES, quietMs, deaths } = options;
  const held = new Map<Mount, Held>();
  const watched = new Map<Process, Calls>();
  let paired: Paired | undefined;
  if (options.lag !== undefined) world.setLag(options.lag);

  let isGatewayDying = false;
  const isTrusted = ({ weather, process }: Mount) =>
    !weather.isOffline &&
    weather.faultShare === 0 &&
    weather.refusal === undefined &&
    weather.withdrawn === undefined &&
    // What was refused is taken to be so for a while.
    (process?.engine.context.network.refusals.size ?? 0) === 0 &&
    !isGatewayDying;

  function mountOf(index: number): Mount {
    const mount = mounts[index];
    if (mount === undefined) throw new Error(`no mount ${index}`);
    return mount;
  }

  function callsOf(mount: Mount): Calls {
    const { process } = mount;
    if (process === undefined) throw new Fault(`${mount.name} is down`);
    if (paired !== undefined) return paired.calls;
    let calls = watched.get(process);
    if (calls === undefined) {
      calls = oracle.watch(mount, process.kernel);
      watched.set(process, calls);
    }
    return calls;
  }

  if (options.mounts === 1) {
    const [mount] = mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const calls = oracle.watch(mount, mount.process.kernel);
    paired = createPaired(calls, createModel(), () => !isTrusted(mount));
    // From here on the root is known: whatever the network does, it can be listed.
    await world.run(paired.compare(true));
  }

  /** What a program may run into is no fault. */
  async function tolerate(mount: Mount, work: Promise<unknown>): Promise<void> {
    try {
      await world.run(work);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      world.note(`  ${error.message}`);
      if (ORDINARY.has(error.code) || paired !== undefined) return;
      if (NETWORK_CODES.has(error.code) && !isTrusted(mount)) return;
      // A version that was replaced or deleted before all of it was here: see docs/gateway/profiles.md.
      if (error.code === "EIO" && !features.isFull && /no longer|is deleted/.test(error.message)) return;
      throw new Fault(`${mount.name}: a program gets ${error.message}`, { cause: error });
    }
  }

  const run = (mount: Mount, program: Program, label: string) =>
    tolerate(mount, runProgram(callsOf(mount), program, `${mount.name}${label}`));

  async function release(mount: Mount): Promise<void> {
    const file = held.get(mount);
    if (file === undefined) return;
    held.delete(mount);
    await tolerate(mount, callsOf(mount).close(file.fd));
  }

  async function hold(mount: Mount, path: string, write: boolean): Promise<void> {
    await release(mount);
    const opened = callsOf(mount)
      .open(path, { write })
      .then((fd) => void held.set(mount, { fd, write }));
    await tolerate(mount, opened);
  }

  async function poke(mount: Mount, step: Extract<Step, { do: "poke" }>, label: string): Promise<void> {
    const file = held.get(mount);
    if (file === undefined) return;
    const calls = callsOf(mount);
    if (!file.write) return tolerate(mount, calls.read(file.fd, step.at, step.size));
    const data = bytesOf(`${mount.name}${label}`, step.size);
    const work = calls.write(file.fd, step.at, data).then(() => (step.sync ? calls.fsync(file.fd) : undefined));
    await tolerate(mount, work);
  }

  async function crash(mount: Mount, step: Extract<Step, { do: "crash" }>, label: string): Promise<void> {
    let isDead = false;
    runProgram(callsOf(mount), step.program, `${mount.name}${label}`).catch((error: unknown) => {
      if (!isDead && !(error instanceof CallError)) world.fault(String(error));
    });
    for (let tick = 0; tick < step.ticks; tick += 1) await undefined;
    if (step.ms > 0) await clock.advance(step.ms);
    world.note(`  ${mount.name} dies`);
    isDead = true;
    oracle.crashed(mount);
    mount.crash();
    held.delete(mount);
    await up(mount, true);
  }

  /** What is under way when it dies is heard of no more. */
  async function crashAt(mount: Mount, step: Extract<Step, { do: "crash at" }>, label: string): Promise<void> {
    const died = (places: number | undefined) =>
      new Promise<true>((resolve) => {
        Object.assign(deaths, { mount, left: places, die: () => resolve(true) });
      });
    const death = died(step.place);
    const isDead = () => mount.process === undefined;
    const work = runProgram(callsOf(mount), step.program, `${mount.name}${label}`).catch((error: unknown) => {
      if (!isDead() && !(error instanceof CallError)) world.fault(String(error));
    });
    await world.run(Promise.race([death, work]));
    // What follows the program is written back by itself.
    if (!isDead()) await world.run(Promise.race([death, sleep(clock, DEATH_MS)]));
    deaths.left = undefined;
    if (!isDead()) return;
    held.delete(mount);
    const again = died(step.again);
    await world.run(Promise.race([again, mount.start()]));
    deaths.left = undefined;
    if (isDead()) await world.run(mount.start());
    await isUp(mount, true);
  }

  async function up(mount: Mount, isCrash: boolean): Promise<void> {
    await world.run(mount.start());
    await isUp(mount, isCrash);
  }

  async function isUp(mount: Mount, isCrash: boolean): Promise<void> {
    if (mount.process === undefined) throw new Fault(`${mount.name} does not start`);
    if (paired === undefined) return;
    const calls = oracle.watch(mount, mount.process.kernel);
    await world.run(paired.crashed(calls));
    world.note(`  ${mount.name} is up again${isCrash ? "" : ", after an orderly end"}`);
  }

  /** The gateway dies and comes back while a program is at work. */
  async function crashGateway(mount: Mount, step: Extract<Step, { do: "gateway crash" }>, label: string) {
    isGatewayDying = true;
    const work = run(mount, step.program, label);
    for (let tick = 0; tick < step.ticks; tick += 1) await undefined;
    world.restartGateway();
    if (step.ms > 0) await clock.advance(step.ms);
    world.restartGateway();
    await work;
    isGatewayDying = false;
  }

  /** Everything of it is at the gateway; it is mounted again with nothing. */
  async function beginAfresh(mount: Mount): Promise<void> {
    if (!isTrusted(mount) || mount.process === undefined) return;
    // What the gateway cannot hold, or not tell how late it is, is not there again at once.
    if (!features.attributes || !features.isFull) return;
    await release(mount);
    await drain(mount);
    oracle.forget(mount);
    await world.run(mount.stop());
    mount.wipe();
    await world.run(mount.start());
    // Of a linked file it knows the names in folders that were listed: the first look counts no others.
    if (mount.process !== undefined) await world.run(lookAround(mount.process.kernel));
    await isUp(mount, false);
  }

  async function drain(mount: Mount): Promise<void> {
    if (!isTrusted(mount) || mount.process === undefined) return;
    const { engine } = mount.process;
    const attempt = async () => {
      // As somebody would who sees what was refused.
      await world.run(engine.retry());
      const limit = new AbortController();
      const timer = clock.setTimer(10 * 60_000, () => limit.abort());
      const { drained, left } = await world.run(engine.drain({ settle: true, signal: limit.signal }));
      timer.cancel();
      return drained ? undefined : left.join("; ");
    };
    let left = await attempt();
    // A request from before a right was given back may have been refused since.
    if (left !== undefined && !isTrusted(mount)) left = await attempt();
    if (left !== undefined) throw new Fault(`${mount.name} does not drain: ${left}`);
    const [lost] = oracle.drained(mount);
    if (lost !== undefined) throw new Fault(`drained, but ${lost}`);
  }

  async function wait(ms: number): Promise<void> {
    if (paired === undefined) return clock.advance(ms);
    const end = plus(clock.elapsed(), ms);
    while (clock.elapsed() < end) {
      await clock.advance(Math.min(LOOK_MS, minus(end, clock.elapsed())));
      await compare();
    }
  }

  /**
   * Where there are no keys, a folder whose name was taken when its creation was sent again is one that was
   * there: another client may have put something into it. Until it was listed, it can be shown as well as the network is.
   */
  async function compare(): Promise<void> {
    const mayFail = !features.isFull && !mounts.every(isTrusted);
    try {
      if (paired !== undefined) await world.run(paired.compare(false));
    } catch (error) {
      if (!mayFail || !(error instanceof CallError) || !NETWORK_CODES.has(error.code)) throw error;
    }
  }

  async function play(step: Step, label: string): Promise<void> {
    switch (step.do) {
      case "run":
        return run(mountOf(step.mount), step.program, label);
      case "race":
        await Promise.all(step.programs.map((program, index) => run(mountOf(index), program, label)));
        return;
      case "hold":
        return hold(mountOf(step.mount), step.path, step.write);
      case "poke":
        return poke(mountOf(step.mount), step, label);
      case "release":
        return release(mountOf(step.mount));
      case "wait":
        return wait(step.ms);
      case "weather": {
        const { do: _, mount, ...weather } = step;
        Object.assign(mountOf(mount).weather, { refusal: undefined, withdrawn: undefined, ...weather });
        return;
      }
      case "lag":
        return world.setLag(step);
      case "crash":
        return crash(mountOf(step.mount), step, label);
      case "crash at":
        return crashAt(mountOf(step.mount), step, label);
      case "gateway crash":
        return crashGateway(mountOf(step.mount), step, label);
      case "clock":
        mountOf(step.mount).skewMs = step.skewMs;
        return;
      case "fresh":
        return beginAfresh(mountOf(step.mount));
      case "remount": {
        const mount = mountOf(step.mount);
        await release(mount);
        await world.run(mount.stop());
        return up(mount, false);
      }
      case "drain":
        return drain(mountOf(step.mount));
      case "drop caches":
        return mountOf(step.mount).process?.kernel.dropCaches();
      case "restart gateway":
        return world.restartGateway();
      case "outside":
        return edit(world, step, label);
    }
  }

  async function check(): Promise<void> {
    await clock.settle();
    world.check();
    for (const mount of mounts) {
      if (mount.process === undefined) continue;
      oracle.look(mount);
      const [first] = [...violations(mount.process), ...oracle.returned(mount)];
      if (first !== undefined) throw new Fault(`${mount.name}: ${first}`);
      const [stale] = await world.run(mount.process.stale());
      if (stale !== undefined) throw new Fault(`${mount.name}: the kernel was not told: ${stale}`);
    }
    await compare();
  }

  const ending = createEnding(world, oracle, {
    ...{ features, quietMs, drain, release, check },
    isHolding: () => held.size > 0,
    compareModel: async () => paired && world.run(paired.compare(true)),
  });
  return { play, check, isTrusted, end: ending.end };
}

/** The end of a history: in fair weather all mounts and the gateway must come to the same tree, and to rest. */
import { type Features, SETTLE_MS } from "../../../src/contract/features.ts";
import { type ElapsedTime, minus } from "../../../src/lib/clocks.ts";
import { diskViolations } from "./invariants.ts";
import type { Mount } from "./mount.ts";
import type { Oracle } from "./oracle.ts";
import { describeRest, isQuiet } from "./rest.ts";
import { rowsOf } from "./rows.ts";
import { behindLinks, differences, gatewayTree, plain, treeOf } from "./tree.ts";
import { Fault, type World } from "./world.ts";

/** A list may be under way that is never answered (ten seconds), and who waited for it then leaves the gateway alone (thirty at most). */
const LEFT_ALONE_MS = 40_000;
/** A scope that was refused again and again is tried after an hour at most. */
const ROUNDS_MAX = 300;

interface EndingOptions {
  readonly features: Features;
  /** Longer than any time after which rows are looked at again. */
  readonly quietMs: number;
  /** Whether programs have files open. */
  isHolding(): boolean;
  drain(mount: Mount): Promise<void>;
  release(mount: Mount): Promise<void>;
  check(): Promise<void>;
  /** Of a mount alone: with the plain folder that it is to be like. */
  compareModel(): Promise<unknown>;
}

export interface Ending {
  /** May be called again after others changed something. */
  end(): Promise<void>;
}

export function createEnding(world: World, oracle: Oracle, options: EndingOptions): Ending {
  const { clock, mounts } = world;
  const { features, quietMs, isHolding, drain, release, check, compareModel } = options;

  /** Nothing is in the way any more: everybody must come to the same, and to rest. */
  async function end(): Promise<void> {
    world.note("end: fair weather");
    const fair = { isOffline: false, latencyMs: 20, faultShare: 0, refusal: undefined, withdrawn: undefined };
    for (const mount of mounts) Object.assign(mount.weather, fair);
    await clock.advance(1_000);
    world.setLag({ path: 0, journal: 0, id: 0 });
    // What programs merely keep open hides nothing; what they wrote to it a drain sends.
    if (isHolding()) await comeToRest();
    if (isHolding()) await bringLinksTogether();
    if (isHolding() && features.isFull) await compareAll();
    for (const mount of mounts) await release(mount);
    await comeToRest();
    await bringLinksTogether();
    if (!features.isFull) {
      // What was taken for lag is looked at when it cannot be that any more.
      await clock.advance(SETTLE_MS + quietMs);
      await comeToRest();
    }
    await check();
    for (const { name, process } of mounts) {
      const [first] = process === undefined ? [] : diskViolations(process);
      if (first !== undefined) throw new Fault(`${name}: ${first}`);
    }
    const lost = oracle.missing();
    if (lost.length > 0) throw new Fault(lost.join("\n"));
    await compareAll();
  }

  /** Of all up to this position, which is the latest since then. Where no cursor says so, the folders that were listed do. */
  function hasHeard({ name, process }: Mount, position: number, since: ElapsedTime): boolean {
    if (process === undefined) return false;
    if (features.isFull) return rowsOf(process.database).cursor() >= position;
    const [folder] = process.heard.notSince(since);
    if (folder === undefined || minus(clock.elapsed(), since) <= LEFT_ALONE_MS + quietMs) return folder === undefined;
    throw new Fault(`${name} does not list folder ${folder} again`);
  }

  async function comeToRest(): Promise<void> {
    let before = Number.NaN;
    let since = clock.elapsed();
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      for (const mount of mounts) await drain(mount);
      if (world.position() !== before) since = clock.elapsed();
      before = world.position();
      await clock.advance(quietMs);
      world.check();
      // What was sent only now (a scope that a former token lacked is tried again after minutes) nobody can have heard.
      if (world.position() !== before) continue;
      const isAtRest = mounts.every(
        (mount) => mount.process !== undefined && isQuiet(mount.process) && hasHeard(mount, before, since),
      );
      if (isAtRest) return;
    }
    const stateOf = async ({ name, process }: Mount) =>
      `${name}: ${process === undefined ? "down" : await describeRest(process)}`;
    const states = await world.run(Promise.all(mounts.map(stateOf)));
    throw new Fault(`they do not come to rest: ${states.join("; ")}`);
  }

  /**
   * A linked file's nodes are brought together by who knows two of its names. Where nobody had listed both
   * folders that is from the first look on: then, and only then, all look once before they are compared.
   */
  async function bringLinksTogether(): Promise<void> {
    if ((await world.run(behindLinks(world.outside, world.workspace.root))).length === 0) return;
    for (const { process } of mounts) {
      if (process !== undefined) await world.run(treeOf(process.kernel, { withContent: false }));
    }
    await comeToRest();
    const [behind] = await world.run(behindLinks(world.outside, world.workspace.root));
    if (behind !== undefined) throw new Fault(`${behind} is not brought together with its other names`);
  }

  async function compareAll(): Promise<void> {
    const gateway = await world.run(gatewayTree(world.outside, world.workspace.root));
    for (const mount of mounts) {
      if (mount.process === undefined) continue;
      await compareModel();
      const shown = await world.run(treeOf(mount.process.kernel, { withContent: true }));
      const isBare = !features.attributes;
      const found = differences(...(isBare ? ([plain(shown), plain(gateway)] as const) : ([shown, gateway] as const)), [
        mount.name,
        "the gateway",
      ]);
      if (found.length > 0) throw new Fault(found.join("\n"));
    }
  }

  return { end };
}

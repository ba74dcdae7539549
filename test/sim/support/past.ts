/**
 * The past of a workspace, checked while a history is played and at its end: the history folder of every mount agrees
 * with the record, and so do a restored tree and an undo. The seed decides what is looked at between two steps.
 */
import { seededRandom } from "../../support/virtual-clock.ts";
import { CallError, NETWORK_CODES } from "./calls.ts";
import type { Mount, Process } from "./mount.ts";
import { restoreTo, undoSince } from "./past-back.ts";
import { atMoment, deletedLines, deletedThen, LACKING, readTree, versionLines, versionsThen } from "./past-read.ts";
import { type Change, createPastRecord, type PastRecord, pathsThen, shownThen } from "./past-record.ts";
import type { Step } from "./steps.ts";
import { count, type Tally } from "./tally.ts";
import { differences, type Tree } from "./tree.ts";
import { Fault, type World } from "./world.ts";

/** Longer than the gateway's index is ever late. */
const LATE_MS = 10_000;
/** Moments that are compared at the end. */
const MOMENTS_MAX = 8;
const PLACES = 40;
/** Contents of the past that a mount of these keeps: an eighth of its cache. */
const KEPT_BYTES = 1 << 17;

/** Of who plays the history. */
export interface PastPlayer {
  isTrusted(mount: Mount): boolean;
  play(step: Step, label: string): Promise<void>;
  /** Nothing is in the way any more, all come to rest and agree. */
  end(): Promise<void>;
}

export interface Past {
  readonly record: PastRecord;
  /** Between two steps. */
  between(player: PastPlayer, index: number): Promise<void>;
  /** After the end. */
  after(player: PastPlayer): Promise<void>;
}

export function createPast(world: World, seed: number, tally: Tally | undefined): Past {
  const { clock, mounts, workspace } = world;
  const record = createPastRecord(world);
  /** Times that were looked at, perhaps too early for the index. */
  const looked: number[] = [];
  const told = (what: string, detail = "") => {
    world.note(`  past: ${what}${detail}`);
    if (tally !== undefined) count(tally.past, what);
  };

  function pick<T>(random: () => number, all: readonly T[]): T | undefined {
    return all[Math.floor(random() * all.length)];
  }

  /** Mostly right at a change, or right before it. */
  function anyTime(random: () => number): number {
    const now = clock.wallClock();
    const { time = now } = pick(random, record.moments.slice(1)) ?? {};
    const offset = pick(random, [0, 0, -1, -1, 1, -20_000]) ?? 0;
    return random() < 0.2 ? now : Math.min(now, time + offset);
  }

  const anyPath = (random: () => number, time: number) => {
    const folders = [...pathsThen(record.at(time), workspace.root)].filter(([, { kind }]) => kind === "folder");
    const chosen = random() < 0.7 ? undefined : pick(random, folders);
    return chosen === undefined ? "/" : `/${chosen[0]}`;
  };

  function requireSame(what: string, shown: Tree, recorded: Tree, who: string): void {
    const found = differences(shown, recorded, [who, "the record"]);
    if (found.length > 0) throw new Fault([`${what}:`, ...found].join("\n"));
  }

  function requireLines(what: string, shown: readonly string[], recorded: readonly string[]): void {
    const [a, b] = [shown, recorded].map((lines) => [...lines].sort().join("\n"));
    if (a !== b) throw new Fault(`${what} shows\n${a}\nrecorded is\n${b}`);
  }

  interface LookBack {
    /** The network may not be in the way. */
    readonly isSure: boolean;
    readonly mayLack?: boolean;
    /** Lists may become others while they are read: a name that was listed may be gone when it is looked up. */
    readonly mayChange?: boolean;
  }

  /** A folder that must be shown; undefined where the network, or a change while it was read, may be in the way. */
  async function lookBack(mount: Mount, folder: string, allowed: LookBack): Promise<Tree | undefined> {
    const { isSure, mayLack = false, mayChange = false } = allowed;
    try {
      return await world.run(readTree(processOf(mount).kernel, folder, mayLack));
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (!isSure && NETWORK_CODES.has(error.code)) return undefined;
      if (mayChange && error.code === "ENOENT") return undefined;
      throw new Fault(`${mount.name}: ${folder}: ${error.message}`, { cause: error });
    }
  }

  const isSettled = (time: number) => time < clock.wallClock() - LATE_MS;

  async function compareAt(mount: Mount, time: number, isSure: boolean): Promise<boolean> {
    // Without the gateway, a list that was read too early is shown as it was.
    const isComplete = isSettled(time) && (isSure || !looked.includes(time));
    const recorded = shownThen(record.at(time), workspace.root);
    looked.push(time);
    const shown = await lookBack(mount, atMoment(time), { isSure, mayChange: !isComplete });
    if (shown !== undefined && isComplete) requireSame(atMoment(time), shown, recorded, mount.name);
    told(shown === undefined ? "at: out of reach" : isComplete ? "at: compared" : "at: not settled");
    return shown !== undefined;
  }

  function contentsOf(id: string): readonly string[] {
    const contents: string[] = [];
    for (const { nodes } of record.moments) {
      const { versions = 0, hash = null } = nodes.get(id) ?? {};
      if (versions > contents.length && hash !== null) contents[versions - 1] = hash;
    }
    return contents;
  }

  /** What is told of now: only when all are at rest. */
  async function compareNow(mount: Mount): Promise<void> {
    const now = record.now();
    const deletions = new Map<string, Change>();
    for (const change of record.changes()) if (change.kind === "deleted") deletions.set(change.node, change);
    const versions = await lookBack(mount, ".wsfs/versions", { isSure: true });
    const deleted = await lookBack(mount, ".wsfs/deleted", { isSure: true });
    if (versions === undefined || deleted === undefined) return;
    const wanted = versionsThen(now, workspace.root, ({ id }) => contentsOf(id));
    requireLines(`${mount.name}: versions/`, versionLines(versions), wanted);
    const gone = deletedThen(now, workspace.root, (id) => deletions.get(id)?.time ?? Number.NaN);
    requireLines(`${mount.name}: deleted/`, deletedLines(deleted), gone);
    told("versions/ and deleted/ compared");
  }

  async function restore(random: () => number): Promise<void> {
    const time = anyTime(random);
    const wanted = { time, path: anyPath(random, time), exact: random() < 0.5, isSettled: isSettled(time) };
    world.note(`  past: restore ${wanted.path} to ${new Date(time).toISOString()}${wanted.exact ? " exactly" : ""}`);
    const came = await restoreTo(world, record, wanted);
    toldOf("restore", came);
  }

  async function undo(random: () => number): Promise<void> {
    const mount = mounts[random() < 0.5 ? 0 : 1] as Mount;
    const since = anyTime(random);
    world.note(`  past: undo what ${mount.name} did since ${new Date(since).toISOString()}`);
    toldOf("undo", await undoSince(world, record, mount.name, since));
  }

  function toldOf(what: string, came: Awaited<ReturnType<typeof restoreTo>>): void {
    const how = came === undefined ? "not compared" : came.done === 0 ? "of nothing" : "compared";
    told(`${what}: ${how}`);
    for (const why of came?.skipped ?? []) told(`${what}: skipped: ${why.replace(/ (\/\S*|[0-9a-f-]{36})/g, " …")}`);
  }

  async function between(player: PastPlayer, index: number): Promise<void> {
    const random = seededRandom(seed * 1009 + index);
    const chance = random();
    const mount = pick(random, mounts) as Mount;
    const again = pick(random, looked);
    const time = again === undefined || random() < 0.5 ? anyTime(random) : again;
    if (chance < 0.3) await compareAt(mount, time, player.isTrusted(mount));
    else if (chance < 0.36) {
      const program = { do: "look back", path: atMoment(time) } as const;
      const place = 1 + Math.floor(random() * PLACES);
      looked.push(time);
      await player.play(
        { do: "crash at", mount: mounts.indexOf(mount), program, place, again: undefined },
        `b${index}`,
      );
    } else if (chance < 0.42) await restore(random);
    else if (chance < 0.48) await undo(random);
  }

  async function compareAll(times: readonly number[]): Promise<void> {
    for (const mount of mounts) {
      for (const time of times) await compareAt(mount, time, true);
      await compareNow(mount);
    }
  }

  /** What was listed is there without a gateway; after a restart too, but for contents that do not fit. */
  async function compareOffline(mount: Mount, times: readonly number[], isRestarted: boolean): Promise<void> {
    mount.weather.isOffline = true;
    if (isRestarted) {
      await world.run(mount.stop());
      await world.run(mount.start());
    }
    const mayLack = isRestarted && bytesOfAll() > KEPT_BYTES;
    for (const time of times) {
      const shown = (await lookBack(mount, atMoment(time), { isSure: true, mayLack })) ?? new Map();
      const recorded = new Map(
        [...shownThen(record.at(time), workspace.root)].map(([path, line]) => {
          const isLacking = shown.get(path)?.content === LACKING;
          return [path, isLacking ? { ...line, content: LACKING } : line];
        }),
      );
      requireSame(`offline: ${atMoment(time)}`, shown, recorded, mount.name);
      const what = [...shown.values()].some(({ content }) => content === LACKING) ? ", without all bytes" : "";
      told(`at: compared offline${isRestarted ? ", after a restart" : ""}${what}`);
    }
    mount.weather.isOffline = false;
  }

  function bytesOfAll(): number {
    const sizes = new Map(
      // Each version is kept by itself, also one that has the content of another.
      record.moments.flatMap(({ nodes }) =>
        [...nodes.values()].map(({ id, versions, size }) => [`${id} ${versions}`, size]),
      ),
    );
    return [...sizes.values()].reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  return {
    record,
    between,
    async after(player) {
      const random = seededRandom(seed * 1013);
      // The kernel may keep a moment for so long.
      await clock.advance(60_000);
      const ends = [record.now().time, record.now().time - 1, clock.wallClock() - LATE_MS - 1];
      const some = Array.from({ length: MOMENTS_MAX }, () => anyTime(random)).filter(isSettled);
      const times = [...new Set([...ends, ...some, ...looked.slice(-2)])];
      await compareAll(times);
      await compareOffline(pick(random, mounts) as Mount, times, random() < 0.5);
      await player.end();
      await restore(random);
      await player.end();
      await undo(random);
      await player.end();
      await clock.advance(60_000);
      await compareAll([...times.slice(0, 2), record.now().time, record.now().time - 1]);
    },
  };
}

function processOf({ name, process }: Mount): Process {
  if (process === undefined) throw new Fault(`${name} is down`);
  return process;
}

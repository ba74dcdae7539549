/**
 * Plays one conflict on two mounts: both know the same, lose the network, change it each in its own way, and come back
 * one after the other. The result is what both and the gateway then show, as plain text.
 */
import { expect } from "vitest";
import type { Calls } from "./calls.ts";
import { violations } from "./invariants.ts";
import type { Mount } from "./mount.ts";
import { rowsOf } from "./rows.ts";
import { differences, gatewayTree, readFile, treeOf } from "./tree.ts";
import { createWorld, type World } from "./world.ts";

/** What a program does on one of the mounts. */
export interface Hands {
  /** Open, truncate, write, close. */
  save(path: string, text: string): Promise<void>;
  /** Write beside, rename over. */
  replace(path: string, text: string): Promise<void>;
  /** Writes and leaves it open, until `close`. */
  write(path: string, text: string): Promise<void>;
  /** Opens for reading, or for writing too, and leaves it open; `reread` says what the descriptor shows. */
  hold(path: string, how?: { readonly write: boolean }): Promise<void>;
  reread(): Promise<string>;
  /** Writes to what is open. */
  writeOn(text: string): Promise<void>;
  close(): Promise<void>;
  readonly calls: Calls;
}

/** Path to what is there: the text of a file, "folder", or "-> target"; in what order does not matter. */
export type Shown = Readonly<Record<string, string>>;

export interface Conflict {
  /** Told in words, for the table. */
  readonly one: string;
  readonly other: string;
  /** Why it ends like that, for the table. */
  readonly why: string;
  /** What both know before. */
  readonly before?: (at: Hands) => Promise<void>;
  readonly left: (at: Hands) => Promise<void>;
  readonly right: (at: Hands) => Promise<void>;
  /** When both have heard of each other, before what is open is closed. */
  readonly meanwhile?: (left: Hands, right: Hands) => Promise<void>;
  /** Time that goes by before that. */
  readonly waitMs?: number;
  /** What is shown in the end; where it matters, when the one was first. */
  readonly ends: Shown;
  readonly otherFirst?: Shown;
  /** Nodes that are the ones from before, by name now and before. */
  readonly same?: Readonly<Record<string, string>>;
}

export type First = "one" | "other";

export function endOf({ ends, otherFirst = ends }: Conflict, first: First): Shown {
  return first === "one" ? ends : otherFirst;
}

const LAG = { path: 8_000, journal: 5_000, id: 0 };
const REST_MS = 12_000;

export interface Ended {
  readonly shown: Shown;
  /** Node ids by path, before and in the end. */
  readonly before: ReadonlyMap<string, string>;
  readonly after: ReadonlyMap<string, string>;
}

export async function playConflict(conflict: Conflict, first: First, isLate: boolean, seed: number): Promise<Ended> {
  // Of a linked passthrough file, another of its names may give the copy its own.
  const world = await createWorld({ seed, mounts: ["alpha", "beta"], isPassing: false });
  const [alpha, beta] = world.mounts;
  if (alpha === undefined || beta === undefined) throw new Error("two mounts");
  try {
    const left = handsOf(world, alpha);
    const right = handsOf(world, beta);
    await conflict.before?.(left);
    await rest(world);
    await world.run(treeOf(left.calls, { withContent: true }));
    await world.run(treeOf(right.calls, { withContent: true }));
    const before = await idsOf(world);

    if (isLate) world.setLag(LAG);
    for (const mount of world.mounts) mount.weather.isOffline = true;
    await world.clock.advance(2_000);
    await conflict.left(left);
    await conflict.right(right);
    await world.clock.advance(5_000);
    const order = first === "one" ? [alpha, beta] : [beta, alpha];
    for (const mount of order) {
      mount.weather.isOffline = false;
      // Long enough for what it has to send, and with lag too short to hear of it.
      await world.clock.advance(15_000);
      check(world);
    }
    await world.clock.advance(conflict.waitMs ?? REST_MS);
    check(world);
    await conflict.meanwhile?.(left, right);
    await left.close();
    await right.close();
    world.setLag({ path: 0, journal: 0, id: 0 });
    await rest(world);

    const gateway = await world.run(gatewayTree(world.outside, world.workspace.root));
    for (const mount of world.mounts) {
      const tree = await world.run(treeOf(callsOf(mount), { withContent: true }));
      expect(differences(tree, gateway, [mount.name, "the gateway"])).toEqual([]);
    }
    const shown = await shownBy(world, callsOf(alpha));
    expect(await shownBy(world, callsOf(beta))).toEqual(shown);
    return { shown, before, after: await idsOf(world) };
  } catch (error) {
    if (error instanceof Error) error.message += `\n${world.lines.join("\n")}`;
    throw error;
  } finally {
    world.end();
  }
}

function callsOf(mount: Mount): Calls {
  if (mount.process === undefined) throw new Error(`${mount.name} is down`);
  return mount.process.kernel;
}

function check(world: World): void {
  world.check();
  for (const mount of world.mounts) {
    if (mount.process !== undefined) expect(violations(mount.process)).toEqual([]);
  }
}

/** Nobody has anything to send or to hear any more. */
async function rest(world: World): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const before = world.position();
    for (const mount of world.mounts) {
      const limit = new AbortController();
      const drained = mount.process?.engine.drain({ settle: true, signal: limit.signal });
      expect(await world.run(drained ?? Promise.reject(new Error("down")))).toEqual({ drained: true, left: [] });
    }
    await world.clock.advance(REST_MS);
    check(world);
    const isIdle = world.mounts.every(
      ({ process }) => process === undefined || rowsOf(process.database).nextLook() === null,
    );
    if (world.position() === before && isIdle) return;
  }
  throw new Error("they do not come to rest");
}

function handsOf(world: World, mount: Mount): Hands {
  const calls = callsOf(mount);
  let open: number | undefined;
  const run = <T>(work: Promise<T>) => world.run(work);
  const put = async (path: string, text: string) => {
    const fd = await run(calls.open(path, { create: true, truncate: true, write: true }));
    await run(calls.write(fd, 0, Buffer.from(text)));
    return fd;
  };
  const waited: Calls = new Proxy(calls, {
    get: (target, name: keyof Calls) => {
      const call = target[name] as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => run(call(...args));
    },
  });
  return {
    calls: waited,
    save: async (path, text) => run(calls.close(await put(path, text))),
    async replace(path, text) {
      await run(calls.close(await put(`${path}.tmp`, text)));
      await run(calls.rename(`${path}.tmp`, path));
    },
    async write(path, text) {
      open = await put(path, text);
    },
    async hold(path, how = { write: false }) {
      open = await run(calls.open(path, how));
    },
    async writeOn(text) {
      await run(calls.ftruncate(open ?? -1, 0));
      await run(calls.write(open ?? -1, 0, Buffer.from(text)));
    },
    reread: async () => (await run(calls.read(open ?? -1, 0, 1_000))).toString(),
    async close() {
      if (open !== undefined) await run(calls.close(open));
      open = undefined;
    },
  };
}

async function shownBy(world: World, calls: Calls): Promise<Shown> {
  const shown: Record<string, string> = {};
  for (const [path, line] of await world.run(treeOf(calls, { withContent: false }))) {
    const text = line.kind === "file" ? (await world.run(readFile(calls, path))).toString() : "";
    const kind = line.kind === "folder" ? "folder" : line.kind === "symlink" ? `-> ${line.content}` : text;
    const isPlain = line.mode === (line.kind === "folder" ? 0o755 : line.kind === "symlink" ? 0o777 : 0o644);
    const details = [
      ...(isPlain ? [] : [`mode ${line.mode.toString(8)}`]),
      ...(line.tag === "" ? [] : [`tag ${line.tag}`]),
      ...(line.links === undefined || line.links === 1 ? [] : [`${line.links} names`]),
    ];
    shown[withoutTime(path)] = [kind, ...details].join(", ");
  }
  return shown;
}

/** Which host and when a copy was made is left out. */
function withoutTime(path: string): string {
  return path.replaceAll(/ \(conflict, (?:alpha|beta), [-0-9. ]+?( \d)?\)/g, " (conflict$1)");
}

/** From the store itself. */
async function idsOf(world: World): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  const below = async (folder: string, path: string): Promise<void> => {
    const { items } = await world.run(world.outside.listFolder(folder, { pageSize: 1000 }));
    for (const node of items) {
      const child = withoutTime(path === "" ? node.name : `${path}/${node.name}`);
      ids.set(child, node.id);
      if (node.kind === "folder") await below(node.id, child);
    }
  };
  await below(world.workspace.root, "");
  return ids;
}

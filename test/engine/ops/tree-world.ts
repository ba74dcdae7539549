/**
 * A workspace of a few folders behind a scripted gateway, whose names are read in the background or listed for
 * programs, and dropped again.
 */
import { expect, onTestFinished } from "vitest";
import type { Client, NodesPart } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import { type KernelCache, NO_KERNEL_CACHE } from "../../../src/engine/api/index.ts";
import { type EngineSettings, KernelCacheState } from "../../../src/engine/core/index.ts";
import { createNameDropping, createTreePrefetch } from "../../../src/engine/ops/index.ts";
import { type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

export const folderOf = (id: string, parentId: string | null) =>
  nodeOf(id, { kind: "folder", head: null, contentHash: null, size: 0, parentId, name: id });
export const filesIn = (parentId: string, count: number) =>
  Array.from({ length: count }, (_, at) => nodeOf(`${parentId}/${at}`, { name: `f${at}`, parentId }));

/** Two folders with three each, each of those with four files: 2 + 6 + 24 names. */
export function smallTree(): Map<string, readonly Node[]> {
  const tree = new Map<string, readonly Node[]>();
  const below = (parent: string, names: readonly string[]) => {
    tree.set(
      parent,
      names.map((name) => folderOf(name, parent)),
    );
    return names;
  };
  for (const name of below("root", ["a", "b"])) {
    for (const inner of below(name, [`${name}1`, `${name}2`, `${name}3`])) tree.set(inner, filesIn(inner, 4));
  }
  return tree;
}
export const NAMES = 32;

export interface Streams {
  /** Parts of a folder have so many nodes. */
  readonly size?: number;
  /** Called before each part; may throw. */
  readonly onPart?: (folder: string) => void;
}

export type TreeWorld = Awaited<ReturnType<typeof begin>>;

interface Surroundings {
  readonly cache?: Partial<KernelCache>;
  readonly onStep?: (label: string) => void;
  readonly settings?: Partial<EngineSettings>;
}

/** `streams`: absent where the gateway has none. */
export async function begin(
  namesAhead: number | undefined,
  tree = smallTree(),
  streams?: Streams,
  { cache, onStep, settings }: Surroundings = {},
) {
  const world = await createBytesWorld({ ...(namesAhead === undefined ? {} : { namesAhead }), ...settings });
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, folderOf("root", null)));
  const asked: string[] = [];
  const failing = new Set<string>();
  let under = 0;
  let most = 0;
  const listFolder: Client["listFolder"] = async (id, options) => {
    asked.push(id);
    most = Math.max(most, ++under);
    await new Promise<void>((resolve) => world.clock.setTimer(20, resolve));
    under -= 1;
    if (failing.delete(id)) throw new RemoteError("server", "no time");
    const all = tree.get(id) ?? [];
    const from = Number(options?.after ?? 0);
    const next = from + 1000 < all.length ? String(from + 1000) : null;
    const items = all.slice(from, from + 1000);
    return { items, totalCount: all.length, pageNo: 1, pageSize: 1000, asOf: 5, next };
  };
  let journalReads = 0;
  const journal: JournalEntry[] = [];
  const readJournal: Client["readJournal"] = async (_, position) => {
    journalReads += 1;
    const items = journal.filter((entry) => entry.position > position);
    return {
      items,
      totalCount: items.length,
      pageNo: 1,
      pageSize: 500,
      asOf: Math.max(5, ...items.map((e) => e.position)),
    };
  };
  async function* partsBelow(folder: string): AsyncGenerator<NodesPart, void, undefined> {
    const all = tree.get(folder) ?? [];
    const size = streams?.size ?? 500;
    for (let from = 0; from === 0 || from < all.length; from += size) {
      streams?.onPart?.(folder);
      await new Promise<void>((resolve) => world.clock.setTimer(1, resolve));
      yield { folder, asOf: 5, after: `${folder} ${from}`, items: all.slice(from, from + size) };
    }
    for (const { id, kind } of all) if (kind === "folder") yield* partsBelow(id);
  }
  const streamed: string[] = [];
  let ended = 0;
  let refused = 0;
  const streamNodes: Client["streamNodes"] = async function* ({ parentId = "" } = {}) {
    if (streams === undefined) refused += 1;
    if (streams === undefined) throw new RemoteError("notFound", "nothing is there", { status: 404 });
    streamed.push(parentId);
    try {
      yield* partsBelow(parentId);
    } finally {
      ended += 1;
    }
  };
  const client = { ...world.context.client, listFolder, readJournal, streamNodes };
  const { runtime } = world.context;
  const context: Parts = withParts(world.context, {
    client,
    runtime: { ...runtime, step: onStep ?? runtime.step },
    kernel: new KernelCacheState({ ...NO_KERNEL_CACHE, ...cache }, metadata, runtime),
  });
  const prefetch = createTreePrefetch(context);
  const dropping = createNameDropping(context);
  let hasEnded = false;
  const inodeOf = (parent: InodeId, name: string) => metadata.entries.find(parent, name)?.inode ?? inodeId(0);
  onTestFinished(() => {
    prefetch.stop();
    dropping.stop();
    context.cacheFiles.stop();
  });
  return {
    context,
    world,
    prefetch,
    dropping,
    asked,
    failing,
    streamed,
    ended: () => ended,
    refused: () => refused,
    journal,
    journalReads: () => journalReads,
    start: () => void prefetch.run().then(() => (hasEnded = true)),
    hasEnded: () => hasEnded,
    most: () => most,
    inodeOf,
    /** So much time passes. */
    async pass(milliseconds: number) {
      for (let passed = 0; passed < milliseconds; passed += 10) await world.clock.advance(10);
    },
    known: () => prefetch.rest(),
  };
}

export const entryOf = (change: Partial<JournalEntry>): JournalEntry => ({
  ...{ position: 6, time: "2026-01-01T00:00:00.000Z", kind: "deleted", nodeId: "a1/0", parentId: "a1", name: "f0" },
  ...{ path: "/a/a1/f0", revision: 9, version: null, key: null, by: null },
  ...change,
});

/** Every known folder has all of its names. */
export function expectWhole({ context }: TreeWorld, tree: ReadonlyMap<string, readonly Node[]>) {
  const { metadata, nodeRows } = context;
  for (const [id, nodes] of tree) {
    const folder = nodeRows.folderOfNode(id);
    if (folder === undefined || metadata.inodes.get(folder)?.listed == null) continue;
    // The root is an entry of itself.
    const names = metadata.entries.list(folder, 0, 10_000).flatMap(({ name }) => (name === "" ? [] : [name]));
    expect([id, names.sort()]).toEqual([id, nodes.map(({ name }) => name).sort()]);
  }
}

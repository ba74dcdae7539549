/** Subfolders that are looked into one after the other: the next ones are listed before they are asked for. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { ALL_FEATURES } from "../../../src/contract/features.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

const FOLDERS = 30;
const NAMES = Array.from({ length: FOLDERS }, (_, at) => `d${String(at).padStart(2, "0")}`);
const ROOT = nodeOf("root", { kind: "folder", parentId: null, name: "" });

const folderOf = (id: string, parentId = "root") =>
  nodeOf(id, { kind: "folder", head: null, contentHash: null, size: 0, parentId });

interface World {
  /** Files beside each folder of the root, and in it: in the first two, in all others. */
  readonly beside?: number;
  readonly within?: number;
  readonly later?: number;
  readonly client?: Partial<Client>;
}

/** A root of folders, with `beside` files after each, each with `within` files in it. Answers come when they are let. */
async function begin({ beside = 0, within = 2, later = within, client = {} }: World = {}) {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, ROOT));
  const inRoot = NAMES.flatMap((name) => [
    folderOf(name),
    ...Array.from({ length: beside }, (_, at) => nodeOf(`${name}.${at}`)),
  ]);
  const asked: string[] = [];
  const failing = new Set<string>();
  let held: (() => void)[] | undefined;
  const listFolder: Client["listFolder"] = async (id, options) => {
    asked.push(id);
    await new Promise<void>((resolve) => (held === undefined ? resolve() : held.push(resolve)));
    if (failing.delete(id)) throw new RemoteError("server", "no time");
    const count = NAMES.indexOf(id) < 2 ? within : later;
    const files = Array.from({ length: count }, (_, at) => nodeOf(`${id}/${at}`, { name: `f${at}`, parentId: id }));
    const items: readonly Node[] = id === "root" ? inRoot : files;
    const from = Number(options?.after ?? 0);
    const next = from + 1000 < items.length ? String(from + 1000) : null;
    return {
      items: items.slice(from, from + 1000),
      totalCount: items.length,
      pageNo: 1,
      pageSize: 1000,
      asOf: 5,
      next,
    };
  };
  const readJournal = async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 500, asOf: 5 });
  const context: Parts = withParts(world.context, {
    client: { ...world.context.client, listFolder, readJournal, ...client },
  });
  const quiet = async () => {
    for (let turn = 0; turn < 200; turn += 1) await world.clock.advance(0);
  };
  const signal = new AbortController().signal;
  /** Large lists are taken over in several turns. */
  const look = async (folder: InodeId) => {
    let isOver = false;
    const over = context.folderPrefetch.complete(folder, signal).finally(() => {
      isOver = true;
    });
    over.catch(() => {});
    while (!isOver) await world.clock.advance(0);
    return over;
  };
  await look(ROOT_INODE);
  const inodeOf = (name: string) => metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0);
  return {
    context,
    world,
    asked: () => asked.filter((id) => id !== "root"),
    quiet,
    /** The list that is under way, or the next one. */
    fail: (name: string) => failing.add(name),
    hold: () => {
      held = [];
    },
    release: () => {
      for (const resolve of held ?? []) resolve();
      held = undefined;
    },
    isKnown: (name: string) => metadata.inodes.get(inodeOf(name))?.listed !== null,
    look: (name: string) => look(inodeOf(name)),
    async lookInTurn(names: readonly string[]) {
      for (const name of names) {
        await look(inodeOf(name));
        expect(metadata.inodes.get(inodeOf(name))?.listed).toBe(5);
        await quiet();
      }
    },
  };
}

/** A program waits for the second folder, and the four after it are asked for; no answer comes yet. */
async function listingAhead(it: Awaited<ReturnType<typeof begin>>) {
  await it.lookInTurn(NAMES.slice(0, 1));
  it.hold();
  const second = it.look("d01");
  second.catch(() => {});
  await it.quiet();
  return { second };
}

test("looked into in order, the next ones are known already, and each is asked for once", async () => {
  const it = await begin();
  await it.lookInTurn(NAMES.slice(0, 1));
  expect(it.asked()).toEqual(NAMES.slice(0, 1));
  await it.lookInTurn(NAMES.slice(1, 2));
  expect(it.asked()).toEqual(NAMES.slice(0, 6));
  // What was listed ahead needs no gateway, …
  it.hold();
  await it.look("d02");
  await it.quiet();
  // … and more is asked for meanwhile, but not without end.
  expect(it.asked()).toEqual(NAMES.slice(0, 11));
  expect(it.isKnown("d06")).toBe(false);
  it.release();
  await it.lookInTurn(NAMES.slice(3));
  expect(it.asked()).toEqual(NAMES);
  expect(it.world.complaints).toEqual([]);
});

test("who comes to one that is being listed waits for that list, and asks for no other", async () => {
  const it = await begin();
  const { second } = await listingAhead(it);
  const third = it.look("d02");
  await it.quiet();
  expect(it.asked()).toEqual(NAMES.slice(0, 11));
  it.release();
  await Promise.all([second, third]);
  expect(it.isKnown("d02")).toBe(true);
});

test("files between the folders, and folders that are left out, are passed over", async () => {
  const it = await begin({ beside: 20 });
  await it.lookInTurn(NAMES.filter((_, at) => at % 2 === 0));
  expect(new Set(it.asked()).size).toBe(it.asked().length);
  expect(it.asked().length).toBeGreaterThan(FOLDERS / 2);
});

test("in another order nothing is listed that nobody asked for", async () => {
  const it = await begin();
  await it.lookInTurn(NAMES.toReversed());
  expect(it.asked()).toEqual(NAMES.toReversed());
});

test("after a large folder nothing is listed that nobody asked for", async () => {
  const it = await begin({ within: 1000 });
  await it.lookInTurn(NAMES.slice(0, 3));
  expect(it.asked()).toEqual(NAMES.slice(0, 3));
});

test("nor where nothing would tell that it has changed since, while offline, or when the mount ends", async () => {
  const hinders: ((context: Parts) => void)[] = [
    ({ client }) => Object.assign(client, { features: { ...ALL_FEATURES, isFull: false } }),
    ({ network }) => network.failed(new RemoteError("offline", "gone")),
    (context) => context.cacheFiles.stop(),
  ];
  for (const hinder of hinders) {
    const it = await begin();
    await it.lookInTurn(NAMES.slice(0, 1));
    hinder(it.context);
    await it.look("d01");
    await it.quiet();
    expect(it.asked()).toEqual(NAMES.slice(0, 2));
  }
});

test("a list that fails ahead is asked for again by who needs it", async () => {
  let isFailing = false;
  const it = await begin();
  const { listFolder } = it.context.client;
  Object.assign(it.context.client, {
    listFolder: (...args: Parameters<Client["listFolder"]>) =>
      isFailing && args[0] !== "d01" ? Promise.reject(new RemoteError("forbidden", "no")) : listFolder(...args),
  });
  await it.lookInTurn(NAMES.slice(0, 1));
  isFailing = true;
  await it.lookInTurn(NAMES.slice(1, 2));
  expect(it.isKnown("d02")).toBe(false);
  isFailing = false;
  await it.lookInTurn(NAMES.slice(2, 4));
  expect(it.world.complaints).toEqual([]);
});

test("a list ahead of a large folder ends with its first page, unless somebody comes to want it", async () => {
  const it = await begin({ later: 2_500 });
  const { second } = await listingAhead(it);
  const third = it.look("d02");
  await it.quiet();
  it.release();
  await Promise.all([second, third]);
  for (let turn = 0; turn < 20; turn += 1) await it.quiet();
  const timesAsked = (name: string) => it.asked().filter((id) => id === name).length;
  expect(["d02", "d03", "d04", "d05"].map(timesAsked)).toEqual([3, 1, 1, 1]);
  expect(["d02", "d03"].map(it.isKnown)).toEqual([true, false]);
  await it.look("d03");
  expect(it.isKnown("d03")).toBe(true);
});

test("all who join a list ahead that fails ask again", async () => {
  const it = await begin();
  const { second } = await listingAhead(it);
  const third = [it.look("d02"), it.look("d02")];
  await it.quiet();
  it.fail("d02");
  it.release();
  await Promise.all([second, ...third]);
  expect(it.isKnown("d02")).toBe(true);
  expect(it.asked().filter((id) => id === "d02").length).toBe(2);
});

test("however many are gone through at once, few lists are under way, and node takes none for a leak", async () => {
  const warnings: string[] = [];
  const hear = (warning: Error) => warnings.push(warning.name);
  process.on("warning", hear);
  const it = await begin();
  await it.lookInTurn(NAMES.slice(0, 4));
  it.hold();
  const waiting = NAMES.slice(4, 16).map((name) => it.look(name));
  await it.quiet();
  expect(it.context.listingPrefetches.size).toBeLessThanOrEqual(12);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", hear);
  expect(warnings).toEqual([]);
  it.release();
  await Promise.all(waiting);
});

test("when the mount ends, lists ahead are not gone on with", async () => {
  const it = await begin({ later: 2_500 });
  await listingAhead(it);
  await it.context.cacheFiles.stop();
  const asked = it.asked().length;
  it.release();
  for (let turn = 0; turn < 5; turn += 1) await it.quiet();
  expect(it.asked().length).toBe(asked);
  expect(it.context.metadata.nodes.ofNodeId("d03/0")).toBeUndefined();
});

/** What the kernel is told, message by message: each thing once, names and inodes on their own ways, never at once. */
import { expect, it } from "vitest";
import { createKernelCache } from "../../src/fuse/kernel-cache.ts";
import { NOTIFY } from "../../src/fuse/notifications.ts";
import { SILENT } from "../../src/lib/log.ts";
import type { KernelNews, KnownRows } from "../../src/vfs/kernel-cache.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const NOTHING: KernelNews = { names: [], listings: [], inodes: [] };
const EPOCHS = 44;

interface Told {
  readonly way: "entry" | "inode";
  readonly text: string;
}

/** Messages in words. */
function wordsOf(messages: Uint8Array): string[] {
  const words: string[] = [];
  const bytes = Buffer.from(messages);
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at)) {
    const code = bytes.readInt32LE(at + 4);
    expect(bytes.readBigUInt64LE(at + 8)).toBe(0n);
    if (code === NOTIFY.INC_EPOCH) words.push("epoch");
    else if (code === NOTIFY.INVAL_INODE) {
      words.push(`${bytes.readBigInt64LE(at + 24) < 0n ? "attributes" : "pages"} ${bytes.readBigUInt64LE(at + 16)}`);
    } else if (code === NOTIFY.INVAL_ENTRY) {
      const length = bytes.readUInt32LE(at + 24);
      const how = bytes.readUInt32LE(at + 28) === 1 ? "expire" : "drop";
      words.push(`${how} ${bytes.readBigUInt64LE(at + 16)}/${bytes.toString("utf8", at + 32, at + 32 + length)}`);
    } else throw new Error(`code ${code}`);
  }
  return words;
}

function start(minor: number, hold: Partial<Record<"entry" | "inode", Promise<number>>> = {}) {
  const clock = createVirtualClock();
  const told: Told[] = [];
  const cache = createKernelCache(clock, SILENT);
  cache.use(async (way, messages) => {
    for (const text of wordsOf(messages)) told.push({ way, text });
    return (await hold[way]) ?? 0;
  }, minor);
  return { clock, cache, told, texts: (way: string) => told.filter((one) => one.way === way).map(({ text }) => text) };
}

const KNOWN: KnownRows = {
  lineages: (after, limit) => [1, 5, 9].filter((lineage) => lineage > after).slice(0, Math.min(2, limit)),
  names: (after, limit) =>
    [
      { id: 20, parent: 1, name: "a" },
      { id: 21, parent: 5, name: "b" },
    ]
      .filter(({ id }) => id > after)
      .slice(0, Math.min(1, limit)),
};

it("names that exist expire, those that are gone are dropped; attributes and listings go the other way", async () => {
  const { clock, cache, texts, told } = start(EPOCHS);
  cache.tell({
    names: [
      { parent: 1, name: "kept", isGone: false },
      { parent: 2, name: "göne", isGone: true },
    ],
    listings: [2],
    inodes: [7, 2],
  });
  // Whoever changed it goes on first.
  expect(told).toEqual([]);
  await clock.advance(100);
  expect(texts("entry")).toEqual(["expire 1/kept", "drop 2/göne"]);
  // Dropping the pages of a listing expires the folder's attributes too.
  expect(texts("inode")).toEqual(["pages 2", "attributes 7"]);
});

it("what waits is told once, and a way that waits holds nothing up on the other", async () => {
  let release: (errno: number) => void = () => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const { clock, cache, texts } = start(EPOCHS, { entry: held });
  const again: KernelNews = { names: [{ parent: 1, name: "a", isGone: false }], listings: [], inodes: [3] };
  for (let round = 0; round < 5; round += 1) {
    cache.tell(again);
    await clock.advance(100);
  }
  expect(texts("entry")).toEqual(["expire 1/a"]);
  expect(texts("inode")).toHaveLength(5);
  release(2);
  await clock.advance(100);
  expect(texts("entry")).toEqual(["expire 1/a", "expire 1/a"]);
});

it("more names than are worth it are one word, where the kernel has it", async () => {
  for (const [minor, expected] of [
    [EPOCHS, 1],
    [EPOCHS - 1, 10_001],
  ] as const) {
    const { clock, cache, texts } = start(minor);
    const names = Array.from({ length: 10_001 }, (_, i) => ({ parent: 1, name: `${i}`, isGone: false }));
    cache.tell({ ...NOTHING, names });
    await clock.advance(1_000);
    expect(texts("entry")).toHaveLength(expected);
  }
});

it("everything: names by an epoch, or each; attributes each", async () => {
  const { clock, cache, texts } = start(EPOCHS);
  cache.tell({ ...NOTHING, names: [{ parent: 1, name: "a", isGone: false }] });
  cache.everything(KNOWN);
  await clock.advance(100);
  expect(texts("entry")).toEqual(["epoch"]);
  expect(texts("inode")).toEqual(["attributes 1", "attributes 5", "attributes 9"]);
  const older = start(EPOCHS - 1);
  older.cache.everything(KNOWN);
  await older.clock.advance(100);
  expect(older.texts("entry")).toEqual(["expire 1/a", "expire 5/b"]);
  expect(older.texts("inode")).toEqual(["attributes 1", "attributes 5", "attributes 9"]);
});

it("absent names are remembered only where all can be made to be asked for again; nobody is told before there is a kernel, or after", async () => {
  expect(start(EPOCHS).cache.forgetsAbsent).toBe(true);
  const { cache, clock, told } = start(EPOCHS - 1);
  expect(cache.forgetsAbsent).toBe(false);
  cache.close();
  cache.tell({ ...NOTHING, inodes: [1] });
  cache.everything(KNOWN);
  await clock.advance(100);
  expect(told).toEqual([]);
  const early = createKernelCache(clock, SILENT);
  expect(early.forgetsAbsent).toBe(false);
  early.tell({ ...NOTHING, inodes: [1] });
  early.everything(KNOWN);
});

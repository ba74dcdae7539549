/** What the kernel is told, message by message: each thing once, names and inodes on their own ways, never at once. */
import { expect, it } from "vitest";
import type { KernelCache, KnownRows } from "../../src/engine/api/index.ts";
import { CONNECTION_ERRNO, ERRNO } from "../../src/fuse/errno.ts";
import { createKernelCache } from "../../src/fuse/kernel-cache.ts";
import { NOTIFY } from "../../src/fuse/notifications.ts";
import { millisecondsOf } from "../../src/lib/clocks.ts";
import { SILENT } from "../../src/lib/log.ts";
import { entryId, kernelNodeId } from "../../src/metadata/ids.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

type Invalidations = Parameters<KernelCache["tell"]>[0];

const NOTHING: Invalidations = { names: [], listings: [], inodes: [] };
/** Linux 6.2. */
const EXPIRES = 38;
/** Linux 6.18. */
const PRUNES = 45;
const no = () => false;
const yes = () => true;

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
    } else if (code === NOTIFY.PRUNE) {
      const count = bytes.readUInt32LE(at + 16);
      const ids = Array.from({ length: count }, (_, index) => bytes.readBigUInt64LE(at + 32 + 8 * index));
      words.push(`prune ${ids.join(" ")}`);
    } else throw new Error(`code ${code}`);
  }
  return words;
}

function start(minor: number, hold: Partial<Record<"entry" | "inode", Promise<number>>> = {}) {
  const clock = createVirtualClock();
  const told: Told[] = [];
  const cache = createKernelCache(clock, SILENT);
  cache.rootKnown();
  cache.use(async (way, messages) => {
    for (const text of wordsOf(messages)) told.push({ way, text });
    return (await hold[way]) ?? 0;
  }, minor);
  return { clock, cache, told, texts: (way: string) => told.filter((one) => one.way === way).map(({ text }) => text) };
}

const KNOWN: KnownRows = {
  kernelNodeIds: (after, limit) =>
    [kernelNodeId(1), kernelNodeId(5), kernelNodeId(9)]
      .filter((kernelNodeId) => kernelNodeId > after)
      .slice(0, Math.min(2, limit)),
  names: (after, limit) =>
    [
      { id: entryId(20), parent: kernelNodeId(1), name: "a" },
      { id: entryId(21), parent: kernelNodeId(5), name: "b" },
    ]
      .filter(({ id }) => id > after)
      .slice(0, Math.min(1, limit)),
};

it("names that exist expire, those that are gone are dropped; attributes and listings go the other way", async () => {
  const { clock, cache, texts, told } = start(EXPIRES);
  cache.tell(
    {
      names: [
        { parent: kernelNodeId(1), name: "kept", isGone: no, wasThere: true },
        { parent: kernelNodeId(2), name: "göne", isGone: yes, wasThere: true },
      ],
      listings: [kernelNodeId(2)],
      inodes: [kernelNodeId(7), kernelNodeId(2)],
    },
    KNOWN,
  );
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
  const { clock, cache, texts } = start(EXPIRES, { entry: held });
  const again: Invalidations = {
    names: [{ parent: kernelNodeId(1), name: "a", isGone: no, wasThere: true }],
    listings: [],
    inodes: [kernelNodeId(3)],
  };
  for (let round = 0; round < 5; round += 1) {
    cache.tell(again, KNOWN);
    await clock.advance(100);
  }
  expect(texts("entry")).toEqual(["expire 1/a"]);
  expect(texts("inode")).toHaveLength(5);
  release(2);
  await clock.advance(100);
  expect(texts("entry")).toEqual(["expire 1/a", "expire 1/a"]);
});

it("everything: what exists is named by the rows, what is gone and negative entries still wait; never the word that unmounts", async () => {
  for (const minor of [EXPIRES, 45]) {
    const { clock, cache, texts } = start(minor);
    cache.tell({ ...NOTHING, names: [{ parent: kernelNodeId(1), name: "gone", isGone: yes, wasThere: true }] }, KNOWN);
    cache.everything(KNOWN);
    cache.tell(
      { ...NOTHING, names: [{ parent: kernelNodeId(1), name: "negative", isGone: no, wasThere: true }] },
      KNOWN,
    );
    await clock.advance(100);
    expect(texts("entry")).toEqual(["drop 1/gone", "expire 1/negative", "expire 1/a", "expire 5/b"]);
    expect(texts("inode")).toEqual(["attributes 1", "attributes 5", "attributes 9"]);
    const names = Array.from({ length: 10_001 }, (_, i) => ({
      parent: kernelNodeId(1),
      name: `${i}`,
      isGone: no,
      wasThere: true,
    }));
    cache.tell({ ...NOTHING, names }, KNOWN);
    await clock.advance(500);
    expect(texts("entry")).toHaveLength(4 + 10_001);
  }
});

it("a name that expires is told once more: a caller may have had an old answer in its hands", async () => {
  const { clock, cache, texts } = start(EXPIRES);
  cache.tell(
    {
      ...NOTHING,
      names: [
        { parent: kernelNodeId(1), name: "kept", isGone: no, wasThere: true },
        { parent: kernelNodeId(1), name: "gone", isGone: yes, wasThere: true },
        { parent: kernelNodeId(1), name: "negative", isGone: no, wasThere: false },
      ],
    },
    KNOWN,
  );
  cache.everything(KNOWN);
  await clock.advance(100);
  const first = texts("entry");
  expect(first).toEqual(["expire 1/kept", "drop 1/gone", "expire 1/negative", "expire 1/a", "expire 5/b"]);
  await clock.advance(500);
  expect(texts("entry")).toEqual(first);
  await clock.advance(3_000);
  expect(texts("entry").slice(first.length)).toEqual(["expire 1/kept", "expire 1/a", "expire 5/b"]);
  await clock.advance(10_000);
  expect(texts("entry")).toHaveLength(8);
});

it("more names wait than are kept: all there is, by the rows, is told instead, and once more", async () => {
  let release: (errno: number) => void = () => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const { clock, cache, texts } = start(EXPIRES, { entry: held });
  for (let first = 0; first < 120_000; first += 1_000) {
    const names = Array.from({ length: 1_000 }, (_, index) => `x-${first + index}`);
    cache.tell(
      { ...NOTHING, names: names.map((name) => ({ parent: kernelNodeId(1), name, isGone: no, wasThere: true })) },
      KNOWN,
    );
    await clock.advance(10);
  }
  release(0);
  await clock.advance(5_000);
  const [own, ofRows] = [/x-/, /\/[ab]$/].map((which) => texts("entry").filter((text) => which.test(text)));
  // Each of them twice.
  expect(own?.length).toBeLessThanOrEqual(2 * 51_000);
  expect(ofRows).toEqual(["expire 1/a", "expire 5/b", "expire 1/a", "expire 5/b"]);
  expect(texts("inode")).toEqual(expect.arrayContaining(["attributes 1", "attributes 5", "attributes 9"]));
});

it("negative entries are in no row: however many wait, each is told", async () => {
  const { clock, cache, texts } = start(EXPIRES);
  const negative = Array.from({ length: 50_000 }, (_, i) => ({
    parent: kernelNodeId(1),
    name: `no-${i}`,
    isGone: no,
    wasThere: false,
  }));
  cache.tell({ ...NOTHING, names: negative }, KNOWN);
  // Made, and removed again before anybody heard of it.
  cache.tell({ ...NOTHING, names: [{ parent: kernelNodeId(1), name: "no-7", isGone: yes, wasThere: true }] }, KNOWN);
  const others = Array.from({ length: 50_001 }, (_, i) => ({
    parent: kernelNodeId(1),
    name: `x-${i}`,
    isGone: no,
    wasThere: true,
  }));
  cache.tell({ ...NOTHING, names: others }, KNOWN);
  await clock.advance(5_000);
  const told = texts("entry");
  expect(told.filter((text) => text.startsWith("expire 1/no-"))).toHaveLength(50_000);
  expect(told.filter((text) => /x-/.test(text))).toEqual([]);
  expect(told).toContain("expire 5/b");
});

it("each round gathers, not only the first", async () => {
  const { clock, cache, told } = start(EXPIRES);
  const at: number[] = [];
  cache.use(async (way, messages) => {
    if (way === "entry") at.push(millisecondsOf(clock.elapsed()));
    for (const text of wordsOf(messages)) told.push({ way, text });
    if (told.length === 1)
      cache.tell({ ...NOTHING, names: [{ parent: kernelNodeId(1), name: "b", isGone: yes, wasThere: true }] }, KNOWN);
    return 0;
  }, EXPIRES);
  cache.tell({ ...NOTHING, names: [{ parent: kernelNodeId(1), name: "a", isGone: yes, wasThere: true }] }, KNOWN);
  await clock.advance(100);
  const [first = 0, second = 0] = at;
  expect(told.map(({ text }) => text)).toEqual(["drop 1/a", "drop 1/b"]);
  expect(second - first).toBeGreaterThanOrEqual(3);
});

it("whether a name is gone is asked when it is sent: made anew meanwhile, it is left to who uses it", async () => {
  let release: (errno: number) => void = () => {};
  const held = new Promise<number>((resolve) => {
    release = resolve;
  });
  const { clock, cache, texts } = start(EXPIRES, { entry: held });
  let isGone = true;
  cache.tell({ ...NOTHING, names: [{ parent: kernelNodeId(2), name: "slow", isGone: no, wasThere: true }] }, KNOWN);
  await clock.advance(100);
  cache.tell(
    { ...NOTHING, names: [{ parent: kernelNodeId(1), name: "a", isGone: () => isGone, wasThere: true }] },
    KNOWN,
  );
  await clock.advance(100);
  isGone = false;
  release(0);
  await clock.advance(100);
  expect(texts("entry")).toEqual(["expire 2/slow", "expire 1/a"]);
});

it("where names cannot expire (Linux before 6.2) what exists is not taken down: only what is gone is told", async () => {
  const { clock, cache, texts } = start(EXPIRES - 1);
  expect([cache.expiresNames, start(EXPIRES).cache.expiresNames]).toEqual([false, true]);
  cache.tell(
    {
      ...NOTHING,
      names: [
        { parent: kernelNodeId(1), name: "kept", isGone: no, wasThere: true },
        { parent: kernelNodeId(1), name: "gone", isGone: yes, wasThere: true },
      ],
    },
    KNOWN,
  );
  cache.everything(KNOWN);
  await clock.advance(10_000);
  expect(texts("entry")).toEqual(["drop 1/gone"]);
  expect(texts("inode")).toEqual(["attributes 1", "attributes 5", "attributes 9"]);
});

it("what is told before there is a kernel is told to it then; nobody is told at the end", async () => {
  const clock = createVirtualClock();
  const cache = createKernelCache(clock, SILENT);
  expect(cache.expiresNames).toBe(false);
  cache.tell(
    {
      names: [{ parent: kernelNodeId(1), name: "gone", isGone: yes, wasThere: true }],
      listings: [],
      inodes: [kernelNodeId(7)],
    },
    KNOWN,
  );
  await clock.advance(100);
  const told: string[] = [];
  cache.use(async (_, messages) => {
    told.push(...wordsOf(messages));
    return 0;
  }, EXPIRES);
  await clock.advance(100);
  expect(told.sort()).toEqual(["attributes 7", "drop 1/gone"]);
  cache.close();
  cache.tell({ ...NOTHING, inodes: [kernelNodeId(1)] }, KNOWN);
  cache.everything(KNOWN);
  await clock.advance(100);
  expect([told.length, cache.expiresNames]).toEqual([2, false]);
});

it("unused inodes are pruned in one message, where the kernel knows that", async () => {
  const ids = [kernelNodeId(5), kernelNodeId(6)];
  const { cache, told } = start(PRUNES);
  await cache.prune?.(ids);
  await cache.prune?.([]);
  expect(told).toEqual([{ way: "inode", text: "prune 5 6" }]);
  const earlier = start(PRUNES - 1);
  await earlier.cache.prune?.(ids);
  expect(earlier.told).toEqual([]);
});

it("asked what it has, the kernel says of each by itself; hushed, closed or without a connection, it lacks nothing", async () => {
  const clock = createVirtualClock();
  const cache = createKernelCache(clock, SILENT);
  const words: string[] = [];
  let answer: number = ERRNO.ENOENT;
  const notify = async (way: string, messages: Uint8Array) => {
    const [word = "", ...others] = wordsOf(messages);
    words.push(`${way}: ${word}${others.length === 0 ? "" : " and more"}`);
    return / [57]$/.test(word) ? answer : 0;
  };
  const lacked = async () => [
    ...((await cache.unknownToKernel?.([kernelNodeId(5), kernelNodeId(6), kernelNodeId(7)])) ?? []),
  ];
  expect(await lacked()).toEqual([]);
  cache.use(notify, EXPIRES - 1);
  expect(await lacked()).toEqual([5, 7]);
  // Attributes are asked for again, pages stay.
  expect(words).toEqual(["inode: attributes 5", "inode: attributes 6", "inode: attributes 7"]);
  for (const other of [ERRNO.EBADF, CONNECTION_ERRNO.ENODEV, CONNECTION_ERRNO.ECANCELED, ERRNO.EIO]) {
    answer = other;
    expect(await lacked()).toEqual([]);
  }
  answer = ERRNO.ENOENT;
  cache.hush();
  expect(await lacked()).toEqual([]);
  cache.use(notify, EXPIRES);
  expect(await lacked()).toEqual([5, 7]);
  cache.close();
  expect(await lacked()).toEqual([]);
});

it("a name that is to be asked for at once is, once who was answered before has run; not where names stay for long", async () => {
  const goneOn = { isIt: false };
  let answer = (_: number) => {};
  const { clock, cache, texts } = start(EXPIRES, { entry: new Promise((resolve) => (answer = resolve)) });
  const asked = cache.expireNow?.(kernelNodeId(5), "a").then(() => (goneOn.isIt = true));
  await clock.advance(1);
  expect(texts("entry")).toEqual([]);
  await clock.advance(100);
  expect([texts("entry"), goneOn.isIt]).toEqual([["expire 5/a"], false]);
  answer(ERRNO.ENOENT);
  await asked;
  const older = start(EXPIRES - 1);
  const done = older.cache.expireNow?.(kernelNodeId(5), "a");
  await older.clock.advance(100);
  await done;
  expect(older.told).toEqual([]);
});

it("hushed and used again, it tells what came meanwhile and what comes then, and once more what expires", async () => {
  const { clock, cache, texts } = start(EXPIRES);
  const news = (name: string, isGone: () => boolean): Invalidations => ({
    names: [{ parent: kernelNodeId(1), name, isGone, wasThere: true }],
    listings: [],
    inodes: [kernelNodeId(7)],
  });
  cache.tell(news("before", no), KNOWN);
  await clock.advance(100);
  cache.tell(news("gone", yes), KNOWN);
  cache.hush();
  expect(cache.expiresNames).toBe(false);
  await clock.advance(5_000);
  cache.tell(news("meanwhile", no), KNOWN);
  await clock.advance(5_000);
  expect(texts("entry")).toEqual(["expire 1/before"]);
  const told: string[] = [];
  cache.use(async (_, messages) => {
    told.push(...wordsOf(messages));
    return 0;
  }, EXPIRES);
  expect(cache.expiresNames).toBe(true);
  await clock.advance(100);
  expect(told.splice(0).sort()).toEqual(["attributes 7", "drop 1/gone", "expire 1/before", "expire 1/meanwhile"]);
  cache.tell(news("then", no), KNOWN);
  await clock.advance(5_000);
  expect(told.sort()).toEqual(["attributes 7", "expire 1/meanwhile", "expire 1/then", "expire 1/then"]);
});

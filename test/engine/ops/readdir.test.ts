/** Listings while the folder changes: no name twice, none missing that was there all the time, and an end. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

async function createFolder() {
  const { context } = await createBytesWorld();
  const { entries, inodes } = context.metadata;
  inodes.update(ROOT_INODE, { listed: 1 });
  const root = inodes.get(ROOT_INODE);
  if (root === undefined) throw new Error("no root");
  return {
    entries,
    kernelNodeId: root.kernelNodeId,
    isKept: () => context.kernel.isListed(ROOT_INODE),
    open: async () => (await createFileSystem(context).opendir(CALLER, root.kernelNodeId)).handle,
    close: (handle: HandleId) => createFileSystem(context).releasedir(handle),
    make: (name: string) => entries.create(ROOT_INODE, name, ROOT_INODE),
    remove(name: string) {
      const entry = entries.find(ROOT_INODE, name);
      if (entry !== undefined) entries.remove(entry.id);
    },
    /** As rename to a free place, or over what is there. */
    move(from: string, to: string) {
      const entry = entries.find(ROOT_INODE, from);
      const target = entries.find(ROOT_INODE, to);
      if (entry === undefined || from === to) return;
      if (target === undefined) entries.move(entry.id, ROOT_INODE, to);
      else entries.remove(entry.id);
    },
    /** Names and where to go on, "." and ".." left out. */
    async list(handle: HandleId, cookie: number, limit: number) {
      const listed = await createFileSystem(context).readdir(CALLER, handle, cookie, limit, false);
      const last = listed.at(-1);
      const names = listed.map(({ name }) => name).filter((name) => name !== "." && name !== "..");
      return { names, cookies: listed.map((entry) => entry.cookie), last: last?.cookie };
    },
  };
}

test("a name that is made again while the folder is listed is there once", async () => {
  const folder = await createFolder();
  for (const name of ["a", "b", "c"]) folder.make(name);
  const handle = await folder.open();
  const first = await folder.list(handle, 0, 3);
  expect(first.names).toEqual(["a"]);
  folder.remove("a");
  folder.make("a");
  expect((await folder.list(handle, first.last ?? 0, 10)).names).toEqual(["b", "c"]);
});

test("a name that another file takes while the folder is listed is there once", async () => {
  const folder = await createFolder();
  for (const name of ["a", "b", "c"]) folder.make(name);
  const handle = await folder.open();
  const first = await folder.list(handle, 0, 3);
  folder.remove("a");
  folder.move("c", "a");
  expect((await folder.list(handle, first.last ?? 0, 10)).names).toEqual(["b"]);
});

test("a name another file takes is there when its former file was handed out but not taken", async () => {
  const folder = await createFolder();
  for (const name of ["a", "b", "c"]) folder.make(name);
  const handle = await folder.open();
  const { names, cookies } = await folder.list(handle, 0, 4);
  expect(names).toEqual(["a", "b"]);
  folder.remove("b");
  folder.move("c", "b");
  expect((await folder.list(handle, cookies[2] ?? 0, 10)).names).toEqual(["b"]);
});

test("a listing ends while names are made as fast as they are listed", async () => {
  const folder = await createFolder();
  folder.make("name-0");
  const handle = await folder.open();
  let cookie = 0;
  let listed = 0;
  for (let made = 1; made < 100; made += 1) {
    const { names, last } = await folder.list(handle, cookie, 3);
    if (last === undefined) break;
    listed += names.length;
    cookie = last;
    folder.make(`name-${made}`);
    folder.make(`other-${made}`);
  }
  expect(listed).toBe(1);
});

test("from the start again, it is as the folder is by then", async () => {
  const folder = await createFolder();
  folder.make("a");
  const handle = await folder.open();
  expect((await folder.list(handle, 0, 10)).names).toEqual(["a"]);
  folder.remove("a");
  folder.make("b");
  expect((await folder.list(handle, 0, 10)).names).toEqual(["b"]);
  await folder.close(handle);
});

const NAMES = ["a", "b", "c", "d", "e", "f"];
const name = fc.constantFrom(...NAMES);
const operation = fc.oneof(
  fc.record({ do: fc.constant("make" as const), name }),
  fc.record({ do: fc.constant("remove" as const), name }),
  fc.record({ do: fc.constant("move" as const), name, to: name }),
  // The reader takes only some of what it was given, as the kernel does when its caller's buffer is full.
  fc.record({
    do: fc.constant("list" as const),
    limit: fc.integer({ min: 1, max: 4 }),
    taken: fc.integer({ min: 1, max: 4 }),
  }),
);

test("whatever happens meanwhile: no name twice, and each that nobody touched once", async () => {
  const run = async (before: string[], operations: (typeof operation extends fc.Arbitrary<infer T> ? T : never)[]) => {
    const folder = await createFolder();
    for (const each of before) folder.make(each);
    const touched = new Set<string>();
    const handle = await folder.open();
    const seen: string[] = [];
    let cookie = 0;
    const list = async (limit: number, taken: number) => {
      const { names, cookies } = await folder.list(handle, cookie, limit);
      const dots = cookies.length - names.length;
      const count = Math.min(taken, cookies.length);
      seen.push(...names.slice(0, Math.max(0, count - dots)));
      cookie = cookies[count - 1] ?? cookie;
      return cookies.length > 0;
    };
    await list(2, 2);
    for (const each of operations) {
      if (each.do === "list") await list(each.limit, each.taken);
      else {
        touched.add(each.name);
        if (each.do === "make" && folder.entries.find(ROOT_INODE, each.name) === undefined) folder.make(each.name);
        else if (each.do === "remove") folder.remove(each.name);
        else if (each.do === "move") {
          touched.add(each.to);
          folder.move(each.name, each.to);
        }
      }
    }
    while (await list(10, 10));
    expect(new Set(seen).size, seen.join()).toBe(seen.length);
    for (const each of before) if (!touched.has(each)) expect(seen).toContain(each);
  };
  await fc.assert(fc.asyncProperty(fc.uniqueArray(name), fc.array(operation, { maxLength: 30 }), run), {
    seed: Number(process.env.WSFS_READDIR_SEED ?? 1),
    numRuns: Number(process.env.WSFS_READDIR_RUNS ?? 500),
  });
}, 180_000);

test("a pass that goes back hands out a name again that was passed and left", async () => {
  const { entries, make, remove, move } = await createFolder();
  for (const name of ["a", "b", "c"]) make(name);
  const pass = entries.openStream(ROOT_INODE);
  const first = entries.readStream(pass, 15, 2);
  expect(first.map(({ name }) => name)).toEqual(["a", "b"]);
  // Passed for certain only now.
  expect(entries.readStream(pass, first[1]?.id ?? 0, 1).map(({ name }) => name)).toEqual(["c"]);
  remove("a");
  move("c", "a");
  expect(entries.readStream(pass, first[1]?.id ?? 0, 9)).toEqual([]);
  expect(entries.readStream(pass, 15, 9).map(({ name }) => name)).toEqual(["b", "a"]);
});

test("names that were passed and left are looked at once, however often the pass goes on", async () => {
  const { entries, make, remove } = await createFolder();
  for (let index = 0; index < 400; index += 1) make(`file ${index}`);
  const pass = entries.openStream(ROOT_INODE);
  const all = pass.left[Symbol.iterator].bind(pass.left);
  let looks = 0;
  pass.left[Symbol.iterator] = function* () {
    for (const name of all()) {
      looks += 1;
      yield name;
    }
    return undefined;
  };
  // As rm -r: what is handed out is removed before the pass goes on.
  let removed = 0;
  for (let cookie = 15; ; ) {
    const listed = entries.readStream(pass, cookie, 10);
    for (const { name } of listed) remove(name);
    removed += listed.length;
    cookie = listed.at(-1)?.id ?? Number.POSITIVE_INFINITY;
    if (listed.length < 10) break;
  }
  expect([removed, looks]).toEqual([400, 0]);
});

test("a listing that goes on where another handle was is not taken for the whole folder", async () => {
  const folder = await createFolder();
  for (const name of ["a", "b", "c"]) folder.make(name);
  const handle = await folder.open();
  expect((await folder.list(handle, 2, 10)).names).toEqual(["a", "b", "c"]);
  expect(folder.isKept()).toBe(false);
  await folder.list(handle, 0, 3);
  expect(folder.isKept()).toBe(true);
});

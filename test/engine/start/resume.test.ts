/** What a daemon finds of one that died under its mount: handles go on, and what was done is not done again. */
import { expect, test } from "vitest";
import {
  type Caller,
  type HandleId,
  type HandleTable,
  handleId,
  type KeptHandle,
} from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { recoverOpenFiles } from "../../../src/engine/start/recover.ts";
import { type InodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, CALLER, createBytesWorld, remoteNode } from "../support/bytes-world.ts";

const TEXT = Buffer.from("some text");
const NEWS = Buffer.from("news");
const ROOT = kernelNodeId(1);

/** Outlives a daemon, as the file of slots does. */
function keptTable(): HandleTable & { readonly kept: Map<HandleId, KeptHandle> } {
  const kept = new Map<HandleId, KeptHandle>();
  let last = 100;
  return {
    kept,
    add(handle) {
      last += 1;
      const id = handleId(last);
      kept.set(id, { ...handle, id });
      return id;
    },
    remove: (id) => void kept.delete(id),
    openedBy: (request) => [...kept.values()].find((handle) => handle.request === request),
  };
}

async function worldWith(isPassing = false) {
  const world = await createBytesWorld({}, { isPassing });
  const table = keptTable();
  Object.assign(world.context.handleTable, table);
  world.context.metadata.inodes.update(ROOT_INODE, { listed: 1 });
  /** As kill -9, and the start of its successor. */
  const successor = async (before?: (next: BytesWorld) => Promise<void>): Promise<BytesWorld> => {
    const next = world.crash();
    Object.assign(next.context.handleTable, table);
    await before?.(next);
    const { sweep } = await recoverOpenFiles(next.context, { handles: [...table.kept.values()] });
    await sweep?.();
    return next;
  };
  return { world, table, successor };
}

const asking = (id: number): Caller => ({ ...CALLER, mark: { id, place: 0 } });
const shown = async (world: BytesWorld, inode: Inode) => Buffer.from(await world.readAll(inode)).toString();
const readOf = async (world: BytesWorld, handle: HandleId) => Buffer.from(await world.read(handle, 0, 100)).toString();

test("a file that is written goes on under its number, and is saved with all that was written", async () => {
  const { world, table, successor } = await worldWith();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  const next = await successor();
  expect(await readOf(next, handle)).toBe("some text");
  await next.write(handle, 5, NEWS);
  await next.close(handle);
  expect(table.kept.size).toBe(0);
  expect(next.inode(inode.id)).toMatchObject({ content: "dirty", size: 9 });
  expect(await shown(next, inode)).toBe("some news");
  expect(await next.context.snapshots.take(inode.id, CALLER.signal)).toBe("taken");
  expect(next.complaints).toEqual([]);
});

test("a number is given out no second time", async () => {
  const { world, successor } = await worldWith();
  const { inode, handle } = await world.create();
  const next = await successor();
  expect(await next.open(inode)).toBeGreaterThan(handle);
});

test("a file that was opened for writing and not written is as clean as before", async () => {
  const { world, successor } = await worldWith();
  const inode = world.addRemote(TEXT);
  await world.readAll(inode);
  const handle = await world.open(inode, { write: true });
  const next = await successor();
  expect(next.inode(inode.id).content).toBe("open");
  await next.close(handle);
  expect(next.inode(inode.id).content).toBe("clean");
});

test("a file without a name stays until it is closed and forgotten", async () => {
  const { world, successor } = await worldWith();
  const { inode, handle, name } = await world.create();
  await world.write(handle, 0, TEXT);
  await createFileSystem(world.context).unlink(CALLER, ROOT, name);
  const next = await successor();
  expect(await readOf(next, handle)).toBe("some text");
  await next.write(handle, 0, NEWS);
  expect(await readOf(next, handle)).toBe("news text");
  await createFileSystem(next.context).release(handle);
  next.context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  next.context.orphans.dropForgotten();
  expect(next.context.metadata.inodes.get(inode.id)).toBe(undefined);
});

test("what has lost its name and is known to the kernel alone stays until that forgets it", async () => {
  const { world, successor } = await worldWith();
  const { inode, handle, name } = await world.create();
  await world.close(handle);
  await createFileSystem(world.context).unlink(CALLER, ROOT, name);
  const next = await successor();
  expect((await createFileSystem(next.context).getattr(CALLER, inode.kernelNodeId)).stat).toMatchObject({
    inode: inode.id,
    links: 0,
  });
  next.context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  next.context.orphans.dropForgotten();
  expect(next.context.metadata.inodes.get(inode.id)).toBe(undefined);
});

test("a program that reads a version that was replaced goes on reading it", async () => {
  const { world, successor } = await worldWith();
  const inode = world.addRemote(TEXT);
  const handle = await world.open(inode);
  await world.read(handle, 0, 4);
  world.context.metadata.inodes.replaceKernelNodeId(inode.id, { size: NEWS.length, hash: null });
  const next = await successor();
  expect(await readOf(next, handle)).toBe("some text");
  await next.close(handle);
  expect(next.complaints).toEqual([]);
});

/** Somebody elsewhere saves or removes what a program here has open for writing. */
async function detached({ world }: Awaited<ReturnType<typeof worldWith>>, how: "saved" | "removed") {
  const { context } = world;
  const inode = world.addRemote(TEXT, { name: "a" });
  await world.readAll(inode);
  await world.clock.advance(1000);
  const writing = await world.open(inode, { write: true });
  const reading = await world.open(inode);
  if (how === "removed") context.observer.deletion("a", 2, null);
  else context.observer.node(remoteNode("a", NEWS, { head: "newer", revision: 2 }));
  await until(world, () => context.metadata.detachedFiles.get(inode.id) !== undefined);
  return { inode, writing, reading };
}

async function until({ clock }: BytesWorld, isSo: () => boolean): Promise<void> {
  for (let turns = 0; !isSo(); turns += 1) {
    if (turns > 100) throw new Error("it does not come to that");
    await clock.advance(1);
  }
}

const namesOf = ({ context: { metadata } }: BytesWorld, inode: Inode) =>
  metadata.entries.ofInode(inode.id).map(({ name }) => name.replace(/ \(conflict, .*\)/, " (conflict)"));
/** The ids of a dead daemon count for its successor. */
const taken = async ({ context }: BytesWorld) =>
  void Object.assign(context, { passthrough: { ...context.passthrough, unregister: () => {} } });

test.each([
  { how: "saved", isPassing: false, kept: "a (conflict)" },
  { how: "saved", isPassing: true, kept: "a (conflict)" },
  { how: "removed", isPassing: false, kept: "a" },
  { how: "removed", isPassing: true, kept: "a" },
] as const)(
  "$how elsewhere (passthrough: $isPassing), a program goes on with a file that it has open for writing, and what it writes is kept",
  async (given) => {
    const it = await worldWith(given.isPassing);
    const { inode, writing, reading } = await detached(it, given.how);
    const first = await it.successor(taken);
    expect([await readOf(first, writing), await readOf(first, reading)]).toEqual(["some text", "some text"]);
    expect([first.inode(inode.id).content, namesOf(first, inode)]).toEqual(["open", []]);
    // Nobody else comes to it by the name it had.
    await expect(first.open(inode, { write: true })).rejects.toMatchObject({ code: "ESTALE" });
    await first.write(writing, 0, NEWS);
    // Killed before its snapshot, and once more after that.
    const then = async (world: BytesWorld) => {
      const next = world.crash();
      Object.assign(next.context.handleTable, it.table);
      await taken(next);
      await (await recoverOpenFiles(next.context, { handles: [...it.table.kept.values()] })).sweep?.();
      return next;
    };
    const second = await then(first);
    expect([second.inode(inode.id).content, namesOf(second, inode)]).toEqual(["dirty", []]);
    await second.clock.advance(1000);
    expect(await second.context.snapshots.take(inode.id, CALLER.signal)).toBe("taken");
    expect(namesOf(second, inode)).toEqual([given.kept]);
    const third = await then(second);
    await third.write(writing, 5, NEWS);
    for (const handle of [writing, reading]) await third.close(handle);
    expect([await shown(third, inode), namesOf(third, inode)]).toEqual(["news news", [given.kept]]);
    expect([third.context.metadata.detachedFiles.all(), it.table.kept.size]).toEqual([[], 0]);
    expect([...first.complaints, ...third.complaints]).toEqual([]);
  },
);

test.each([NEWS, TEXT])(
  "what the kernel wrote to such a file when the mount was lost is kept, if it is other than it was",
  async (bytes) => {
    const it = await worldWith(true);
    const { inode } = await detached(it, "saved");
    const next = it.world.crash();
    const file = await next.context.runtime.files.open(next.context.paths.cacheFile(inode.kernelNodeId), "r+");
    await file.write(bytes, 0);
    await file.close();
    // Another mount: nobody has anything open.
    await (await recoverOpenFiles(next.context)).sweep?.();
    const isOther = bytes === NEWS;
    expect(next.context.metadata.inodes.get(inode.id)?.content).toBe(isOther ? "dirty" : undefined);
    expect(namesOf(next, inode)).toEqual(isOther ? ["a (conflict)"] : []);
  },
);

test("so does one that has it open for writing, and whoever else has that version open", async () => {
  for (const isPassing of [false, true]) {
    const { world, table, successor } = await worldWith(isPassing);
    const inode = world.addRemote(TEXT);
    await world.readAll(inode);
    await world.clock.advance(1000);
    const writing = await world.open(inode, { write: true });
    const reading = await world.open(inode);
    const news = { size: NEWS.length, hash: null, content: "clean" } as const;
    const { changes } = world.context.metadata.inodes.replaceKernelNodeId(inode.id, news);
    const next = await successor(async ({ context }) => {
      Object.assign(context, { passthrough: { ...context.passthrough, unregister: () => {} } });
    });
    for (const handle of [writing, reading]) expect(await readOf(next, handle)).toBe("some text");
    await expect(next.write(writing, 0, NEWS)).rejects.toMatchObject({ code: "ESTALE" });
    for (const handle of [writing, reading]) await next.close(handle);
    expect([table.kept.size, next.context.cacheFiles.size]).toEqual([0, 0]);
    expect(next.inode(inode.id)).toMatchObject({ ...news, changes });
    expect(next.complaints).toEqual([]);
  }
});

test("a folder that is listed goes on", async () => {
  const { world, table, successor } = await worldWith();
  const handle = table.add({
    request: undefined,
    kernelNodeId: ROOT,
    kind: "folder",
    write: false,
    append: false,
    backing: undefined,
  });
  void world;
  const next = await successor();
  expect(next.context.handles.get(handle)).toMatchObject({ kind: "folder", inode: ROOT });
});

test("a file the kernel writes by itself keeps its id, and what it wrote meanwhile is noticed", async () => {
  const { world, table, successor } = await worldWith(true);
  const inode = world.addRemote(TEXT);
  await world.readAll(inode);
  await world.clock.advance(1000);
  const handle = await world.open(inode, { write: true });
  const backing = table.kept.get(handle)?.backing;
  expect(backing).toBeGreaterThan(0);
  const registered: number[] = [];
  const next = await successor(async ({ context }) => {
    const file = await context.runtime.files.open(context.paths.cacheFile(inode.kernelNodeId), "r+");
    await file.write(NEWS, 5);
    await file.close();
    const passthrough = {
      ...context.passthrough,
      register: () => {
        throw new Error("registered again");
      },
      unregister: (id: number) => void registered.push(id),
    };
    Object.assign(context, { passthrough });
  });
  expect(next.inode(inode.id)).toMatchObject({ content: "dirty", hash: null });
  expect(registered).toEqual([]);
  await next.close(handle);
  expect(registered).toEqual([backing]);
  expect(next.inode(inode.id)).toMatchObject({ content: "dirty", size: 9 });
});

test("one whose bytes did not change is not taken for changed", async () => {
  const { world, successor } = await worldWith(true);
  const inode = world.addRemote(TEXT);
  await world.readAll(inode);
  await world.clock.advance(1000);
  const handle = await world.open(inode, { write: true });
  const next = await successor(async ({ context }) => {
    Object.assign(context, { passthrough: { ...context.passthrough, unregister: () => {} } });
  });
  expect(next.inode(inode.id).content).toBe("open");
  await next.close(handle);
  expect(next.inode(inode.id).content).toBe("clean");
});

test("what cannot be opened again fails alone, and the log says so", async () => {
  const { world, table, successor } = await worldWith();
  const lost = await world.create();
  await world.write(lost.handle, 0, TEXT);
  await world.close(lost.handle);
  const handle = await world.open(lost.inode, { write: true });
  const other = await world.create();
  const next = await successor(async ({ context }) => {
    await context.runtime.files.remove(context.paths.cacheFile(lost.inode.kernelNodeId));
  });
  expect(next.context.handles.has(handle)).toBe(false);
  expect(table.kept.has(handle)).toBe(false);
  expect(await next.write(other.handle, 0, TEXT)).toBe(TEXT.length);
  expect(next.complaints.join()).toContain("an open file could not be taken over");
});

test("of a change that was committed the answer is found again; of one that was not, nothing", async () => {
  const { world, successor } = await worldWith();
  const { context } = world;
  const flags = { read: true, write: true, append: false, truncate: false, exclusive: true };
  const made = await createFileSystem(context).create(asking(40), ROOT, "new", 0o644, flags);
  const next = await successor();
  const done = createFileSystem(next.context).done(40);
  expect(await done?.found()).toMatchObject({ kernelNodeId: made.kernelNodeId });
  expect(done?.opened).toMatchObject({ handle: made.handle });
  expect(createFileSystem(next.context).done(42)).toBe(undefined);
});

test("what waits together is found by its own number, in whatever place it was", async () => {
  const { world, successor } = await worldWith();
  const { context } = world;
  const at = (id: number, place: number): Caller => ({ ...CALLER, mark: { id, place } });
  const folder = await createFileSystem(context).mkdir(at(40, 0), ROOT, "d", 0o755);
  const { inode } = await world.create();
  await createFileSystem(context).link(at(42, 1), inode.kernelNodeId, ROOT, "second");
  const to = { parent: ROOT, name: "third" };
  await createFileSystem(context).rename(at(44, 0), { parent: ROOT, name: "second" }, to, {
    noReplace: false,
    exchange: false,
  });
  const next = await successor();
  // Its answer was given: the place is another's since.
  expect(createFileSystem(next.context).done(40)).toBe(undefined);
  expect(await createFileSystem(next.context).done(42)?.found()).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  expect(createFileSystem(next.context).done(44)).not.toBe(undefined);
  expect(next.context.metadata.done.end()).toBe(2);
  expect(folder.stat.kind).toBe("folder");
});

test("a change that is refused, or given up half way, leaves no word of it", async () => {
  const { world } = await worldWith();
  const { context } = world;
  await createFileSystem(context).mkdir(CALLER, ROOT, "d", 0o755);
  await expect(createFileSystem(context).mkdir(asking(40), ROOT, "d", 0o755)).rejects.toMatchObject({ code: "EEXIST" });
  expect(createFileSystem(context).done(40)).toBe(undefined);
});

/** The kernel, or somebody's mapping, still counts as a writer of each file. */
function neverAlone({ context }: BytesWorld): void {
  const { files } = context.runtime;
  const open = files.open.bind(files);
  Object.assign(files, {
    open: async (...args: Parameters<typeof open>) =>
      Object.assign(await open(...args), { isOnlyWriter: async () => false }),
  });
}

test("a file that one reads and another has mapped, or was just closing, is one file", async () => {
  const { world, table, successor } = await worldWith(true);
  const inode = world.addRemote(TEXT);
  await world.readAll(inode);
  await world.clock.advance(1000);
  const reading = await world.open(inode);
  table.remove(await world.open(inode, { write: true }));
  const next = await successor(async (there) => neverAlone(there));
  const handle = next.context.handles.get(reading);
  expect(handle?.kind === "file" && handle.cacheFile === next.context.cacheFiles.get(inode.kernelNodeId)).toBe(true);
  const opened = await next.open(inode);
  expect(table.kept.get(opened)?.backing).toBe(table.kept.get(reading)?.backing);
  next.context.fileState.stop();
});

test("a file that cannot be taken over is not kept half open", async () => {
  const { world, successor } = await worldWith();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  const next = await successor(async ({ context }) => {
    const { begin } = context.metadata.writers;
    let count = 0;
    Object.assign(context.metadata.writers, {
      begin(id: InodeId) {
        count += 1;
        if (count === 2) throw new Error("disk full");
        begin(id);
      },
    });
  });
  expect(next.context.cacheFiles.get(inode.kernelNodeId)).toBeUndefined();
  expect(next.context.handles.size).toBe(0);
  expect(next.complaints).toEqual(["an open file could not be taken over: disk full"]);
});

test("whoever had a version open that was replaced takes no mark from who writes to the one that came", async () => {
  const { world } = await worldWith();
  const inode = world.addRemote(TEXT);
  await world.readAll(inode);
  const former = await world.open(inode, { write: true });
  const { context } = world;
  context.metadata.inodes.replaceKernelNodeId(inode.id, { content: "clean" });
  const handle = await world.open(world.inode(inode.id), { write: true, truncate: true });
  await world.write(handle, 0, Buffer.from("much longer than it was"));
  await world.close(former);
  context.metadata.transaction(() => context.metadata.settings.set("migrated", "x"));
  const next = world.crash();
  await (await recoverOpenFiles(next.context)).sweep?.();
  expect(next.inode(inode.id)).toMatchObject({ content: "dirty", size: 23 });
});

test("a file whose last writer wrote nothing is clean after a crash too, where the gateway tells no hash", async () => {
  const { world } = await worldWith();
  const inode = world.addRemote(TEXT, { hash: null });
  await world.readAll(inode);
  await world.close(await world.open(inode, { write: true }));
  expect(world.inode(inode.id).content).toBe("clean");
  const next = world.crash();
  await (await recoverOpenFiles(next.context)).sweep?.();
  expect(next.inode(inode.id).content).toBe("clean");
});

test("a mapped file that cannot be taken over costs nobody else the mount", async () => {
  for (const isRead of [false, true]) {
    const { world, table, successor } = await worldWith(true);
    const inode = world.addRemote(TEXT);
    const other = world.addRemote(NEWS);
    for (const one of [inode, other]) await world.readAll(one);
    await world.clock.advance(1000);
    const reading = await world.open(isRead ? inode : other);
    table.remove(await world.open(inode, { write: true }));
    const next = await successor(async (there) => {
      neverAlone(there);
      const { dirtyLog, passthrough } = there.context;
      const flush = () => Promise.reject(new Error("disk full"));
      Object.assign(there.context, {
        dirtyLog: { ...dirtyLog, flush },
        passthrough: { ...passthrough, unregister() {} },
      });
    });
    expect(next.complaints).toEqual(["a file that a program has mapped could not be taken over: disk full"]);
    expect(await readOf(next, reading)).toBe(isRead ? "some text" : "news");
    await next.close(reading);
    expect(next.context.cacheFiles.size).toBe(0);
    // The next start looks at it.
    expect(next.context.metadata.inodes.writing().map(({ id }) => id)).toEqual([inode.id]);
  }
});

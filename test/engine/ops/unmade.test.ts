/** A CREATE whose file finds no room on the disk, after its name was made: there is no such file, whoever asks. */
import { expect, test } from "vitest";
import type { Caller } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, CALLER, createBytesWorld, type Parts, pattern } from "../support/bytes-world.ts";

const WRITING = { read: false, write: true, append: false, truncate: false, exclusive: true };
const READING = { ...WRITING, read: true, write: false, exclusive: false };
const ROOT = kernelNodeId(1);
const asking = (id: number): Caller => ({ ...CALLER, mark: { id, place: 0 } });

const said = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: Error & { code?: string }) => error.code,
  );

async function worldWithRoot() {
  const world = await createBytesWorld();
  world.context.metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const { inodes } = world.context.metadata;
  return { world, context: world.context, nameless: () => inodes.orphans(0, inodes.newestOrphan(), 10).length };
}

/** A CREATE of "a" that is going to fail: its name is made, and its file has not met the disk. */
async function named({ files, context }: BytesWorld) {
  const heal = files.fail({ path: /live/, code: "ENOSPC", on: ["open"], times: 1e9 });
  const making = said(createFileSystem(context).create(asking(7), ROOT, "a", 0o644, WRITING));
  // Named before anything is waited for but the disk.
  for (let turns = 0; context.metadata.entries.find(ROOT_INODE, "a") === undefined && turns < 100; turns += 1) {
    await undefined;
  }
  return { making, heal };
}

async function fileOf(context: Parts, name: string) {
  const file = await createFileSystem(context).lookup(CALLER, ROOT, name);
  if (file.kernelNodeId === undefined) throw new Error("it was not found");
  return file;
}

test("its request, come again to a successor, is done anew", async () => {
  const { world, context, nameless } = await worldWithRoot();
  const heal = world.files.fail({ path: /live/, code: "ENOSPC", on: ["open"], times: 1e9 });
  expect(await said(createFileSystem(context).create(asking(7), ROOT, "a", 0o644, WRITING))).toBe("ENOSPC");
  heal();
  expect(nameless()).toBe(0);
  const next = world.crash();
  expect(createFileSystem(next.context).done(7)).toBe(undefined);
  const made = await createFileSystem(next.context).create(asking(7), ROOT, "a", 0o644, WRITING);
  expect(made.stat).toMatchObject({ links: 1, size: 0 });
});

test.each([{ disk: "with" }, { disk: "without" }])(
  "its daemon dies before it is opened: the request, come again, opens what it made, or there is no such file ($disk room)",
  async ({ disk }) => {
    const { world } = await worldWithRoot();
    const { making, heal } = await named(world);
    const next = world.crash();
    heal();
    await making;
    await next.recover();
    if (disk === "without") next.files.fail({ path: /live/, code: "ENOSPC", on: ["open"], times: 1e9 });
    const done = createFileSystem(next.context).done(7);
    const again = done?.openMade(asking(7), { ...WRITING, exclusive: false }) ?? Promise.reject(new Error("not done"));
    expect(await said(again)).toBe(disk === "with" ? "done" : "ENOSPC");
    expect(await said(createFileSystem(next.context).lookup(CALLER, ROOT, "a"))).toBe(
      disk === "with" ? "done" : "ENOENT",
    );
    // Where it was not done, one more successor does it anew.
    expect(createFileSystem(next.context).done(7) === undefined).toBe(disk === "without");
  },
);

test("its daemon dies before it is opened, and it is given other permissions: it stays when it cannot be opened", async () => {
  const { world } = await worldWithRoot();
  const { making, heal } = await named(world);
  const next = world.crash();
  heal();
  await making;
  await next.clock.advance(10);
  const { kernelNodeId } = await fileOf(next.context, "a");
  await createFileSystem(next.context).setattr(CALLER, kernelNodeId, { mode: 0o600 });
  next.files.fail({ path: /live/, code: "ENOSPC", on: ["open"], times: 1e9 });
  const done = createFileSystem(next.context).done(7);
  const again = done?.openMade(asking(7), { ...WRITING, exclusive: false }) ?? Promise.reject(new Error("not done"));
  expect(await said(again)).toBe("ENOSPC");
  expect((await fileOf(next.context, "a")).stat.mode & 0o777).toBe(0o600);
});

test("who was told of it meanwhile has a removed file until the kernel forgets it", async () => {
  const { world, context, nameless } = await worldWithRoot();
  const { making } = await named(world);
  const { kernelNodeId } = await fileOf(context, "a");
  expect(await making).toBe("ENOSPC");
  expect((await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat.links).toBe(0);
  expect(await said(createFileSystem(context).lookup(CALLER, ROOT, "a"))).toBe("ENOENT");
  context.orphans.forgotten([{ kernelNodeId }]);
  context.orphans.dropForgotten();
  expect(nameless()).toBe(0);
  expect(await said(createFileSystem(context).getattr(CALLER, kernelNodeId))).toBe("ESTALE");
});

test("renamed over another file meanwhile, it is there under that name, empty", async () => {
  const { world, context } = await worldWithRoot();
  await world.close((await createFileSystem(context).create(CALLER, ROOT, "b", 0o644, WRITING)).handle);
  const { making, heal } = await named(world);
  const flags = { noReplace: false, exchange: false };
  await createFileSystem(context).rename(CALLER, { parent: ROOT, name: "a" }, { parent: ROOT, name: "b" }, flags);
  expect(await making).toBe("ENOSPC");
  expect(await said(createFileSystem(context).lookup(CALLER, ROOT, "a"))).toBe("ENOENT");
  const { kernelNodeId, stat } = await fileOf(context, "b");
  expect(stat).toMatchObject({ links: 1, size: 0 });
  heal();
  expect(await said(createFileSystem(context).open(CALLER, kernelNodeId, READING))).toBe("done");
});

test("given other permissions meanwhile, it is there with them", async () => {
  const { world, context } = await worldWithRoot();
  const { making } = await named(world);
  const { kernelNodeId } = await fileOf(context, "a");
  await createFileSystem(context).setattr(CALLER, kernelNodeId, { mode: 0o600 });
  expect(await making).toBe("ENOSPC");
  expect((await fileOf(context, "a")).stat.mode & 0o777).toBe(0o600);
});

for (const name of ["new", "there"]) {
  test(`opened, and then it cannot be looked at: the ${name} file is nobody's open file`, async () => {
    const { world, context } = await worldWithRoot();
    if (name === "there") {
      await world.close((await createFileSystem(context).create(CALLER, ROOT, name, 0o644, WRITING)).handle);
    }
    const { files } = context.runtime;
    const failing: typeof files.open = async (path, mode) => {
      const file = await files.open(path, mode);
      const stat = () => {
        if (context.handles.size === 0) return file.stat();
        return Promise.reject(Object.assign(new Error("i/o error"), { code: "EIO" }));
      };
      return new Proxy(file, { get: (target, key) => (key === "stat" ? stat : Reflect.get(target, key)) });
    };
    Object.assign(context, { runtime: { ...context.runtime, files: { ...files, open: failing } } });
    const flags = { ...WRITING, exclusive: false };
    expect(await said(createFileSystem(context).create(asking(8), ROOT, name, 0o644, flags))).toBe("EIO");
    Object.assign(context, { runtime: { ...context.runtime, files } });
    expect([context.handles.size, context.cacheFiles.size]).toEqual([0, 0]);
    const found = context.metadata.entries.find(ROOT_INODE, name);
    expect(found === undefined).toBe(name === "new");
    if (found !== undefined) {
      const { kernelNodeId } = world.inode(found.inode);
      expect(await said(createFileSystem(context).open(CALLER, kernelNodeId, READING))).toBe("done");
    }
  });
}

test("made by somebody else while its CREATE waits for room, the file keeps what that one wrote", async () => {
  const { world, context } = await worldWithRoot();
  const cached = world.addRemote(pattern(1000), { name: "cached" });
  await world.readAll(cached);
  world.files.fail({ path: /live/, code: "ENOSPC", on: ["open"], times: 1 });
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { runtime } = context;
  const remove = (path: string) => held.then(() => world.files.remove(path));
  Object.assign(context, { runtime: { ...runtime, files: { ...runtime.files, remove } } });
  const making = createFileSystem(context).create(asking(7), ROOT, "a", 0o644, WRITING);
  for (let turns = 0; turns < 1_000; turns += 1) await undefined;
  const { kernelNodeId } = await fileOf(context, "a");
  if (kernelNodeId === undefined) throw new Error("it was not found");
  const { handle } = await createFileSystem(context).open(CALLER, kernelNodeId, { ...READING, write: true });
  await world.write(handle, 0, Buffer.from("kept"));
  await world.close(handle);
  goOn();
  await createFileSystem(context).release((await making).handle);
  const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined) throw new Error("no inode");
  expect(Buffer.from(await world.readAll(inode)).toString()).toBe("kept");
});

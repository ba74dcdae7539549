/**
 * The kernel's cache of names, attributes and listings agrees with the rows: every change is invalidated, and what it
 * forgets goes.
 */
import { describe, expect, test } from "vitest";
import type { FileSystem, KernelCache, KernelNodeId } from "../../src/engine/api/index.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { playHistory } from "./support/history.ts";
import { diskViolations } from "./support/invariants.ts";
import type { Mount, Sabotage } from "./support/mount.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf, type Program, runProgram, sourceOf } from "./support/programs.ts";
import { rowsOf } from "./support/rows.ts";
import type { Step } from "./support/steps.ts";
import { hashOf, readFile } from "./support/tree.ts";
import { beginTwo } from "./support/two-world.ts";
import { createWorld } from "./support/world.ts";

describe("changed elsewhere", () => {
  const run = (mount: number, program: Program): Step => ({ do: "run", mount, program });

  const wait = (ms: number): Step => ({ do: "wait", ms });

  /** Looks at everything, so that the kernel of the mount keeps it; a listing when it is made for the second time. */
  const look = (mount: number): Step[] => [
    ...["", "d", "", "d"].map((path) => run(mount, { do: "list", path })),
    ...["a", "b", "d/a", "d/b"].map((path) => run(mount, { do: "read", path })),
  ];

  const CHANGED: readonly Step[] = [
    run(0, { do: "mkdir", path: "d" }),
    run(0, { do: "save", path: "a", size: 20 }),
    run(0, { do: "save", path: "d/a", size: 20 }),
    wait(6_000),
    ...look(1),
    // A name that was absent, content, a name that goes, one that comes, attributes.
    run(0, { do: "save", path: "b", size: 5 }),
    run(0, { do: "save", path: "a", size: 30 }),
    run(0, { do: "rename", path: "d/a", to: "d/b" }),
    wait(6_000),
    ...look(1),
    run(0, { do: "utimens", path: "d/b", seconds: 77 }),
    run(0, { do: "unlink", path: "a" }),
    wait(6_000),
    ...look(1),
  ];

  /** Nobody hears anything any more, and then again. */
  const CUT_OFF: readonly Step[] = [
    ...CHANGED,
    { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
    wait(45_000),
    run(0, { do: "save", path: "a", size: 40 }),
    wait(5_000),
    { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 0 },
    wait(10_000),
    ...look(1),
  ];

  const without = (left: Partial<Parameters<KernelCache["tell"]>[0]>): Sabotage => ({
    kernelCache: (cache: KernelCache) => ({ ...cache, tell: (news, known) => cache.tell({ ...news, ...left }, known) }),
  });

  test.each([
    ["changed elsewhere", CHANGED],
    ["while the mount was offline", CUT_OFF],
  ])("the kernel's cache agrees with the rows: %s", async (_, steps) => {
    for (const seed of [1, 2, 3, 4]) await playHistory(steps, { mounts: 2, seed });
  });

  test.each<[string, readonly Step[], Sabotage, RegExp]>([
    ["names", CHANGED, without({ names: [] }), /was not told: .*is kept as/],
    ["attributes", CHANGED, without({ inodes: [] }), /was not told: attributes/],
    [
      "listings",
      CHANGED,
      {
        ...without({ listings: [] }),
        fileSystem: (own) =>
          Object.assign(Object.create(own), {
            opendir: async (...args: Parameters<typeof own.opendir>) => ({
              ...(await own.opendir(...args)),
              keepCache: true,
            }),
          }),
      },
      /was not told: folder/,
    ],
    ["everything", CUT_OFF, { kernelCache: (cache) => ({ ...cache, everything() {} }) }, /kept for long/],
  ])("without invalidations of %s: noticed", async (_, steps, sabotage, fault) => {
    await expect(playHistory(steps, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(fault);
  });
});

describe("a name that changed between lookup and open", () => {
  const CALLER = { uid: 0, gid: 0, pid: 1, umask: 0o22, signal: new AbortController().signal };

  const FOR_WRITING = { read: true, write: true, append: false, truncate: false, exclusive: false };

  const HEARD_MS = 5_000;

  async function begin() {
    const world = await createWorld({ seed: 1, mounts: ["alpha"] });
    const [mount] = world.mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const { kernel, engine } = mount.process;
    await world.run(runProgram(kernel, { do: "save", path: "a", size: 40 }, "a"));
    await world.clock.advance(HEARD_MS);
    const { items } = await world.run(world.outside.listFolder(world.workspace.root));
    const node = items.find(({ name }) => name === "a");
    if (node === undefined) throw new Error("a is not there");
    const rows = rowsOf(mount.process.database);
    const kernelNodeIdOf = (name: string): KernelNodeId => kernelNodeId(rows.inode(name)?.kernelNodeId ?? 0);
    const fileSystem: FileSystem = engine.fileSystem;
    return { world, node, rows, fileSystem, kernelNodeIdOf };
  }

  test("removed elsewhere: the name is looked up again, and the orphan goes when the kernel forgets it", async () => {
    const { world, node, rows, fileSystem, kernelNodeIdOf } = await begin();
    const found = kernelNodeIdOf("a");
    const reader = await world.run(fileSystem.open(CALLER, found, { ...FOR_WRITING, write: false }));
    await world.run(world.outside.deleteNode(node.id));
    await world.clock.advance(HEARD_MS);
    expect(rows.inode("a")).toBeUndefined();
    await expect(world.run(fileSystem.open(CALLER, found, FOR_WRITING))).rejects.toMatchObject({ code: "ESTALE" });
    // Who has it open reads on.
    expect((await world.run(fileSystem.read(CALLER, reader.handle, 0, 40))).length).toBe(40);
    const inode = rows.inodeOfKernelNodeId(found)?.id ?? 0;
    expect(rows.hasInode(inode)).toBe(true);
    await world.run(fileSystem.release(reader.handle));
    fileSystem.forget([{ kernelNodeId: found, count: 1 }]);
    await world.clock.advance(1_000);
    expect(rows.hasInode(inode)).toBe(false);
    world.check();
  });

  test("linked elsewhere: both names are the file it was", async () => {
    const { world, node, fileSystem, kernelNodeIdOf } = await begin();
    const found = kernelNodeIdOf("a");
    const link = { group: "g", hash: node.contentHash ?? "" };
    const content = { copyOf: node.id, ...(node.head === null ? {} : { version: node.head }) };
    await world.run(
      world.outside.copyNode(world.workspace.root, "b", content, { attributes: { ...node.attributes, link } }),
    );
    await world.clock.advance(HEARD_MS);
    await world.run(world.outside.patchNode(node.id, { attributes: { link } }));
    await world.clock.advance(HEARD_MS);
    expect([kernelNodeIdOf("a"), kernelNodeIdOf("b")]).toEqual([found, found]);
    const { handle } = await world.run(fileSystem.open(CALLER, found, FOR_WRITING));
    await world.run(fileSystem.write(CALLER, handle, 0, Buffer.from("both"), { killPrivileges: false }));
    await world.run(fileSystem.release(handle));
    const other = await world.run(fileSystem.open(CALLER, kernelNodeIdOf("b"), { ...FOR_WRITING, write: false }));
    expect(Buffer.from(await world.run(fileSystem.read(CALLER, other.handle, 0, 4))).toString()).toBe("both");
    await world.run(fileSystem.release(other.handle));
    world.check();
  });

  test("linked elsewhere to another file: the name is looked up again", async () => {
    const { world, node, fileSystem, kernelNodeIdOf } = await begin();
    const found = kernelNodeIdOf("a");
    const bytes = bytesOf("another", 40);
    const link = { group: "g", hash: hashOf(bytes) };
    await world.run(world.outside.upload(world.workspace.root, "b", sourceOf(bytes), { attributes: { link } }));
    await world.clock.advance(HEARD_MS);
    await world.run(world.outside.writeContent(node.id, sourceOf(bytes), { attributes: { link } }));
    await world.clock.advance(HEARD_MS);
    expect(kernelNodeIdOf("a")).toBe(kernelNodeIdOf("b"));
    await expect(world.run(fileSystem.open(CALLER, found, FOR_WRITING))).rejects.toMatchObject({ code: "ESTALE" });
    world.check();
  });
});

describe("rows of what the kernel has forgotten", () => {
  /** The kernel is asked once in so long what it has. */
  const ASK_KERNEL_MS = 60_000;

  const NAMES = ["a", "b", "c", "d"];

  async function begin() {
    const two = await beginTwo();
    const { world, alpha, beta, run, calls } = two;
    /** What a mount has of files that are gone and of versions that are replaced, and how many files it has open. */
    const kept = (mount: Mount) => {
      const rows = two.rows(mount);
      const open = (mount.process?.files.openHandles() ?? 0) - openAtRest;
      return { nameless: rows.nameless(), superseded: rows.superseded(), files: rows.liveFiles(), open };
    };
    const save = async (name: string, label: string) => {
      await run(alpha, { do: "save", path: `in/${name}`, size: 40 }, label);
    };
    await world.run(calls(alpha).mkdir("in"));
    await two.drain(alpha);
    await world.clock.advance(15_000);
    expect(await world.run(calls(beta).list("in"))).toEqual([]);
    const openAtRest = beta.process?.files.openHandles() ?? 0;
    return { ...two, kept, save, heard: () => world.clock.advance(15_000) };
  }

  test("a folder that was listed once, in which files come and go, leaves no rows", async () => {
    const { world, alpha, beta, calls, kept, save, drain, heard } = await begin();
    for (let round = 0; round < 3; round += 1) {
      for (const name of NAMES) await save(name, `${name}${round}`);
      await drain(alpha);
      await heard();
      for (const name of NAMES) await world.run(calls(alpha).unlink(`in/${name}`));
      await drain(alpha);
      await heard();
    }
    expect(kept(beta).nameless).toBeGreaterThan(0);
    await world.clock.advance(2 * ASK_KERNEL_MS + 5_000);
    expect(kept(beta)).toEqual({ nameless: 0, superseded: 0, files: 0, open: 0 });
    world.check();
  });

  test("versions that were read and forgotten leave no cache files; the one that is shown, and one that is open, stay", async () => {
    const { world, alpha, beta, calls, kept, save, drain, heard, labelOf } = await begin();
    const held: number[] = [];
    for (let version = 0; version < 4; version += 1) {
      await save("a", `version${version}`);
      await drain(alpha);
      await heard();
      expect(await labelOf(beta, "in/a")).toBe(`version${version}`);
      if (version === 1) held.push(await world.run(calls(beta).open("in/a", {})));
      calls(beta).dropCaches();
    }
    expect(kept(beta)).toMatchObject({ superseded: 3, files: 4 });
    await world.clock.advance(2 * ASK_KERNEL_MS + 5_000);
    expect(kept(beta)).toEqual({ nameless: 0, superseded: 1, files: 2, open: 1 });
    for (const fd of held) {
      expect((await world.run(calls(beta).read(fd, 0, 40))).toString()).toMatch(/^version1;/);
      await world.run(calls(beta).close(fd));
    }
    expect((await world.run(readFile(calls(beta), "in/a"))).toString()).toMatch(/^version3;/);
    world.check();
  });
});

describe("a reload", () => {
  test("an orphan that the kernel forgot right before a reload is gone when the daemon has left", async () => {
    const { world, mount, save, unlink, engine, rows } = await begin();
    await save("a");
    await world.clock.advance(10_000);
    await unlink("a");
    expect([rows().nameless(), rows().liveFiles()]).toEqual([1, 1]);
    await world.run(engine().leave(async () => {}));
    expect([rows().nameless(), rows().liveFiles()]).toEqual([0, 0]);
    expect(mount.process === undefined ? [] : diskViolations(mount.process)).toEqual([]);
  });
});

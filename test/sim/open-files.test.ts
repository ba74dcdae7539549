/**
 * Files that programs have open for writing: what a drain sends of them, what `durability remote` makes their writers
 * wait for, and detached files. Another mount has saved, replaced or removed such a file, in which nothing is unsent:
 * the name shows that at once, and the program goes on with its bytes. What it writes from then on is kept, once,
 * whichever ends first: the program, the mount or the daemon.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import { minus } from "../../src/lib/clocks.ts";
import { sleep } from "../../src/lib/runtime.ts";
import { PLAIN, without } from "../support/features.ts";
import type { Calls } from "./support/calls.ts";
import { violations } from "./support/invariants.ts";
import type { Mount } from "./support/mount.ts";
import { begin as beginOne, there } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf, textOf } from "./support/programs.ts";
import { isFolderCreation } from "./support/requests.ts";
import { gatewayTree, hashOf, readFile } from "./support/tree.ts";
import { createWorld, type WorldOptions } from "./support/world.ts";

const SIZE = 40;

const DRAINED = { drained: true, left: [] };

/** A drain ends after so long, however it is. */
const DRAIN_LIMIT_MS = 600_000;

async function beginMounts(options: WorldOptions) {
  const world = await createWorld(options);
  const calls = ({ process }: Mount) => process?.kernel ?? expect.unreachable("the mount is down");
  return {
    world,
    mounts: world.mounts,
    calls,
    save: (mount: Mount, path: string, label: string) =>
      world.run(runProgram(calls(mount), { do: "save", path, size: SIZE }, label)),
    async drain(mount: Mount) {
      const limit = new AbortController();
      const timer = world.clock.setTimer(DRAIN_LIMIT_MS, () => limit.abort());
      const engine = mount.process?.engine ?? expect.unreachable("the mount is down");
      const result = await world.run(engine.drain({ settle: true, signal: limit.signal }));
      timer.cancel();
      return result;
    },
  };
}

describe("drain", () => {
  const TIERS = [
    ["full", ALL_FEATURES],
    ["plain", PLAIN],
  ] as const;

  const UNHASHED = [
    ["without hashes", without("hashes")],
    ["plain without hashes", { ...PLAIN, hashes: false }],
  ] as const;

  async function begin(mounts: readonly string[], features: Features = ALL_FEATURES) {
    const it = await beginMounts({ seed: 1, mounts, features, sabotage: {} });
    const { world, calls } = it;
    return {
      ...it,
      async there() {
        const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
        return Object.fromEntries([...tree].map(([path, { content }]) => [path, content]));
      },
      open: (mount: Mount, path: string) => world.run(calls(mount).open(path, { write: true, create: true })),
      write: (mount: Mount, handle: number, label: string) =>
        world.run(calls(mount).write(handle, 0, bytesOf(label, SIZE))),
      shown: async (mount: Mount, path: string) => (await world.run(readFile(calls(mount), path))).toString("latin1"),
    };
  }

  test("the same content is written elsewhere: that is no conflict, and the other changes made here are sent", async () => {
    const { world, mounts, calls, save, open, write, drain, shown, there } = await begin(["alpha", "beta"]);
    const [alpha, beta] = mounts as [Mount, Mount];
    await save(alpha, "a", "old");
    expect(await drain(alpha)).toEqual(DRAINED);
    await world.clock.advance(4_000);
    await world.run(calls(beta).list(""));
    alpha.weather.isOffline = true;
    await save(alpha, "a", "same");
    const handle = await open(alpha, "a");
    await world.run(calls(alpha).rename("a", "b"));
    await save(beta, "a", "same");
    await world.clock.advance(4_000);
    expect(await drain(beta)).toEqual(DRAINED);
    alpha.weather.isOffline = false;
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(Object.keys(await there())).toEqual(["b"]);
    // Nothing was put in its place: what is written from here on arrives too.
    await write(alpha, handle, "more");
    await world.clock.advance(1_000);
    expect(await drain(alpha)).toEqual(DRAINED);
    expect([await shown(alpha, "b"), await there()]).toMatchObject([textOf("more"), { b: expect.anything() }]);
  });

  test.each(TIERS)(
    "%s: a file that was sent, is still open and is renamed over another arrives under that name",
    async (_, features) => {
      const { world, mounts, calls, save, open, write, drain, there } = await begin(["alpha"], features);
      const [alpha] = mounts as [Mount];
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      const handle = await open(alpha, "a.tmp");
      await write(alpha, handle, "new");
      await world.run(calls(alpha).fsync(handle));
      await world.clock.advance(20_000);
      const sent = (await there())["a.tmp"];
      await world.run(calls(alpha).rename("a.tmp", "a"));
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await there()).toEqual({ a: sent });
    },
  );

  test.each(UNHASHED)(
    "%s: replaced elsewhere while it is open and unwritten: a copy of the old content arrives",
    async (_, features) => {
      const { world, mounts, calls, save, open, drain, there } = await begin(["alpha", "beta"], features);
      const [alpha, beta] = mounts as [Mount, Mount];
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(4_000);
      await world.run(calls(beta).list(""));
      const { a: old } = await there();
      await open(beta, "a");
      await world.run(calls(beta).rename("a", "a~"));
      await save(beta, "a", "new");
      await save(alpha, "a", "other");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(20_000);
      expect(await drain(beta)).toEqual(DRAINED);
      expect(Object.values(await there())).toContain(old);
    },
  );

  test.each(TIERS)(
    "%s: the earlier bytes are written again while others are being sent: the gateway has them",
    async (_, features) => {
      const { world, mounts, save, open, write, drain, there } = await begin(["alpha"], features);
      const [alpha] = mounts as [Mount];
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      const handle = await open(alpha, "a");
      await write(alpha, handle, "new");
      await world.clock.advance(40_000);
      const before = await there();
      alpha.weather.latencyMs = 90_000;
      await write(alpha, handle, "mid");
      await world.clock.advance(40_000);
      await write(alpha, handle, "new");
      await world.clock.advance(1_000);
      alpha.weather.latencyMs = 0;
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await there()).toEqual(before);
    },
  );

  test("offline, the same bytes are written again, and the mode is new: the mode is still to be sent", async () => {
    const { world, mounts, calls, save, open, write, drain } = await begin(["alpha"]);
    const [alpha] = mounts as [Mount];
    await save(alpha, "a", "x");
    expect(await drain(alpha)).toEqual(DRAINED);
    alpha.weather.isOffline = true;
    await world.clock.advance(60_000);
    const handle = await open(alpha, "a");
    await world.run(calls(alpha).chmod("a", 0o600));
    await write(alpha, handle, "x");
    await world.clock.advance(2_000);
    expect(await drain(alpha)).toMatchObject({ drained: false });
    alpha.weather.isOffline = false;
    expect(await drain(alpha)).toEqual(DRAINED);
  });

  test.each(TIERS)(
    "%s: new content from elsewhere is shown although a program has the file open, and changes of the name here are sent",
    async (_, features) => {
      const { world, mounts, calls, save, open, drain, shown } = await begin(["alpha", "beta"], features);
      const [alpha, beta] = mounts as [Mount, Mount];
      const there = async () => {
        const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
        return [...tree].map(([path, { content, mode }]) => ({ path, content, mode }));
      };
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(4_000);
      await world.run(calls(beta).list(""));
      const handle = await open(alpha, "a");
      await save(beta, "a", "new");
      expect(await drain(beta)).toEqual(DRAINED);
      await world.clock.advance(400_000);
      expect(await shown(alpha, "a")).toBe(textOf("new"));
      const [{ content } = expect.unreachable("it is not there")] = await there();
      for (const mode of [0o600, 0o640, 0o604]) {
        await world.run(calls(alpha).chmod("a", mode));
        expect(await drain(alpha)).toEqual(DRAINED);
        expect(await there()).toEqual([{ path: "a", content, mode }]);
      }
      await world.run(calls(alpha).rename("a", "b"));
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.run(calls(alpha).close(handle));
      await world.clock.advance(4_000);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await shown(alpha, "b")).toBe(textOf("new"));
      expect(await there()).toEqual([{ path: "b", content, mode: 0o604 }]);
    },
  );

  /** Written again all the time, and each time more: no snapshot of it stays the newest. */
  async function writeOn(it: Awaited<ReturnType<typeof begin>>, mount: Mount, path: string) {
    const handle = await it.open(mount, path);
    let isOver = false;
    const writing = (async () => {
      for (let size = 1; !isOver; size += 1) {
        await it.calls(mount).write(handle, size, Buffer.from("x"));
        await sleep(it.world.clock, 30);
      }
      await it.calls(mount).close(handle);
    })();
    return async () => {
      isOver = true;
      await it.world.run(writing);
    };
  }

  test.each([
    { what: "a new one", isKnown: false, latencyMs: 0 },
    { what: "one the gateway has", isKnown: true, latencyMs: 0 },
    { what: "a new one, far away", isKnown: false, latencyMs: 400 },
  ])("a file is written again and again ($what): its content when the drain began arrives", async (given) => {
    const it = await begin(["alpha"]);
    const { world, mounts, save, drain, there } = it;
    const [alpha] = mounts as [Mount];
    // What goes before it, and something else to do first.
    if (given.isKnown) await save(alpha, "log", "old");
    if (given.isKnown) expect(await drain(alpha)).toEqual(DRAINED);
    const before = (await there()).log;
    alpha.weather.latencyMs = given.latencyMs;
    for (let other = 0; other < 20; other += 1) await save(alpha, `other${other}`, `other${other}`);
    const end = await writeOn(it, alpha, "log");
    await world.clock.advance(200);
    const begun = world.clock.elapsed();
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(minus(world.clock.elapsed(), begun)).toBeLessThan(20_000);
    const after = (await there()).log;
    expect(after).toBeDefined();
    expect(after).not.toBe(before);
    await end();
  });

  test("a file is written again and again: it is sent at its maximum age, and after an fsync", async () => {
    const it = await begin(["alpha"]);
    const { world, mounts, calls, there } = it;
    const [alpha] = mounts as [Mount];
    const end = await writeOn(it, alpha, "log");
    await world.clock.advance(310_000);
    const first = (await there()).log;
    expect(first).toBeDefined();
    const handle = await it.open(alpha, "log");
    await world.run(calls(alpha).fsync(handle));
    await world.clock.advance(20_000);
    expect((await there()).log).not.toBe(first);
    await world.run(calls(alpha).close(handle));
    await end();
  });

  test("removed elsewhere, and being written here: a new mode or name of it is not waited for", async () => {
    const { world, mounts, calls, save, open, write, drain, there } = await begin(["alpha", "beta"]);
    const [alpha, beta] = mounts as [Mount, Mount];
    await save(alpha, "a", "old");
    expect(await drain(alpha)).toEqual(DRAINED);
    await world.clock.advance(4_000);
    await world.run(calls(beta).list(""));
    const busy = await open(alpha, "a");
    await write(alpha, busy, "new");
    await world.run(calls(beta).unlink("a"));
    expect(await drain(beta)).toEqual(DRAINED);
    await world.clock.advance(2_000);
    await world.run(calls(alpha).chmod("a", 0o600));
    await world.run(calls(alpha).rename("a", "b"));
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(Object.keys(await there())).toEqual(["b"]);
    await world.run(calls(alpha).close(busy));
    await world.clock.advance(4_000);
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(await world.run(calls(alpha).list(""))).toEqual(["b"]);
  });

  test.each([
    ["renamed over another", false],
    ["renamed to where another was moved away from", true],
  ] as const)("a drain waits for a file that is %s meanwhile", async (_, isMovedAway) => {
    const { world, mount, calls, rules, save } = await beginOne();
    await save("a", "old");
    await world.clock.advance(20_000);
    mount.weather.isOffline = true;
    await save("a.tmp", "new");
    await world.clock.advance(5_000);
    const engine = mount.process?.engine ?? expect.unreachable("the mount is down");
    const limit = new AbortController();
    let result: unknown;
    void engine.drain({ settle: false, signal: limit.signal }).then((value) => {
      result = value;
    });
    await world.clock.advance(1_000);
    if (isMovedAway) await world.run(calls().rename("a", "b"));
    await world.run(calls().rename("a.tmp", "a"));
    // All but its content goes.
    rules.choose = ({ body }) => (body?.kind === "upload" ? "failed" : "none");
    mount.weather.isOffline = false;
    await world.clock.advance(60_000);
    expect(result).toBeUndefined();
    rules.choose = () => "none";
    await world.clock.advance(60_000);
    expect(result).toEqual(DRAINED);
    const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
    expect(tree.get("a")?.content).toBe(hashOf(bytesOf("new", SIZE)));
    limit.abort();
  });
});

describe("durability remote", () => {
  const LIMIT_MS = 10_000;

  const STANDSTILL_MS = 60_000;

  const OURS = bytesOf("ours", SIZE);

  const THEIRS = bytesOf("theirs", SIZE);

  const HOW: readonly {
    readonly how: string;
    /** What it has written before, and nobody has sent. */
    readonly before?: Buffer;
    run(calls: Calls, fd: number): Promise<void>;
  }[] = [
    {
      how: "closes it",
      async run(calls, fd) {
        await calls.write(fd, 0, OURS);
        await calls.close(fd);
      },
    },
    {
      how: "syncs it",
      async run(calls, fd) {
        await calls.write(fd, 0, OURS);
        await calls.fsync(fd);
      },
    },
    {
      how: "has written to it, and closes another opening of it",
      before: bytesOf("before", SIZE),
      async run(calls) {
        const other = await calls.open("a", { write: true });
        await calls.write(other, 0, OURS);
        await calls.close(other);
      },
    },
  ];

  const DONE = ["writes it", "removes it"] as const;

  /** How it has ended by now. */
  function endOf(work: Promise<void>): () => string {
    let end = "not yet";
    work.then(
      () => {
        end = "well";
      },
      (error: unknown) => {
        end = String(error);
      },
    );
    return () => end;
  }

  test.each(HOW.flatMap((one) => DONE.map((theirs) => ({ ...one, theirs }))))(
    "another client $theirs; the program $how",
    async ({ run, theirs, before }) => {
      const it = await beginOne({}, { settings: { durability: "remote" } });
      const { world, calls } = it;
      const { outside, workspace, clock } = world;
      await it.save("a");
      const [node] = (await world.run(outside.listFolder(workspace.root))).items;
      if (node === undefined) throw new Error("a");
      const fd = await world.run(calls().open("a", { write: true }));
      if (before !== undefined) await world.run(calls().write(fd, 0, before));
      await (theirs === "writes it"
        ? world.run(outside.writeContent(node.id, sourceOf(THEIRS)))
        : world.run(outside.deleteNode(node.id)));
      // It was heard of, and waits for what was written.
      await clock.advance(3_000);
      const ended = endOf(run(calls(), fd));
      await clock.advance(LIMIT_MS);
      expect(ended()).toBe("well");
      const contents = [...(await there(world)).values()].map(({ content }) => content).sort();
      expect(contents).toEqual([hashOf(OURS), ...(theirs === "writes it" ? [hashOf(THEIRS)] : [])].sort());
    },
  );

  test("a close that waits for a folder which does not get to the gateway ends in EIO; the file is sent once that does", async () => {
    const it = await beginOne({}, { settings: { durability: "remote" } });
    const { world, calls } = it;
    await it.names();
    it.rules.choose = (request) => (isFolderCreation(request) ? "failed" : undefined);
    await world.run(calls().mkdir("d"));
    const fd = await world.run(calls().open("d/f", { write: true, create: true }));
    await world.run(calls().write(fd, 0, OURS));
    const ended = endOf(calls().close(fd));
    await world.clock.advance(STANDSTILL_MS - 1_000);
    expect(ended()).toBe("not yet");
    await world.clock.advance(2_000);
    expect(ended()).toMatch(/^CallError: EIO: .*the gateway does not get it: its folder has to be sent first$/);
    it.rules.choose = () => undefined;
    await it.ends(["d", "d/f"]);
  });
});

/** Longer than it takes to hear of a change; shorter than any snapshot of an open file. */
const HEARD_MS = 2_500;

/** Longer than until a snapshot of a file that stays open is taken and sent. */
const SNAPSHOT_MS = 70_000;

/** Of an even seed the kernel writes alpha's files by itself; see support/mount.ts. */
describe.each([
  ["served by the daemon", 1],
  ["written by the kernel", 2],
])("a detached file, %s", (_, seed) => {
  async function begin(settings = {}) {
    const options = { seed, mounts: ["alpha", "beta"], settings, sabotage: {}, tokenSeconds: 36_000 };
    const { mounts, ...common } = await beginMounts(options);
    const { world, calls, save, drain } = common;
    const [alpha, beta] = mounts as [Mount, Mount];
    const check = () => {
      world.check();
      for (const { process } of world.mounts) if (process !== undefined) expect(violations(process)).toEqual([]);
    };
    const pass = async (milliseconds: number) => {
      await world.clock.advance(milliseconds);
      check();
    };
    const it = {
      ...common,
      alpha,
      beta,
      pass,
      check,
      write: (fd: number, label: string) => world.run(calls(alpha).write(fd, 0, bytesOf(label, SIZE))),
      close: (fd: number) => world.run(calls(alpha).close(fd)),
      /** Both know the file, and alpha has it open for writing. */
      async opened(path: string): Promise<number> {
        await save(alpha, path, "old");
        expect(await drain(alpha)).toEqual(DRAINED);
        await pass(4_000);
        await shown(beta);
        return world.run(calls(alpha).open(path, { write: true }));
      },
      /** What a mount shows: names without their times, and contents. */
      shown,
      /** What the gateway has now: names without their times, and hashes. */
      async there() {
        const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
        const files = [...tree].filter(([, { kind }]) => kind === "file");
        return Object.fromEntries(files.map(([path, { content }]) => [withoutTime(path), content]));
      },
      /** Versions at the gateway, by the shown name. */
      async versions() {
        const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
        const found: Record<string, number> = {};
        for (const path of tree.keys()) {
          const node = await world.run(world.outside.getNodeByPath(`/${path}`));
          if (node.kind === "folder") continue;
          const { items } = await world.run(world.outside.listVersions(node.id));
          found[withoutTime(path)] = items.length;
        }
        return found;
      },
      async again(how: "crash" | "remount") {
        if (how === "crash") alpha.crash();
        else await world.run(alpha.stop());
        await world.run(alpha.start());
        check();
      },
    };
    async function shown(mount: Mount, folder = ""): Promise<Record<string, string>> {
      const found: Record<string, string> = {};
      for (const name of await world.run(calls(mount).list(folder))) {
        const path = folder === "" ? name : `${folder}/${name}`;
        const { kind } = await world.run(calls(mount).stat(path));
        if (kind === "folder") Object.assign(found, await shown(mount, path));
        else found[withoutTime(path)] = (await world.run(readFile(calls(mount), path))).toString();
      }
      return found;
    }
    return it;
  }

  const withoutTime = (path: string) => path.replace(/ \(conflict, alpha, [-0-9. ]+\)/, " (conflict)");
  /** What beta does to it, and what alpha shows then. */
  const ELSEWHERE = [
    {
      what: "saved",
      run: { do: "save", path: "d/a", size: SIZE },
      after: { "d/a": textOf("new") },
      kept: "d/a (conflict)",
    },
    {
      what: "replaced",
      run: { do: "replace", path: "d/a", size: SIZE },
      after: { "d/a": textOf("new") },
      kept: "d/a (conflict)",
    },
    { what: "removed", run: { do: "unlink", path: "d/a" }, after: {}, kept: "d/a" },
  ] as const;

  describe.each(ELSEWHERE)("$what elsewhere", ({ run, after, kept }) => {
    async function overtaken(settings = {}) {
      const it = await begin(settings);
      await it.world.run(it.calls(it.alpha).mkdir("d"));
      const fd = await it.opened("d/a");
      await it.world.run(runProgram(it.calls(it.beta), run, "new"));
      expect(await it.drain(it.beta)).toEqual(DRAINED);
      await it.pass(HEARD_MS);
      expect(await it.shown(it.alpha)).toEqual(after);
      return { ...it, fd };
    }

    test("the program reads on what it had, and closes it: no copy is left", async () => {
      const { fd, world, calls, alpha, beta, shown, drain, close, pass } = await overtaken();
      expect((await world.run(calls(alpha).read(fd, 0, SIZE))).toString()).toBe(textOf("old"));
      expect((await world.run(calls(alpha).fstat(fd))).size).toBe(SIZE);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
      expect(alpha.process?.engine.status().overtaken).toBeUndefined();
    });

    test("the first bytes it writes become one file, and later ones versions of that", async () => {
      const { fd, alpha, beta, shown, write, close, drain, pass, versions } = await overtaken();
      await write(fd, "first");
      await pass(SNAPSHOT_MS);
      expect(await shown(beta)).toEqual({ ...after, [kept]: textOf("first") });
      const before = (await versions())[kept] ?? expect.unreachable("it is not there");
      await write(fd, "second");
      await pass(SNAPSHOT_MS);
      await pass(SNAPSHOT_MS);
      expect(await shown(beta)).toEqual({ ...after, [kept]: textOf("second") });
      expect((await versions())[kept]).toBe(before + 1);
      await write(fd, "third");
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect((await versions())[kept]).toBe(before + 2);
      const all = { ...after, [kept]: textOf("third") };
      expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
    });

    test("written and closed before a snapshot is taken: the copy is there at once", async () => {
      const { fd, alpha, beta, shown, write, close, drain, pass } = await overtaken();
      await write(fd, "last");
      await close(fd);
      await pass(1);
      const all = { ...after, [kept]: textOf("last") };
      expect(await shown(alpha)).toEqual(all);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect(await shown(beta)).toEqual(all);
    });

    test("a drain sends what was written though it is still open", async () => {
      const { fd, world, alpha, beta, shown, there, write, drain, pass, close } = await overtaken();
      await write(fd, "drained");
      await pass(1_000);
      const begun = world.clock.elapsed();
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await there()).toMatchObject({ [kept]: hashOf(bytesOf("drained", SIZE)) });
      expect(minus(world.clock.elapsed(), begun)).toBeLessThan(2_000);
      await pass(4_000);
      const all = { ...after, [kept]: textOf("drained") };
      expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await shown(alpha)).toEqual(all);
    });

    test("written all the time: a drain does not end before it has sent some of it", async () => {
      const { fd, world, calls, alpha, there, drain, close } = await overtaken();
      let isOver = false;
      const writing = (async () => {
        for (let count = 0; !isOver; count += 1) {
          await calls(alpha).write(fd, 0, bytesOf(`count ${count}`, SIZE));
          await sleep(world.clock, 30);
        }
      })();
      await world.clock.advance(300);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(Object.keys(await there())).toContain(kept);
      isOver = true;
      await world.run(writing);
      await close(fd);
    });

    test("the bytes it had, written once more, become no file", async () => {
      const { fd, alpha, beta, shown, write, drain, pass, close } = await overtaken();
      await write(fd, "old");
      await pass(SNAPSHOT_MS);
      expect(await drain(alpha)).toEqual(DRAINED);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
    });

    test.each(["crash", "remount"] as const)("%s: what was written is there when the mount is back", async (how) => {
      const { fd, alpha, beta, shown, write, drain, pass, again } = await overtaken();
      await write(fd, "unsent");
      await again(how);
      const all = { ...after, [kept]: textOf("unsent") };
      expect(await shown(alpha)).toEqual(all);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect(await shown(beta)).toEqual(all);
    });

    test("a mount that ends in order leaves a name for it in the state dir", async () => {
      const { fd, world, alpha, write } = await overtaken();
      await write(fd, "unsent");
      const { database } = alpha.process ?? expect.unreachable("the mount is down");
      const close = database.close.bind(database);
      let waiting: unknown[] = [];
      database.close = () => {
        const named = "SELECT entry.name FROM node JOIN entry ON entry.id = node.entry WHERE dirty_since IS NOT NULL";
        waiting = database.prepare(named).pluck().all();
        return close();
      };
      await world.run(alpha.stop());
      expect(waiting.map((name) => withoutTime(`d/${name}`))).toEqual([kept]);
    });

    test.each(["crash", "remount"] as const)("%s: no copy is left where nothing was written", async (how) => {
      const { alpha, beta, shown, drain, pass, again } = await overtaken();
      await again(how);
      await pass(4_000);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
      expect(alpha.process?.engine.status().overtaken).toBeUndefined();
    });

    test("its folder goes too: the folder comes back with what is written", async () => {
      const { fd, world, calls, alpha, beta, shown, write, drain, pass, close } = await overtaken();
      if (run.do !== "unlink") await world.run(calls(beta).unlink("d/a"));
      await world.run(calls(beta).rmdir("d"));
      expect(await drain(beta)).toEqual(DRAINED);
      await pass(HEARD_MS);
      expect(await world.run(calls(alpha).list(""))).toEqual([]);
      await write(fd, "late");
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect([await shown(alpha), await shown(beta)]).toEqual([{ [kept]: textOf("late") }, { [kept]: textOf("late") }]);
    });

    test("with durability remote close waits until the gateway has it", async () => {
      const { fd, there, write, close } = await overtaken({ durability: "remote" });
      await write(fd, "waited for");
      await close(fd);
      expect(await there()).toMatchObject({ [kept]: hashOf(bytesOf("waited for", SIZE)) });
    });
  });

  test("removed elsewhere, and the name is taken here meanwhile: what is written then is a conflict copy", async () => {
    const { beta, alpha, world, calls, opened, save, shown, write, close, drain, pass } = await begin();
    const fd = await opened("a");
    await world.run(calls(beta).unlink("a"));
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    await save(alpha, "a", "another");
    await write(fd, "late");
    await close(fd);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    const all = { a: textOf("another"), "a (conflict)": textOf("late") };
    expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
  });

  test("a program here saves what the name shows, as editors do: no conflict", async () => {
    const { beta, alpha, world, calls, opened, save, shown, close, drain, pass } = await begin();
    const fd = await opened("a");
    await save(beta, "a", "theirs");
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    await world.run(runProgram(calls(alpha), { do: "replace", path: "a", size: SIZE }, "ours"));
    expect(await drain(alpha)).toEqual(DRAINED);
    await close(fd);
    await pass(4_000);
    expect([await shown(alpha), await shown(beta)]).toEqual([{ a: textOf("ours") }, { a: textOf("ours") }]);
  });

  test("a document that was saved, sent and stays open delays no remote change; one with unsent bytes does", async () => {
    const { beta, alpha, opened, save, shown, write, close, drain, pass } = await begin();
    const fd = await opened("a");
    await write(fd, "saved");
    await pass(SNAPSHOT_MS);
    expect(await shown(beta)).toEqual({ a: textOf("saved") });
    await save(beta, "a", "theirs");
    await pass(HEARD_MS);
    expect(await shown(alpha)).toEqual({ a: textOf("theirs") });
    await close(fd);
    const other = await opened("b");
    await write(other, "unsent");
    await save(beta, "b", "theirs");
    await pass(HEARD_MS);
    expect(await shown(alpha)).toMatchObject({ b: textOf("unsent") });
    await close(other);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    expect(await shown(alpha)).toEqual({ a: textOf("theirs"), b: textOf("theirs"), "b (conflict)": textOf("unsent") });
  });

  test("its time of modification stays, also where only the gateway has set it", async () => {
    const { world, alpha, calls, shown, pass, close } = await begin();
    const { outside, workspace } = world;
    const source = sourceOf(bytesOf("old", SIZE));
    const { id } = await world.run(outside.upload(workspace.root, "a", source));
    await pass(4_000);
    await shown(alpha);
    // So that it was changed after it was modified.
    await world.run(calls(alpha).chmod("a", 0o600));
    await pass(4_000);
    const fd = await world.run(calls(alpha).open("a", { write: true }));
    const { mtime } = await world.run(calls(alpha).fstat(fd));
    await world.run(outside.writeContent(id, sourceOf(bytesOf("new", SIZE))));
    await pass(HEARD_MS);
    expect(await shown(alpha)).toMatchObject({ a: textOf("new") });
    expect((await world.run(calls(alpha).fstat(fd))).mtime).toBe(mtime);
    expect((await world.run(calls(alpha).stat("a"))).mtime).not.toBe(mtime);
    await close(fd);
  });

  test("a time that is set elsewhere is shown, though the file is open for writing", async () => {
    const { world, alpha, beta, calls, opened, pass, close } = await begin();
    const fd = await opened("a");
    await world.run(calls(beta).utimens("a", 1_000));
    await pass(HEARD_MS);
    expect((await world.run(calls(alpha).stat("a"))).mtime).toBe("1000.123456789");
    await close(fd);
  });

  test("another name of the file is saved elsewhere: all its names show that", async () => {
    const { beta, alpha, world, calls, opened, save, shown, write, close, drain, pass } = await begin();
    const fd = await opened("a");
    await world.run(calls(alpha).link("a", "b"));
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    await shown(beta);
    await save(beta, "b", "theirs");
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    expect(await shown(alpha)).toEqual({ a: textOf("theirs"), b: textOf("theirs") });
    expect((await world.run(calls(alpha).stat("a"))).inode).toBe((await world.run(calls(alpha).stat("b"))).inode);
    await write(fd, "late");
    await close(fd);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    const shownNow = await shown(beta);
    expect(Object.values(shownNow).sort()).toEqual([textOf("late"), textOf("theirs"), textOf("theirs")]);
  });
});

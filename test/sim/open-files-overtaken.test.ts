/**
 * A program has a file open for writing that somebody elsewhere saves, replaces or removes. Nothing unsent is in it: the
 * name shows that at once, and the program goes on with its bytes. What it writes from then on is kept, once, whatever
 * ends when: the program, the mount, or the process behind it.
 */

import { describe, expect, test } from "vitest";
import { minus } from "../../src/lib/clocks.ts";
import { sleep } from "../../src/lib/runtime.ts";
import { violations } from "./support/invariants.ts";
import type { Mount } from "./support/mount.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { gatewayTree, hashOf, readFile } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const SIZE = 40;

/** Longer than it takes to hear of a change; shorter than any snapshot of an open file. */
const HEARD_MS = 2_500;

/** Longer than until a snapshot of a file that stays open is taken and sent. */
const CUT_MS = 70_000;

const DRAINED = { drained: true, left: [] };

const text = (label: string) => bytesOf(label, SIZE).toString();

/** Of an even seed the kernel writes alpha's files by itself; see support/mount.ts. */
describe.each([
  ["served by us", 1],
  ["written by the kernel", 2],
])("%s", (_, seed) => {
  async function begin(settings = {}) {
    const world = await createWorld({ seed, mounts: ["alpha", "beta"], settings, sabotage: {}, tokenSeconds: 36_000 });
    const [alpha, beta] = world.mounts as [Mount, Mount];
    const calls = ({ process }: Mount) => process?.kernel ?? expect.unreachable("the mount is down");
    const check = () => {
      world.check();
      for (const { process } of world.mounts) if (process !== undefined) expect(violations(process)).toEqual([]);
    };
    const save = (mount: Mount, path: string, label: string) =>
      world.run(runProgram(calls(mount), { do: "save", path, size: SIZE }, label));
    const drain = async (mount: Mount) => {
      const { engine } = mount.process ?? expect.unreachable("the mount is down");
      return world.run(engine.drain({ settle: true, signal: new AbortController().signal }));
    };
    const pass = async (milliseconds: number) => {
      await world.clock.advance(milliseconds);
      check();
    };
    const it = {
      world,
      alpha,
      beta,
      calls,
      save,
      drain,
      pass,
      check,
      write: (fd: number, label: string) => world.run(calls(alpha).write(fd, 0, bytesOf(label, SIZE))),
      close: (fd: number) => world.run(calls(alpha).close(fd)),
      /** Both know the file, and alpha has it open for writing. */
      async held(path: string): Promise<number> {
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
      after: { "d/a": text("new") },
      kept: "d/a (conflict)",
    },
    {
      what: "replaced",
      run: { do: "replace", path: "d/a", size: SIZE },
      after: { "d/a": text("new") },
      kept: "d/a (conflict)",
    },
    { what: "removed", run: { do: "unlink", path: "d/a" }, after: {}, kept: "d/a" },
  ] as const;

  describe.each(ELSEWHERE)("$what elsewhere", ({ run, after, kept }) => {
    async function overtaken(settings = {}) {
      const it = await begin(settings);
      await it.world.run(it.calls(it.alpha).mkdir("d"));
      const fd = await it.held("d/a");
      await it.world.run(runProgram(it.calls(it.beta), run, "new"));
      expect(await it.drain(it.beta)).toEqual(DRAINED);
      await it.pass(HEARD_MS);
      expect(await it.shown(it.alpha)).toEqual(after);
      return { ...it, fd };
    }

    test("the program reads on what it had, and closes it: nothing is left of that", async () => {
      const { fd, world, calls, alpha, beta, shown, drain, close, pass } = await overtaken();
      expect((await world.run(calls(alpha).read(fd, 0, SIZE))).toString()).toBe(text("old"));
      expect((await world.run(calls(alpha).fstat(fd))).size).toBe(SIZE);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
      expect(alpha.process?.engine.status().overtaken).toBeUndefined();
    });

    test("what it writes then is one file, and what it writes later are versions of that", async () => {
      const { fd, alpha, beta, shown, write, close, drain, pass, versions } = await overtaken();
      await write(fd, "first");
      await pass(CUT_MS);
      expect(await shown(beta)).toEqual({ ...after, [kept]: text("first") });
      const before = (await versions())[kept] ?? expect.unreachable("it is not there");
      await write(fd, "second");
      await pass(CUT_MS);
      await pass(CUT_MS);
      expect(await shown(beta)).toEqual({ ...after, [kept]: text("second") });
      expect((await versions())[kept]).toBe(before + 1);
      await write(fd, "third");
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect((await versions())[kept]).toBe(before + 2);
      const all = { ...after, [kept]: text("third") };
      expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
    });

    test("written and closed before a snapshot was taken: it is there at once", async () => {
      const { fd, alpha, beta, shown, write, close, drain, pass } = await overtaken();
      await write(fd, "last");
      await close(fd);
      await pass(1);
      const all = { ...after, [kept]: text("last") };
      expect(await shown(alpha)).toEqual(all);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect(await shown(beta)).toEqual(all);
    });

    test("a drain sends what was written and is still open", async () => {
      const { fd, world, alpha, beta, shown, there, write, drain, pass, close } = await overtaken();
      await write(fd, "drained");
      await pass(1_000);
      const begun = world.clock.elapsed();
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await there()).toMatchObject({ [kept]: hashOf(bytesOf("drained", SIZE)) });
      expect(minus(world.clock.elapsed(), begun)).toBeLessThan(2_000);
      await pass(4_000);
      const all = { ...after, [kept]: text("drained") };
      expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await shown(alpha)).toEqual(all);
    });

    test("a drain does not end before it has sent some of what is written all the time", async () => {
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

    test("the bytes it had, written once more, are no file", async () => {
      const { fd, alpha, beta, shown, write, drain, pass, close } = await overtaken();
      await write(fd, "old");
      await pass(CUT_MS);
      expect(await drain(alpha)).toEqual(DRAINED);
      await close(fd);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
    });

    test.each(["crash", "remount"] as const)("%s: what was written is there when the mount is again", async (how) => {
      const { fd, alpha, beta, shown, write, drain, pass, again } = await overtaken();
      await write(fd, "unsent");
      await again(how);
      const all = { ...after, [kept]: text("unsent") };
      expect(await shown(alpha)).toEqual(all);
      expect(await drain(alpha)).toEqual(DRAINED);
      await pass(4_000);
      expect(await shown(beta)).toEqual(all);
    });

    test("a mount that ends in order leaves it under its name, for whoever looks into the state dir", async () => {
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

    test.each(["crash", "remount"] as const)("%s: where nothing was written nothing is left", async (how) => {
      const { alpha, beta, shown, drain, pass, again } = await overtaken();
      await again(how);
      await pass(4_000);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect([await shown(alpha), await shown(beta)]).toEqual([after, after]);
      expect(alpha.process?.engine.status().overtaken).toBeUndefined();
    });

    test("its folder goes too: it comes back with what is written", async () => {
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
      expect([await shown(alpha), await shown(beta)]).toEqual([{ [kept]: text("late") }, { [kept]: text("late") }]);
    });

    test("close waits until the gateway has it, where it is to (durability remote)", async () => {
      const { fd, there, write, close } = await overtaken({ durability: "remote" });
      await write(fd, "waited for");
      await close(fd);
      expect(await there()).toMatchObject({ [kept]: hashOf(bytesOf("waited for", SIZE)) });
    });
  });

  test("removed elsewhere, and the name is taken here meanwhile: what is written then is a copy beside", async () => {
    const { beta, alpha, world, calls, held, save, shown, write, close, drain, pass } = await begin();
    const fd = await held("a");
    await world.run(calls(beta).unlink("a"));
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    await save(alpha, "a", "another");
    await write(fd, "late");
    await close(fd);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    const all = { a: text("another"), "a (conflict)": text("late") };
    expect([await shown(alpha), await shown(beta)]).toEqual([all, all]);
  });

  test("a program here saves what the name shows, as editors do: no conflict", async () => {
    const { beta, alpha, world, calls, held, save, shown, close, drain, pass } = await begin();
    const fd = await held("a");
    await save(beta, "a", "theirs");
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    await world.run(runProgram(calls(alpha), { do: "replace", path: "a", size: SIZE }, "ours"));
    expect(await drain(alpha)).toEqual(DRAINED);
    await close(fd);
    await pass(4_000);
    expect([await shown(alpha), await shown(beta)]).toEqual([{ a: text("ours") }, { a: text("ours") }]);
  });

  test("a document that was saved, uploaded and stays open is in nobody's way; one with unsent bytes is", async () => {
    const { beta, alpha, held, save, shown, write, close, drain, pass } = await begin();
    const fd = await held("a");
    await write(fd, "saved");
    await pass(CUT_MS);
    expect(await shown(beta)).toEqual({ a: text("saved") });
    await save(beta, "a", "theirs");
    await pass(HEARD_MS);
    expect(await shown(alpha)).toEqual({ a: text("theirs") });
    await close(fd);
    const other = await held("b");
    await write(other, "unsent");
    await save(beta, "b", "theirs");
    await pass(HEARD_MS);
    expect(await shown(alpha)).toMatchObject({ b: text("unsent") });
    await close(other);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    expect(await shown(alpha)).toEqual({ a: text("theirs"), b: text("theirs"), "b (conflict)": text("unsent") });
  });

  test("its time of modification stays, where nobody but the gateway has set that", async () => {
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
    expect(await shown(alpha)).toMatchObject({ a: text("new") });
    expect((await world.run(calls(alpha).fstat(fd))).mtime).toBe(mtime);
    expect((await world.run(calls(alpha).stat("a"))).mtime).not.toBe(mtime);
    await close(fd);
  });

  test("a time that is set elsewhere is shown, whoever has the file open for writing", async () => {
    const { world, alpha, beta, calls, held, pass, close } = await begin();
    const fd = await held("a");
    await world.run(calls(beta).utimens("a", 1_000));
    await pass(HEARD_MS);
    expect((await world.run(calls(alpha).stat("a"))).mtime).toBe("1000.123456789");
    await close(fd);
  });

  test("another name of the file was saved elsewhere: all its names show that", async () => {
    const { beta, alpha, world, calls, held, save, shown, write, close, drain, pass } = await begin();
    const fd = await held("a");
    await world.run(calls(alpha).link("a", "b"));
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    await shown(beta);
    await save(beta, "b", "theirs");
    expect(await drain(beta)).toEqual(DRAINED);
    await pass(HEARD_MS);
    expect(await shown(alpha)).toEqual({ a: text("theirs"), b: text("theirs") });
    expect((await world.run(calls(alpha).stat("a"))).inode).toBe((await world.run(calls(alpha).stat("b"))).inode);
    await write(fd, "late");
    await close(fd);
    expect(await drain(alpha)).toEqual(DRAINED);
    await pass(4_000);
    const shownNow = await shown(beta);
    expect(Object.values(shownNow).sort()).toEqual([text("late"), text("theirs"), text("theirs")]);
  });
});

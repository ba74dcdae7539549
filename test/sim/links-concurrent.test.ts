/**
 * Hard links changed on two mounts at once, neither having heard of the other: by different names, by names of which each
 * knows only its own, or by new names. Nothing that was saved is lost or taken for what replaced something else.
 */
import { describe, expect, test } from "vitest";
import { isContentWrite } from "./support/content-write.ts";
import type { Mount } from "./support/mount.ts";
import { createOracle } from "./support/oracle.ts";
import { bytesOf, type Program, runProgram } from "./support/programs.ts";
import { hashOf, readFile } from "./support/tree.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";
import { createWorld, type World } from "./support/world.ts";

describe("two mounts save it by different names", () => {
  const SIZE = 40;

  const hash = (label: string) => hashOf(bytesOf(label, SIZE));

  /** Alpha's save has arrived as `a`, beta's as `b`, `c` is as before; the networks of both are down. `hasSeen`: gamma knew the file. */
  async function begin(hasSeen: boolean) {
    const faults: string[] = [];
    const arrived = new Set<string>();
    let isSaving = false;
    let nodeOfA = "";
    let nodeOfB = "";
    const oracle = createOracle(
      () => world.store,
      (what) => faults.push(what),
    );
    const world: World = await createWorld({
      seed: 1,
      mounts: ["alpha", "beta", "gamma"],
      sabotage: {
        choose({ method, path, body }) {
          if (!isSaving || !isContentWrite({ method, path })) return undefined;
          const isAlphas = JSON.stringify(body).includes(hash("alpha's"));
          return path.includes(isAlphas ? nodeOfA : nodeOfB) ? "none" : "failed";
        },
      },
      onAnswer(mount, request, answer) {
        oracle.onAnswer(mount, request, answer);
        if (!isSaving || !isContentWrite(request) || answer.status >= 300) return;
        arrived.add(mount.name);
        if (arrived.size === 2) for (const one of [alpha, beta]) one.weather.isOffline = true;
      },
    });
    const [alpha, beta, gamma] = world.mounts as [Mount, Mount, Mount];
    const calls = (mount: Mount) => {
      if (mount.process === undefined) throw new Error("the mount is down");
      return oracle.watch(mount, mount.process.kernel);
    };
    const run = (mount: Mount, what: Program, label = "") => world.run(runProgram(calls(mount), what, label));
    const nodes = async () => {
      const { items } = await world.run(world.outside.listFolder(world.workspace.root));
      return new Map(items.map((node) => [node.name, node]));
    };
    /** By name, the beginning of what a mount shows. */
    const shown = async (mount: Mount) => {
      const names = await world.run(calls(mount).list(""));
      const texts = await Promise.all(names.map((name) => world.run(readFile(calls(mount), name))));
      return Object.fromEntries(
        names.map((name, at) => [name, `${texts[at]?.toString("latin1").replace(/;.*/s, "")}`] as const),
      );
    };

    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    for (const to of ["b", "c"]) await run(alpha, { do: "link", path: "a", to });
    await world.clock.advance(5_000);
    await shown(beta);
    if (hasSeen) await shown(gamma);
    await world.clock.advance(TURNS_MS);
    nodeOfA = (await nodes()).get("a")?.id ?? "";
    nodeOfB = (await nodes()).get("b")?.id ?? "";
    isSaving = true;
    await run(alpha, { do: "save", path: "a", size: SIZE }, "alpha's");
    await run(beta, { do: "save", path: "b", size: SIZE }, "beta's");
    await world.clock.advance(2_000);
    expect(arrived.size).toBe(2);
    isSaving = false;
    expect(await shown(gamma)).toMatchObject({ a: "alpha's", b: "beta's" });
    return {
      world,
      gamma,
      run: (what: Program) => run(gamma, what, "gamma's"),
      shown: () => shown(gamma),
      /** By name, the contents at the gateway, as far as they are among those saved here. */
      async contents() {
        const labels = new Map(["old", "alpha's", "beta's", "gamma's"].map((label) => [hash(label), label]));
        return new Map([...(await nodes())].map(([name, { contentHash }]) => [name, labels.get(contentHash ?? "")]));
      },
      /** What all show in the end. */
      async come() {
        for (const one of [alpha, beta]) one.weather.isOffline = false;
        await world.clock.advance(2 * TURNS_MS);
        world.check();
        expect(faults).toEqual([]);
        const all = await shown(gamma);
        for (const one of [alpha, beta]) expect(await shown(one)).toEqual(all);
        return Object.values(all);
      },
    };
  }

  const LOOKS: readonly (readonly [what: string, hasSeen: boolean])[] = [
    ["who knew the file", true],
    ["who sees it for the first time", false],
  ];

  const DONE = (path: string): readonly Program[][] => [
    [{ do: "unlink", path }],
    [{ do: "recreate", path, size: SIZE }],
    [{ do: "save", path, size: SIZE }],
    [{ do: "replace", path, size: SIZE }],
  ];

  for (const [who, hasSeen] of LOOKS) {
    for (const [name, other, theirs] of [
      ["a", "b", "beta's"],
      ["b", "a", "alpha's"],
    ] as const) {
      test.each(DONE(name).map((programs) => ({ what: programs[0]?.do, programs })))(
        `${who} does $what to ${name}: ${other} stays as it is, and in the end it is somewhere`,
        async ({ programs }) => {
          const it = await begin(hasSeen);
          for (const program of programs) await it.run(program);
          await it.world.clock.advance(30_000);
          expect((await it.contents()).get(other)).toBe(theirs);
          expect((await it.shown())[other]).toBe(theirs);
          expect(await it.come()).toContain(theirs);
        },
      );
    }

    test(`${who} does nothing: both are somewhere in the end`, async () => {
      const it = await begin(hasSeen);
      expect(await it.come()).toEqual(expect.arrayContaining(["alpha's", "beta's"]));
    });

    test(`${who} waits until their turns are over: both stay as they are, and the name of before is brought up`, async () => {
      const it = await begin(hasSeen);
      await it.world.clock.advance(2 * TURNS_MS);
      const contents = await it.contents();
      expect([contents.get("a"), contents.get("b")]).toEqual(["alpha's", "beta's"]);
      expect(["alpha's", "beta's"]).toContain(contents.get("c"));
      expect(await it.come()).toEqual(expect.arrayContaining(["alpha's", "beta's"]));
    });
  }
});

describe("each mount knows only one of the names", () => {
  const SIZE = 40;

  /**
   * `a` and `d/b` are one file, and beta has not looked into `d`. Alpha makes `a` something else and saves `d/b`, which
   * arrives first of the two; under `a` beta has saved meanwhile. What alpha shows in the root, and the node `a` has.
   */
  async function apart(program: Program) {
    let sent = 0;
    const { world, alpha, beta, rules, calls, labelOf, run, drain, nodes } = await beginTwo({
      onAnswer: (mount, request, { status }) => {
        if (mount.name === "alpha" && isContentWrite(request) && status < 300) sent += 1;
      },
    });
    const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

    await run(alpha, { do: "mkdir", path: "d" }, "");
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    await run(alpha, { do: "link", path: "a", to: "d/b" }, "");
    await drain(alpha);
    await world.clock.advance(TURNS_MS);
    await world.run(calls(beta).list(""));
    const before = await nodeOfA();

    alpha.weather.isOffline = true;
    await run(alpha, program, "another");
    await run(alpha, { do: "save", path: "d/b", size: SIZE }, "mine");
    await run(beta, { do: "save", path: "a", size: SIZE }, "theirs");
    await drain(beta);
    sent = 0;
    rules.choose = ({ method, path }) =>
      method !== "GET" && sent === 0 && path.includes(before?.id ?? "?") ? "failed" : undefined;
    alpha.weather.isOffline = false;
    for (let waited = 0; sent === 0; waited += 100) {
      if (waited > 60_000) throw new Error("d/b is never sent");
      await world.clock.advance(100);
    }
    await drain(alpha);
    await world.clock.advance(TURNS_MS);

    const shown: Record<string, string> = {};
    for (const path of ["a", "d/b"]) shown[path] = await labelOf(alpha, path);
    const names = await world.run(calls(alpha).list(""));
    world.check();
    const after = await nodeOfA();
    return { before, after, shown, names };
  }

  const THEIRS = hashOf(bytesOf("theirs", SIZE));

  test("a name that is another file here shows what somebody else saved under it, and keeps it", async () => {
    const { before, after, shown, names } = await apart({ do: "replace", path: "a", size: SIZE });
    expect(after).toMatchObject({ id: before?.id, contentHash: THEIRS });
    expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
    expect(names).toContainEqual(expect.stringMatching(/^a \(conflict/));
  });

  test("a name that was removed here comes back with what somebody else saved under it", async () => {
    const { before, after, shown } = await apart({ do: "unlink", path: "a" });
    expect(after).toMatchObject({ id: before?.id, contentHash: THEIRS });
    expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
  });
});

describe("a new name here, while its old name becomes another file elsewhere", () => {
  async function begin() {
    const it = await beginTwo();
    const { world, alpha, beta, calls, labelOf, drain } = it;
    const shown = async (mount: Mount) => {
      const all: Record<string, string> = {};
      for (const name of await world.run(calls(mount).list(""))) all[name] = await labelOf(mount, name);
      return all;
    };
    return {
      ...it,
      shown,
      async ends() {
        await world.clock.advance(20_000);
        for (const mount of world.mounts) await drain(mount);
        await world.clock.advance(TURNS_MS);
        world.check();
        return [await shown(alpha), await shown(beta)];
      },
    };
  }

  /** What both show in the end; `saved`: which of the two is written first. */
  async function renamedOver(saved: readonly string[]): Promise<Record<string, string>[]> {
    const { world, alpha, beta, run, drain, shown, ends } = await begin();
    for (const path of saved) {
      await run(alpha, { do: "save", path, size: 40 }, `of ${path}`);
      await world.clock.advance(5_000);
    }
    await drain(alpha);
    await world.clock.advance(TURNS_MS);
    await shown(beta);
    beta.weather.isOffline = true;
    await run(beta, { do: "rename", path: "f", to: "a" });
    await run(alpha, { do: "link", path: "a", to: "b" });
    await drain(alpha);
    beta.weather.isOffline = false;
    return ends();
  }

  test.each([
    { saved: ["f", "a"], which: "older" },
    { saved: ["a", "f"], which: "newer" },
  ])("a $which file that takes the name is kept, and the new name has what it was linked to", async ({ saved }) => {
    const both = { a: "of f", b: "of a" };
    expect(await renamedOver(saved)).toEqual([both, both]);
  });

  test("written by a new name that has no node yet, the others removed, and one of those saved elsewhere: two files", async () => {
    const { world, alpha, beta, run, drain, shown, ends } = await begin();
    await run(alpha, { do: "save", path: "a", size: 40 }, "old");
    await run(alpha, { do: "link", path: "a", to: "b" });
    await drain(alpha);
    await world.clock.advance(TURNS_MS);
    await shown(beta);
    alpha.weather.isOffline = true;
    await run(alpha, { do: "link", path: "a", to: "c" });
    await run(alpha, { do: "overwrite", path: "c", at: 0, size: 40 }, "alpha");
    for (const path of ["a", "b"]) await run(alpha, { do: "unlink", path });
    await world.clock.advance(5_000);
    await run(beta, { do: "overwrite", path: "a", at: 0, size: 40 }, "beta");
    await drain(beta);
    alpha.weather.isOffline = false;
    // What was saved by one of the names that are removed here lives on under it.
    const both = { a: "beta", c: "alpha" };
    expect(await ends()).toEqual([both, both]);
  });
});

describe("one name is removed elsewhere", () => {
  test("the others have all there is of it: nothing waits to be sent, not for a moment", async () => {
    const { world, alpha, beta, run, drain, calls } = await beginTwo();
    const dirty = () => beta.process?.engine.status().dirty;
    await run(alpha, { do: "save", path: "a", size: 40 }, "old");
    for (const to of ["b", "c"]) await run(alpha, { do: "link", path: "a", to });
    await drain(alpha);
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
    await world.clock.advance(TURNS_MS);
    await run(alpha, { do: "save", path: "a", size: 40 }, "new");
    await run(alpha, { do: "link", path: "b", to: "d" });
    await drain(alpha);
    await world.clock.advance(1_000);
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c", "d"]);
    await run(alpha, { do: "unlink", path: "d" });
    await drain(alpha);
    const seen: unknown[] = [];
    for (let time = 0; time < 40; time += 1) {
      await world.clock.advance(50);
      seen.push(dirty());
    }
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
    expect(seen).toEqual(seen.map(() => 0));
  });
});

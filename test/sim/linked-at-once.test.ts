/**
 * Two mounts have saved a linked file at the same moment, each by another of its names, and have not heard of each other
 * yet. Nobody else takes the one for what came in the place of the other: a third mount shows both, and what its programs
 * do to one name is done to that alone.
 */
import { expect, test } from "vitest";
import { isContentWrite } from "./support/content-write.ts";
import type { Mount } from "./support/mount.ts";
import { createOracle } from "./support/oracle.ts";
import { bytesOf, type Program, runProgram } from "./support/programs.ts";
import { hashOf, readFile } from "./support/tree.ts";
import { TURNS_MS } from "./support/two-world.ts";
import { createWorld, type World } from "./support/world.ts";

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

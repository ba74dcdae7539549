/**
 * Nobody says who has made a node, and the answer to its birth was lost; then that is refused, which says nothing of the
 * first sending. What that has made is known by what it is, under whatever name it is here by now; a stranger's is not.
 */
import { expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";

const NO_KEYS: readonly Feature[] = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"];
const WORLDS: readonly { what: string; lacks: readonly Feature[] }[] = [
  { what: "keys", lacks: NO_KEYS },
  { what: "keys and attributes", lacks: [...NO_KEYS, "attributes"] },
  { what: "keys and hashes", lacks: [...NO_KEYS, "hashes"] },
  { what: "keys of births", lacks: ["uploadKeys", "folderKeys"] },
  { what: "anything", lacks: FEATURE_NAMES },
];
const REFUSALS: readonly { refusal: string; weather: Partial<Weather> }[] = [
  { refusal: "a scope", weather: { withdrawn: "node.node.create" } },
  { refusal: "a scope of moves too", weather: { withdrawn: "node.node.update" } },
  { refusal: "403", weather: { refusal: 403 } },
  { refusal: "a name that is taken", weather: {} },
];
const KINDS = ["file", "folder"] as const;
const CASES = WORLDS.flatMap((world) =>
  REFUSALS.flatMap((refusal) => KINDS.map((kind) => ({ ...world, ...refusal, kind }))),
);

type Kind = (typeof KINDS)[number];

/** `b` is made, and nobody answers; lists show it later than the journal tells of it, or sooner. */
async function unanswered(lacks: readonly Feature[], kind: Kind, fault: "lost-before" | "lost-after", journal = 5_000) {
  const it = await begin(true, {}, { lacks });
  await it.drain();
  it.world.setLag({ path: 3_000, journal, id: 0 });
  const birth = it.once(fault, ({ method, path }) => method === "POST" && /files\/b|nodes/.test(path));
  if (kind === "file") await it.save("b");
  else await it.world.run(it.calls().mkdir("b"));
  await it.until(birth.isSent);
  const names = new Set<string>();
  return {
    ...it,
    /** All names that are shown meanwhile. */
    async shown(ms: number) {
      for (let passed = 0; passed < ms; passed += 100) {
        await it.world.clock.advance(100);
        for (const name of await it.names()) names.add(name);
      }
      return [...names].sort();
    },
    async clear() {
      Object.assign(it.mount.weather, { withdrawn: undefined, refusal: undefined });
      await it.world.run(it.mount.process?.engine.retry() ?? Promise.reject());
    },
    remove: () => (kind === "file" ? it.unlink("b") : it.world.run(it.calls().rmdir("b"))),
  };
}

test.each(CASES)("without $what, a $kind refused for $refusal: renamed, it is shown once", async (the) => {
  for (const journal of [0, 5_000]) {
    const it = await unanswered(the.lacks, the.kind, "lost-after", journal);
    Object.assign(it.mount.weather, the.weather);
    await it.rename("b", "d");
    expect(await it.shown(15_000)).toEqual(["d"]);
    await it.clear();
    expect(await it.shown(60_000)).toEqual(["d"]);
    expect([...(await there(it.world)).keys()]).toEqual(["d"]);
  }
});

test.each(CASES)("without $what, a $kind refused for $refusal: removed, it stays so", async (the) => {
  const it = await unanswered(the.lacks, the.kind, "lost-after");
  Object.assign(it.mount.weather, the.weather);
  await it.remove();
  expect(await it.shown(15_000)).toEqual([]);
  await it.clear();
  expect(await it.shown(60_000)).toEqual([]);
  await it.world.clock.advance(400_000);
  expect([...(await there(it.world)).keys()]).toEqual([]);
});

const TWICE = KINDS.flatMap((kind) => [false, true].map((isCrash) => ({ kind, isCrash })));

test.each(TWICE)(
  "a $kind made anew by its new name before it is heard of (a crash: $isCrash): one is left",
  async (the) => {
    const it = await unanswered(NO_KEYS, the.kind, "lost-after", 8_000);
    it.mount.weather.withdrawn = "node.node.create";
    await it.rename("b", "d");
    await it.until(() => it.world.lines.some((line) => /refused: .*(upload|createNode)/.test(line)));
    await it.clear();
    const made = () => it.asked.filter((line) => /^POST .* 201$/.test(line)).length;
    await it.until(() => made() === 2, 2_000);
    if (the.isCrash) await it.again("crash");
    expect(await it.shown(15_000)).toEqual(["d"]);
    await it.ends(["d"]);
  },
);

test("what was saved under the name since is not in conflict with what it was", async () => {
  const it = await unanswered(NO_KEYS, "file", "lost-after");
  it.mount.weather.withdrawn = "node.node.update";
  await it.rename("b", "d");
  await it.save("b", "another");
  await it.world.clock.advance(1_000);
  await it.clear();
  await it.ends(["b", "d"]);
  expect(await it.content("d")).toBe(bytesOf("b", 40).toString("latin1"));
  expect(await it.content("b")).toBe(bytesOf("another", 40).toString("latin1"));
});

/** Of the same size; at a gateway that keeps attributes even the same bytes are not the same file. */
const STRANGERS = [
  { what: "keys", lacks: NO_KEYS, label: "theirs" },
  { what: "keys", lacks: NO_KEYS, label: "b" },
  { what: "keys and hashes", lacks: [...NO_KEYS, "hashes"] as const, label: "theirs" },
  { what: "anything", lacks: FEATURE_NAMES, label: "theirs" },
];

test.each(STRANGERS)("without $what: what somebody has saved there ($label) stays his", async ({ lacks, label }) => {
  const it = await unanswered(lacks, "file", "lost-before");
  it.mount.weather.withdrawn = "node.node.update";
  await it.rename("b", "d");
  await it.world.clock.advance(1_500);
  const { outside, workspace } = it.world;
  const theirs = await it.world.run(outside.upload(workspace.root, "b", sourceOf(bytesOf(label, 40))));
  await it.shown(60_000);
  await it.clear();
  await it.shown(60_000);
  expect((await it.world.run(outside.getNode(theirs.id))).name).toBe("b");
  expect([await it.names(), [...(await there(it.world)).keys()]]).toEqual([
    ["b", "d"],
    ["b", "d"],
  ]);
  expect(await it.content("b")).toBe(bytesOf(label, 40).toString("latin1"));
});

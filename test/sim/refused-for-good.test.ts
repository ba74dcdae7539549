/**
 * A deletion is refused for good, and its name was made again while the deletion might have been carried out: the node
 * that cannot go is what the name has in the end.
 */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { begin } from "./support/one-world.ts";
import { edit } from "./support/outside.ts";
import { bytesOf, runProgram } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";

/** A request that was given up is remembered for so long; and until who waits looks again. */
const FORGOTTEN_MS = 15 * 60_000;

const WITHDRAWN: Partial<Weather> = { withdrawn: "node.file.delete" };

/** `e` is removed, which does not arrive, and is refused when it is sent again. */
async function refused(names: readonly string[], refusal: Partial<Weather>) {
  const it = await begin(true);
  for (const name of names) await it.save(name);
  await it.drain();
  const deletion = it.once("lost-before", ({ method }) => method === "DELETE");
  await it.unlink("e");
  await it.until(deletion.isSent);
  Object.assign(it.mount.weather, refusal);
  await it.until(() => it.world.lines.some((line) => line.includes("info: refused: ")));
  return it;
}

test.each([WITHDRAWN, { refusal: 403 } as const])(
  "%o: a name that is made again gets to the gateway",
  async (refusal) => {
    const it = await refused(["e"], refusal);
    await it.save("e", "after");
    // It was about the node: what is refused for that is not tried again by itself.
    it.mount.weather.refusal = undefined;
    await it.world.clock.advance(FORGOTTEN_MS);
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
    expect(it.asked.filter((line) => line.startsWith("DELETE") && !line.endsWith(" 403"))).toEqual([]);
  },
);

test("a name that waits for that gets to the gateway also after a crash", async () => {
  const it = await refused(["e"], WITHDRAWN);
  await it.save("e", "after");
  await it.again("crash");
  await it.world.clock.advance(FORGOTTEN_MS);
  await it.ends(["e"]);
  expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
});

test("a name that is made again before the refusal is here gets to the gateway", async () => {
  const it = await begin(true);
  await it.save("e");
  await it.drain();
  Object.assign(it.mount.weather, { ...WITHDRAWN, latencyMs: 5_000 });
  await it.unlink("e");
  await it.until(() => it.metadata().attempts.countOpen() > 0);
  await it.save("e", "after");
  it.mount.weather.latencyMs = 0;
  await it.world.clock.advance(60_000);
  await it.ends(["e"]);
  expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
});

test("what is moved to the name gets there, and its own node, which cannot go either, is what waits", async () => {
  const it = await refused(["a", "e"], WITHDRAWN);
  await it.rename("a", "e");
  await it.world.clock.advance(FORGOTTEN_MS);
  const waiting = it.metadata().nodes.dirty(9);
  expect(waiting.map(({ entry, base }) => [entry, base?.name])).toEqual([[null, "a"]]);
  it.mount.weather.withdrawn = undefined;
  await it.ends(["e"]);
  expect(await it.content("e")).toBe(bytesOf("a", 40).toString("latin1"));
});

test("a name that came back with somebody's change, and is saved as it is, has nothing to send", async () => {
  const it = await refused(["e"], WITHDRAWN);
  const { world } = it;
  await edit(world, { do: "outside", edit: "write", path: "e", to: "" }, "");
  await it.until(() => it.metadata().entries.find(ROOT_INODE, "e") !== undefined);
  await world.run(runProgram(it.calls(), { do: "save", path: "e", size: 40 }, "outside"));
  await world.clock.advance(60_000);
  const entry = it.metadata().entries.find(ROOT_INODE, "e");
  expect(entry && it.metadata().inodes.get(entry.inode)?.content).toBe("clean");
});

test("a node that is gone without anybody telling is not what the name has", async () => {
  const lacks = ["journal", "positions", "revisions", "conditions", "changeKeys"] as const;
  const it = await begin(true, {}, { lacks });
  for (const name of ["a", "e"]) await it.save(name, "the same");
  await it.drain();
  const deletion = it.once("late", ({ method }) => method === "DELETE");
  await it.unlink("e");
  await it.until(deletion.isSent);
  Object.assign(it.mount.weather, WITHDRAWN);
  await it.world.clock.advance(20_000);
  await it.rename("a", "e");
  await it.world.clock.advance(FORGOTTEN_MS);
  it.mount.weather.withdrawn = undefined;
  await it.ends(["e"]);
  expect(await it.content("e")).toBe(bytesOf("the same", 40).toString("latin1"));
});

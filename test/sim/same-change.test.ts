/**
 * A change without a key was not answered, and somebody has done the same and more in one change: what is more of it is
 * theirs, and news. Taken for our own it would be undone, or wait for the name somebody else has by now.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { begin } from "./support/one-world.ts";

const isPatch = ({ method }: HttpRequest) => method === "PATCH";
const MODE = 0o700;

/** A folder `d` with a file and a file `a`; the mount's change of the mode of `path` has not arrived. */
async function unsent(path: "a" | "d") {
  const it = await begin(false);
  const { outside } = it.world;
  await it.world.run(it.calls().mkdir("d"));
  for (const name of ["d/x", "a"]) await it.save(name);
  await it.drain();
  it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
  const node = (at: string) => it.world.run(outside.getNodeByPath(`/${at}`, { workspace: "workspace" }));
  const [changed, other] = [await node(path), await node(path === "a" ? "d" : "a")];
  const sent = it.once("lost-before", isPatch);
  await it.world.run(it.calls().chmod(path, MODE));
  await it.until(sent.isSent);
  return { ...it, outside, changed, other, node, stat: (at: string) => it.world.run(it.calls().stat(at)) };
}

test.each([
  ["a", "nothing", ["d", "d/x", "theirs"]],
  ["d", "nothing", ["a", "theirs", "theirs/x"]],
  ["a", "the other", ["a", "a/x", "theirs"]],
  ["d", "the other", ["d", "theirs", "theirs/x"]],
] as const)("%s is moved besides, and %s takes its place: it stays where they have it", async (path, taker, names) => {
  const it = await unsent(path);
  await it.world.run(it.outside.patchNode(it.changed.id, { name: "theirs", attributes: { mode: MODE } }));
  if (taker === "the other") await it.world.run(it.outside.patchNode(it.other.id, { name: path }));
  await it.ends(names);
  expect((await it.node("theirs")).id).toBe(it.changed.id);
  expect((await it.stat("theirs")).mode & 0o777).toBe(MODE);
  if (taker === "the other") expect((await it.node(path)).id).toBe(it.other.id);
});

test.each(["a", "d"] as const)("another attribute of %s is changed besides: it stays", async (path) => {
  const it = await unsent(path);
  await it.world.run(it.outside.patchNode(it.changed.id, { attributes: { mode: MODE, uid: 4711 } }));
  await it.ends(["a", "d", "d/x"]);
  expect((await it.node(path)).attributes).toMatchObject({ mode: MODE, uid: 4711 });
});

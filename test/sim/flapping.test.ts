/** A gateway without a journal that for a while neither lists a node nor finds its id, and then does again. */
import { expect, test } from "vitest";
import { runProgram } from "./support/programs.ts";
import { gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const POLL_MS = 5_000;
/** What is written has settled. */
const OLD_MS = 6 * 60_000;

async function begin(lacks: readonly ("positions" | "journal" | "revisions" | "attributes")[]) {
  const world = await createWorld({ seed: 1, mounts: ["alpha"], lacks, settings: { pollMs: POLL_MS } });
  const [mount] = world.mounts;
  const calls = () => {
    if (mount?.process === undefined) throw new Error("the mount is down");
    return mount.process.kernel;
  };
  const names = () => world.run(calls().list(""));
  /** Its rows are put aside, and brought back. */
  const hide = (name: string): (() => void) => {
    const { store } = world;
    const place = store.prepare<[string], Record<string, unknown>>("SELECT * FROM place WHERE name = ?").get(name);
    if (place === undefined) throw new Error(`no ${name}`);
    const set = (deleted: number, count: number) => {
      store.prepare("UPDATE node SET deleted = ? WHERE id = ?").run(deleted, place.node);
      store.prepare("UPDATE mark SET count = count + ? WHERE folder = ?").run(count, place.parent);
      // Pages it has made are kept for a while.
      world.restartGateway();
    };
    store.prepare("DELETE FROM place WHERE name = ?").run(name);
    set(1, -1);
    return () => {
      const columns = Object.keys(place);
      const insert = `INSERT INTO place (${columns.join()}) VALUES (${columns.map((column) => `@${column}`).join()})`;
      store.prepare(insert).run(place);
      set(0, 1);
    };
  };
  const save = (path: string, label: string) => world.run(runProgram(calls(), { do: "save", path, size: 40 }, label));
  const remote = async () => [...(await world.run(gatewayTree(world.outside, world.workspace.root))).keys()].sort();
  await save("a", "first");
  await save("b", "other");
  await world.run(calls().chmod("a", 0o600));
  await world.clock.advance(OLD_MS);
  const content = async (path: string) => (await world.run(readFile(calls(), path))).toString("latin1");
  const mode = async (path: string) => (await world.run(treeOf(calls(), { withContent: false }))).get(path)?.mode;
  return { world, names, hide, save, remote, content, mode };
}

const LACKS = [
  { what: "a journal", lacks: ["journal"] },
  { what: "a journal and positions", lacks: ["journal", "positions"] },
  { what: "a journal, revisions and attributes", lacks: ["journal", "positions", "revisions", "attributes"] },
] as const;

/** Several rounds of looking. */
const MOMENT_MS = 25_000;

test.each(LACKS)("without $what: what is not found for a moment stays as it is", async ({ lacks }) => {
  const it = await begin(lacks);
  const before = await it.content("a");
  const show = it.hide("a");
  for (let waited = 0; waited < MOMENT_MS; waited += POLL_MS / 2) {
    await it.world.clock.advance(POLL_MS / 2);
    expect(await it.names()).toEqual(["a", "b"]);
  }
  show();
  await it.world.clock.advance(30_000);
  expect(await it.names()).toEqual(["a", "b"]);
  expect(await it.content("a")).toBe(before);
  expect(await it.mode("a")).toBe(0o600);
  it.world.check();
});

test.each(LACKS)("without $what: changed while its node is not found, it is no other file", async ({ lacks }) => {
  const it = await begin(lacks);
  const show = it.hide("a");
  await it.world.clock.advance(2 * POLL_MS);
  await it.save("a", "second");
  const saved = await it.content("a");
  // Longer than what is believed of a file that nobody changed here.
  await it.world.clock.advance(120_000);
  expect(await it.names()).toEqual(["a", "b"]);
  show();
  await it.world.clock.advance(OLD_MS);
  expect([await it.names(), await it.remote()]).toEqual([
    ["a", "b"],
    ["a", "b"],
  ]);
  expect(await it.content("a")).toBe(saved);
  it.world.check();
});

test.each(LACKS)("without $what: what is deleted elsewhere goes within a minute", async ({ lacks }) => {
  const it = await begin(lacks);
  const { items } = await it.world.run(it.world.outside.listFolder(it.world.workspace.root));
  const node = items.find(({ name }) => name === "a");
  await it.world.run(it.world.outside.deleteNode(node?.id ?? ""));
  await it.world.clock.advance(60_000);
  expect([await it.names(), await it.remote()]).toEqual([["b"], ["b"]]);
  it.world.check();
});

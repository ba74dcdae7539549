/**
 * Requests that arrive after anybody thinks of them, answers that are lost, and crashes between an
 * answer and what it asks for: histories made for them, at gateways with and without keys of changes.
 */
import { expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { inodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { isMove, movedLate } from "./support/late-move.ts";
import { ALL_ARRIVED_MS, begin, there } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";
import { treeOf } from "./support/tree.ts";

/** An id that has answered 404 for so long is gone. */
const SETTLED_MS = 5 * 60_000 + 10_000;

const isPatch = ({ method }: HttpRequest) => method === "PATCH";
const isDeletion = ({ method }: HttpRequest) => method === "DELETE";

const CASES = [true, false].flatMap((hasKeys) =>
  (["crash", "remount"] as const).map((how) => ({ hasKeys, how, kind: hasKeys ? "with keys" : "without keys" })),
);

test.each(CASES)("$kind: a move that arrives after a $how is no foreign one", async ({ hasKeys, how }) => {
  const it = await begin(hasKeys);
  await it.save("a");
  await it.drain();
  const move = it.once("late", isMove);
  await it.rename("a", "b");
  await it.until(move.isSent);
  // Back again before anybody answered: there is nothing left to ask for.
  await it.rename("b", "a");
  await it.again(how);
  await it.ends(["a"]);
  expect(it.world.lines.join("\n")).toContain("late: PATCH");
});

test.each(CASES)("$kind: attributes that arrive after a $how do not come back", async ({ hasKeys, how }) => {
  const it = await begin(hasKeys);
  await it.save("a");
  await it.world.run(it.calls().chmod("a", 0o644));
  await it.drain();
  const change = it.once("late", isPatch);
  await it.world.run(it.calls().chmod("a", 0o600));
  await it.until(change.isSent);
  await it.world.run(it.calls().chmod("a", 0o644));
  await it.again(how);
  await it.ends(["a"]);
  expect((await it.world.run(it.calls().stat("a"))).mode & 0o777).toBe(0o644);
  expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o644 });
});

test.each(CASES)("$kind: a deletion that arrives after a $how takes nothing made since", async ({ hasKeys, how }) => {
  const it = await begin(hasKeys);
  await it.save("a", "the same");
  await it.drain();
  const deletion = it.once("late", isDeletion);
  await it.unlink("a");
  await it.until(deletion.isSent);
  await it.again(how);
  // The very same content: nothing tells it from what was deleted but that it was made again.
  await it.save("a", "the same");
  await it.ends(["a"]);
  expect(await it.content("a")).toBe(bytesOf("the same", 40).toString("latin1"));
});

const NO_KEYS = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] as const;
const LATE_LISTS: readonly {
  lacks: readonly Feature[];
  kind: string;
  made: "file" | "folder";
  how: "lost" | "crash";
}[] = [
  { lacks: NO_KEYS, kind: "keys", made: "file", how: "lost" },
  { lacks: NO_KEYS, kind: "keys", made: "folder", how: "lost" },
  { lacks: [...NO_KEYS, "conditions"], kind: "keys and conditions", made: "file", how: "crash" },
];

test.each(LATE_LISTS)(
  "without $kind: a $made that late lists still show after its removal is not the one made anew ($how)",
  async ({ lacks, made, how }) => {
    const it = await begin(true, {}, { lacks });
    const { mkdir, rmdir } = it.calls();
    const make = () => (made === "file" ? it.save("b", "the same") : it.world.run(mkdir("b")));
    await make();
    await it.drain();
    await it.world.clock.advance(20_000);
    it.world.setLag({ path: 10_000, journal: 0, id: 0 });
    await (made === "file" ? it.unlink("b") : it.world.run(rmdir("b")));
    await it.until(() => it.asked.some((line) => line.startsWith("DELETE")));
    const isBirth = ({ method, path }: HttpRequest) => method === "POST" && /^\/v1\/(files|nodes)/.test(path);
    if (how === "crash") it.mount.weather.latencyMs = 300;
    const birth = how === "lost" ? it.once("lost-before", isBirth) : undefined;
    await make();
    await it.until(birth?.isSent ?? (() => it.metadata().attempts.countOpen() > 0));
    if (how === "crash") await it.again("crash");
    await it.ends(["b"]);
  },
);

test.each(CASES)("$kind: a lost answer to a move is found again after a $how and a further move", async (options) => {
  const it = await begin(options.hasKeys);
  await it.save("a");
  await it.drain();
  const move = it.once("silent-after", isMove);
  await it.rename("a", "b");
  await it.until(move.isSent);
  await it.rename("b", "c");
  await it.again(options.how);
  await it.ends(["c"]);
});

test("a lost answer to a move, and somebody else's change on top: the key tells the two apart", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.drain();
  const move = it.once("silent-after", isMove);
  await it.rename("a", "b");
  await it.until(move.isSent);
  const [node] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
  expect(node?.name).toBe("b");
  await it.world.run(it.world.outside.patchNode(node?.id ?? "", { attributes: { mode: 0o640 } }));
  await it.rename("b", "c");
  await it.ends(["c"]);
  expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o640 });
});

test("a deletion's answer was lost, and somebody restores the node: it is not deleted twice", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.drain();
  const [node] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
  const deletion = it.once("silent-after", isDeletion);
  await it.unlink("a");
  await it.until(deletion.isSent);
  await it.world.clock.advance(2_000);
  await it.world.run(it.world.outside.restoreNode(node?.id ?? ""));
  await it.ends(["a"]);
  expect(it.asked.filter((line) => line.startsWith("DELETE"))).toEqual([
    "DELETE /v1/nodes/ID 200",
    "DELETE /v1/nodes/ID 200",
  ]);
});

test("without keys: a deletion that was not carried out is not taken for done while the id of its node is not found yet", async () => {
  const it = await begin(false);
  it.world.setLag({ path: 0, journal: 0, id: 30_000 });
  await it.save("a");
  await it.until(() => it.metadata().nodes.counts().dirty === 0);
  const deletion = it.once("lost-before", isDeletion);
  await it.unlink("a");
  await it.until(deletion.isSent);
  await it.world.clock.advance(10_000);
  expect(it.world.lines.join("\n")).toMatch(/DELETE.*\n(.*\n)*.*GET \/v1\/nodes\/.*: 404/);
  await it.ends([]);
});

test("without keys: of a deletion whose answer was lost the journal tells that it was carried out", async () => {
  const it = await begin(false);
  await it.save("a");
  await it.drain();
  const deletion = it.once("lost-after", isDeletion);
  await it.unlink("a");
  await it.until(deletion.isSent);
  const begun = it.world.clock.elapsed();
  await it.drain();
  expect(it.world.clock.elapsed() - begun).toBeLessThan(10_000);
  await it.ends([]);
});

test("refused for a name that is taken, and carried out late when it is free: ours all the same", async () => {
  const { it } = await movedLate();
  it.rules.choose = () => undefined;
  await it.world.clock.advance(ALL_ARRIVED_MS);
  await it.drain();
  expect([...(await there(it.world)).keys()]).toEqual(["c"]);
  expect(await it.names()).toEqual(["c"]);
});

test("without keys: what arrives between the reading and the repetition is ours all the same", async () => {
  const it = await begin(false);
  await it.save("a");
  await it.drain();
  const { outside, workspace } = it.world;
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  it.mount.weather.latencyMs = 50;
  const late = () => outside.patchNode(node?.id ?? "", { name: "b" }, { ifRevision: node?.revision ?? 0 });
  const arrivals: Promise<unknown>[] = [];
  let moves = 0;
  it.rules.choose = (request) => {
    if (!isMove(request)) return undefined;
    moves += 1;
    if (moves === 2) arrivals.push(late());
    return moves === 1 ? "silent-before" : undefined;
  };
  await it.rename("a", "b");
  await it.until(() => moves === 1);
  await it.rename("b", "c");
  await it.ends(["c"]);
  await it.world.run(Promise.all(arrivals));
  expect(it.asked.filter((line) => line.endsWith("412"))).toEqual(["PATCH /v1/nodes/ID 412"]);
});

test("a folder whose birth was answered late is listed: what was put into it meanwhile was passed over", async () => {
  const it = await begin(true);
  const { outside, workspace } = it.world;
  await it.drain();
  const birth = it.once("silent-after", ({ method, path }) => method === "POST" && path === "/v1/nodes");
  await it.world.run(it.calls().mkdir("d"));
  await it.until(birth.isSent);
  await it.world.clock.advance(1_000);
  const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.createFolder(folder?.id ?? "", "e"));
  await it.world.clock.advance(5_000);
  await it.ends(["d", "d/e"]);
});

test.each([false, true])(
  "a crash between an answer and the re-read it asks for (rows forgotten: %s)",
  async (isBroken) => {
    const it = await begin(true, {
      engine: ({ context: { metadata } }) => {
        if (isBroken)
          for (const reread of metadata.rereads.due(Number.MAX_SAFE_INTEGER, 100)) metadata.rereads.done(reread);
      },
    });
    const { outside, workspace } = it.world;
    await it.drain();
    const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
    await it.save("a");
    await it.until(upload.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.deleteNode(node?.id ?? ""));
    // The journal is past the deletion, and listings too, before the upload is answered.
    await it.until(() => it.metadata().settings.getNumber("cursor") >= it.world.position(), 5_000);
    it.metadata().settings.set("indexed", String(it.world.position()));
    const other = await it.world.run(outside.createFolder(workspace.root, "other"));
    await it.until(() => it.metadata().settings.getNumber("cursor") >= other.position, 5_000);
    expect(it.metadata().tombstones.get(node?.id ?? "")).toBeUndefined();
    it.rules.choose = ({ method, path }) =>
      method === "GET" && path.startsWith("/v1/nodes/") ? "silent-before" : undefined;
    await it.until(() => it.metadata().nodes.ofNodeId(node?.id ?? "") !== undefined);
    it.mount.crash();
    it.rules.choose = () => undefined;
    await it.world.run(it.mount.start());
    await it.world.clock.advance(SETTLED_MS);
    expect(await it.names()).toEqual(isBroken ? ["a", "other"] : ["other"]);
  },
);

const READERS = [
  { who: "the journal is followed", isListed: true },
  { who: "a late listing catches up", isListed: false },
];

test.each(READERS)("$who, and an id told of answers 404 for a moment: the news is not lost", async ({ isListed }) => {
  const it = await begin(true);
  const { outside, workspace } = it.world;
  if (isListed) expect(await it.names()).toEqual([]);
  it.world.setLag({ path: isListed ? 0 : 60_000, journal: 0, id: 10_000 });
  await it.world.run(outside.createFolder(workspace.root, "d"));
  await it.until(() => it.metadata().settings.getNumber("cursor") >= it.world.position());
  expect(await it.names()).toEqual([]);
  await it.again("crash");
  await it.world.clock.advance(25_000);
  expect(await it.names()).toEqual(["d"]);
});

test("a birth answered after the journal told of its end is over at once", async () => {
  const it = await begin(true);
  const { outside, workspace } = it.world;
  await it.drain();
  const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
  await it.save("a");
  await it.until(upload.isSent);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.deleteNode(node?.id ?? ""));
  await it.until(() => it.asked.filter((line) => line === "POST /v1/files/a 201").length === 2);
  await it.world.clock.advance(1_000);
  expect(await it.names()).toEqual([]);
});

test("an id that answers 404 before the journal tells anything: gone after the settle time, restarts or not", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.drain();
  it.world.setLag({ path: 0, journal: 3_600_000, id: 0 });
  await it.save("a");
  await it.until(() => it.metadata().nodes.counts().dirty === 0);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.deleteNode(node?.id ?? ""));
  it.metadata().rereads.add(node?.id ?? "");
  await clock.advance(150_000);
  expect(await it.names()).toEqual(["a"]);
  await it.again("crash");
  await clock.advance(100_000);
  expect(await it.names()).toEqual(["a"]);
  await it.again("crash");
  // Five minutes after the first 404, whatever was between.
  await clock.advance(60_000);
  expect(await it.names()).toEqual([]);
  expect(it.metadata().tombstones.get(node?.id ?? "")).toMatchObject({ position: null });
  it.world.setLag({ path: 0, journal: 0, id: 0 });
  await clock.advance(5_000);
  expect(it.metadata().tombstones.get(node?.id ?? "")).not.toMatchObject({ position: null });
});

test("a node of ours is not taken for gone while its id is not found yet, though the journal told of it", async () => {
  const it = await begin(true);
  await it.drain();
  it.world.setLag({ path: 0, journal: 0, id: 20_000 });
  const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
  await it.save("a");
  await it.until(upload.isSent);
  await it.until(() => it.metadata().settings.getNumber("cursor") >= it.world.position());
  await it.until(() => it.metadata().nodes.counts().dirty === 0);
  // The answer asked for the node, whose id answers 404; its folder is there.
  await it.until(() => {
    const { rereads } = it.metadata();
    return rereads.due(Number.MAX_SAFE_INTEGER, 9).some(({ nodeId }) => rereads.missingSince(nodeId) !== undefined);
  });
  expect(await it.names()).toEqual(["a"]);
  await it.ends(["a"]);
});

test("a node moved away before its id is found is not taken for gone by a listing of where it was", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.world.run(it.calls().mkdir("d"));
  await it.world.run(it.calls().mkdir("e"));
  await it.drain();
  it.world.setLag({ path: 0, journal: 3_600_000, id: 30_000 });
  await it.save("d/a");
  await it.until(() => it.metadata().nodes.counts().dirty === 0);
  const [d, e] = (await it.world.run(outside.listFolder(workspace.root))).items;
  const [a] = (await it.world.run(outside.listFolder(d?.id ?? ""))).items;
  await it.world.run(outside.patchNode(a?.id ?? "", { parentId: e?.id ?? "" }));
  // The folder is listed again, as after its rows were given up.
  const entry = it.metadata().entries.find(ROOT_INODE, "d");
  it.metadata().inodes.update(entry?.inode ?? inodeId(0), { listed: null });
  const tree = async () => [...(await it.world.run(treeOf(it.calls(), { withContent: true }))).keys()];
  expect(await tree()).toEqual(["d", "d/a", "e"]);
  expect(
    it
      .metadata()
      .rereads.due(Number.MAX_SAFE_INTEGER, 9)
      .map(({ nodeId }) => nodeId),
  ).toContain(a?.id);
  await clock.advance(60_000);
  expect(await tree()).toEqual(["d", "e", "e/a"]);
  it.world.setLag({ path: 0, journal: 0, id: 0 });
  await it.ends(["d", "e", "e/a"]);
});

test("a deletion told several entries after the cursor is remembered until the index is past it", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.save("a");
  await it.save("b");
  await it.drain();
  it.world.setLag({ path: 8_000, journal: 0, id: 0 });
  const nodes = (await it.world.run(outside.listFolder(workspace.root))).items;
  const [a, b] = nodes.map((node) => node.id);
  // Offline meanwhile, so that one page of the journal tells all of it.
  it.mount.weather.isOffline = true;
  await clock.advance(3_000);
  for (const mode of [0o600, 0o640, 0o600]) await it.world.run(outside.patchNode(b ?? "", { attributes: { mode } }));
  await clock.advance(6_000);
  const { position } = await it.world.run(outside.deleteNode(a ?? ""));
  it.mount.weather.isOffline = false;
  await it.until(() => it.metadata().tombstones.get(a ?? "") !== undefined);
  expect(it.metadata().tombstones.get(a ?? "")).toMatchObject({ position });
  // Listings show what was before the deletion, and later what comes after it.
  const shown = async () => (await it.world.run(outside.listFolder(workspace.root, { pageSize: 1 }))).asOf;
  let asOf = await shown();
  for (; asOf <= position - 4; asOf = await shown()) await clock.advance(100);
  expect(asOf).toBeLessThan(position);
  it.metadata().settings.set("indexed", String(asOf));
  await it.world.run(outside.patchNode(b ?? "", { attributes: { mode: 0o644 } }));
  await clock.advance(2_000);
  expect(it.metadata().settings.getNumber("cursor")).toBeGreaterThan(position);
  expect(it.metadata().tombstones.get(a ?? "")).toMatchObject({ position });
  await it.ends(["b"]);
  it.metadata().settings.set("indexed", String(it.world.position()));
  await it.world.run(outside.patchNode(b ?? "", { attributes: { mode: 0o600 } }));
  await clock.advance(15_000);
  expect(it.metadata().tombstones.get(a ?? "")).toBeUndefined();
});

test("a node stays until the name its file has now has its content, whoever has it open", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.save("b");
  await it.drain();
  const held = await it.world.run(it.calls().open("b", { write: true }));
  it.asked.length = 0;
  await it.rename("b", "a");
  await it.world.clock.advance(30_000);
  // What b was is there as a version of b's node, and nothing was written since.
  expect(it.asked).toEqual(["POST /v1/nodes/ID/versions 200", "DELETE /v1/nodes/ID 200"]);
  expect([...(await there(it.world)).keys()]).toEqual(["a"]);
  it.asked.length = 0;
  await it.world.run(it.calls().close(held));
  await it.ends(["a"]);
  expect(it.asked).toEqual([]);
  expect(await it.content("a")).toBe(bytesOf("b", 40).toString("latin1"));
});

test("a file does not become a version of a node that is being deleted", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.drain();
  // The node goes back to a: b is a new file that grew from its version.
  await it.rename("a", "b");
  const held = await it.world.run(it.calls().open("b", { write: true }));
  await it.world.run(it.calls().write(held, 0, bytesOf("a", 40)));
  await it.save("a", "new");
  await it.unlink("a");
  const deletion = it.once("silent-after", isDeletion);
  await it.until(deletion.isSent);
  // With the very bytes of the version it grew from.
  await it.world.run(it.calls().close(held));
  await it.ends(["b"]);
  expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual(["POST /v1/files/a 201", "POST /v1/files/b 201"]);
});

test("removed and made again while its last save is under way: the name keeps its node", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.drain();
  const [before] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
  const save = it.once("silent-after", ({ method }) => method === "PUT");
  await it.save("a", "second");
  await it.until(save.isSent);
  await it.unlink("a");
  await it.save("a", "third");
  await it.ends(["a"]);
  const [after] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
  expect(after?.id).toBe(before?.id);
  const versions = await it.world.run(it.world.outside.listVersions(before?.id ?? ""));
  expect(versions.totalCount).toBe(3);
});

test.each(["crash", "remount", undefined] as const)(
  "a save whose answer was lost, given up for the next, and nothing heard for a quarter of an hour (%s): no conflict",
  async (how) => {
    const it = await begin(true);
    await it.save("a");
    await it.drain();
    const first = it.once("lost-after", ({ method }) => method === "PUT");
    await it.save("a", "second");
    await it.until(first.isSent);
    it.mount.weather.isOffline = true;
    await it.save("a", "third");
    await it.world.clock.advance(900_000);
    if (how !== undefined) await it.again(how);
    it.mount.weather.isOffline = false;
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(bytesOf("third", 40).toString("latin1"));
  },
);

test.each([0, 8 * 3_600_000])(
  "slept for %i ms, then another boot: what old lists show of something removed does not come back",
  async (slept) => {
    let boot = "before";
    const it = await begin(
      true,
      {},
      { lacks: FEATURE_NAMES, engine: (_, __, own) => ({ settings: { ...own.settings, boot } }) },
    );
    await it.save("b");
    await it.save("c");
    await it.drain();
    await it.world.clock.advance(400_000);
    expect(await it.names()).toEqual(["b", "c"]);
    it.mount.skewMs = slept;
    it.world.setLag({ path: 120_000, journal: 0, id: 0 });
    await it.unlink("b");
    await it.world.clock.advance(10_000);
    boot = "after";
    await it.again("remount");
    for (let shown = 0; shown < 10; shown += 1) {
      await it.world.clock.advance(3_000);
      expect(await it.names()).toEqual(["c"]);
    }
  },
);

/** Late, lost and old answers change the rows as docs/dev/sync.md says (exactly once, lag), one case at a time. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError, type RemoteErrorDetails } from "../../../src/client/errors.ts";
import type { Attributes } from "../../../src/contract/attributes.ts";
import { SETTLE_MS } from "../../../src/contract/features.ts";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import type { Request } from "../../../src/engine/core/index.ts";
import { listRemovedFolder } from "../../../src/engine/sync/list-removed-folder.ts";
import { createForgetting } from "../../../src/engine/tree/index.ts";
import { minus, rowTime } from "../../../src/lib/clocks.ts";
import type { Attempt } from "../../../src/metadata/attempts.ts";
import { inodeId, nodeRowId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import type { NodeRow } from "../../../src/metadata/nodes.ts";
import { type BytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import {
  EMPTY,
  hearJournal,
  inodeOfFolder,
  make,
  makeWorld,
  namesIn,
  nodeOf,
  remove,
  rename,
  rowOf,
  sendNext,
  TIME,
} from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const refusal = (code: "changed" | "conflict", details: RemoteErrorDetails = {}) =>
  new RemoteError(code, code, details);

const nextOf = ({ context }: BytesWorld, row: NodeRow) => context.planner.advance(row.id)?.step;

/** As the gateway would list the folder; each list is one call. */
function listing(world: BytesWorld, ...lists: Node[][]): Parts {
  let calls = 0;
  const client: Pick<Client, "listFolder"> = {
    async listFolder() {
      const items = lists[Math.min(calls, lists.length - 1)] ?? [];
      calls += 1;
      return { items, totalCount: items.length, pageNo: 1, pageSize: 200, asOf: 1, next: null };
    },
  };
  return withParts(world.context, { client: { ...world.context.client, ...client } });
}

/** Folder "f" with node id "f", known to be empty, then removed, its deletion refused. */
async function removedFolder() {
  const world = await makeWorld();
  world.context.observer.node(nodeOf("f", { kind: "folder" }));
  world.metadata.inodes.update(inodeOfFolder(world, "f"), { listed: 0 });
  remove(world, ROOT_INODE, "f");
  const row = rowOf(world, "f");
  const refuse = () =>
    world.context.answers.refused(sendNext(world, row, `delete-${world.clock.wallClock()}`), refusal("conflict"));
  return { world, row, refuse };
}

test("a folder that was not empty stays removed until it is known what for", async () => {
  const { world, row, refuse } = await removedFolder();
  refuse();
  expect(namesIn(world, ROOT_INODE)).toEqual([]);
  expect(world.metadata.nodes.get(row.id)?.due).toBe(world.clock.wallClock() + 1000);
  // The listing is late.
  await listRemovedFolder(listing(world, []), SIGNAL);
  expect(namesIn(world, ROOT_INODE)).toEqual([]);
  expect(nextOf(world, row)).toMatchObject({ do: "send", request: { do: "delete", nodeId: "f" } });
});

test("a folder comes back for what somebody put into it", async () => {
  const { world, refuse } = await removedFolder();
  refuse();
  await listRemovedFolder(listing(world, [nodeOf("theirs", { parentId: "f" })]), SIGNAL);
  expect(namesIn(world, ROOT_INODE)).toEqual(["f"]);
  expect(namesIn(world, inodeOfFolder(world, "f"))).toEqual(["theirs"]);
  expect(world.context.notEmpty.size).toBe(1);
  await listRemovedFolder(listing(world, []), SIGNAL);
  expect(world.context.notEmpty.size).toBe(0);
});

test.each([
  { what: "may not be listed", error: new RemoteError("forbidden", "no grant for the resource"), asked: ["f", "g"] },
  { what: "fails when it is listed", error: new RemoteError("server", "no"), asked: ["f", "g", "f"] },
])("a removed folder that $what keeps no other from coming back, nor the journal from going on", async (it) => {
  const { world, refuse, row } = await removedFolder();
  world.context.observer.node(nodeOf("g", { kind: "folder" }));
  world.metadata.inodes.update(inodeOfFolder(world, "g"), { listed: 0 });
  remove(world, ROOT_INODE, "g");
  refuse();
  world.context.answers.refused(sendNext(world, rowOf(world, "g"), "of g"), refusal("conflict"));
  const asked: string[] = [];
  const shown = listing(world, [nodeOf("theirs", { parentId: "g" })]);
  const listFolder: Client["listFolder"] = async (id, options) => {
    asked.push(id);
    if (id === "f") throw it.error;
    return shown.client.listFolder(id, options);
  };
  const context = withParts(shown, { client: { ...shown.client, listFolder } });
  await context.nodeReader.listRemovedFolder(SIGNAL);
  expect(namesIn(world, ROOT_INODE)).toEqual(["g"]);
  await context.nodeReader.listRemovedFolder(SIGNAL);
  expect(asked).toEqual(it.asked);
  // Each refusal is a reason to look again.
  await world.clock.advance(1_000);
  world.metadata.attempts.removeAllOf(row.id);
  refuse();
  await context.nodeReader.listRemovedFolder(SIGNAL);
  expect(asked).toEqual([...it.asked, "f"]);
});

test("the journal tells of what is new in a folder that was removed here", async () => {
  const { world } = await removedFolder();
  const node = nodeOf("theirs", { parentId: "f" });
  const entry: JournalEntry = {
    position: 5,
    time: TIME,
    kind: "created",
    nodeId: node.id,
    revision: 1,
    parentId: "f",
    name: node.name,
  };
  const client = { ...world.context.client, getNode: async () => node };
  await hearJournal(withParts(world.context, { client }), [entry]);
  expect(namesIn(world, inodeOfFolder(world, "f"))).toEqual(["theirs"]);
});

test("a folder comes back at once for what no name here can show, and in the end for what no listing shows", async () => {
  const shown = await removedFolder();
  shown.refuse();
  await listRemovedFolder(listing(shown.world, [nodeOf("theirs", { parentId: "f", name: "a/b" })]), SIGNAL);
  expect(namesIn(shown.world, ROOT_INODE)).toEqual(["f"]);

  const { world, refuse, row } = await removedFolder();
  refuse();
  for (let seconds = 0; seconds < 5 * 60; seconds += 1) {
    await world.clock.advance(1000);
    expect(world.metadata.nodes.get(row.id)?.entry).toBeNull();
  }
  refuse();
  expect(namesIn(world, ROOT_INODE)).toEqual(["f"]);
  expect(world.metadata.inodes.get(inodeOfFolder(world, "f"))?.listed).toBeNull();
});

test("a refusal that is older than the folder's second removal does not bring it back", async () => {
  const { world, row } = await removedFolder();
  const attempt = sendNext(world, row, "first");
  world.context.observer.node(nodeOf("theirs", { parentId: "f" }));
  const folder = inodeOfFolder(world, "f");
  remove(world, folder, "theirs");
  const theirs = rowOf(world, "theirs");
  world.context.answers.acknowledge(sendNext(world, theirs, "second"), nodeOf("theirs", { revision: 2 }), 7);
  remove(world, ROOT_INODE, "f");
  world.context.answers.refused(attempt, refusal("conflict"));
  await listRemovedFolder(listing(world, [nodeOf("theirs", { parentId: "f" })]), SIGNAL);
  expect(namesIn(world, ROOT_INODE)).toEqual([]);
});

test("a refusal that names a node which is gone since brings neither it nor its folder back", async () => {
  const world = await makeWorld();
  world.context.observer.node(nodeOf("f", { kind: "folder" }));
  const folder = inodeOfFolder(world, "f");
  world.metadata.inodes.update(folder, { listed: 0 });
  const row = make(world, folder, "a");
  const attempt = sendNext(world, row, "upload");
  const theirs = nodeOf("theirs", { parentId: "f", name: "a" });
  world.context.observer.deletion("theirs", 2, 9);
  remove(world, folder, "a");
  remove(world, ROOT_INODE, "f");
  world.context.answers.refused(attempt, refusal("changed", { node: theirs }));
  expect(namesIn(world, ROOT_INODE)).toEqual([]);
  expect(world.metadata.nodes.ofNodeId("theirs")).toBeUndefined();
});

test("the same while the name is still wanted: it is asked for again, and nothing moves aside", async () => {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  const attempt = sendNext(world, row, "upload");
  world.context.observer.deletion("theirs", 2, 9);
  world.context.answers.refused(attempt, refusal("changed", { node: nodeOf("theirs", { name: "a" }) }));
  expect(namesIn(world, ROOT_INODE)).toEqual(["a"]);
  expect(nextOf(world, row)).toMatchObject({ do: "send", request: { do: "upload", name: "a" } });
});

/** A file whose upload as "a" was given up for a newer snapshot, and that is called "b" by now. */
async function givenUp() {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  const first = sendNext(world, row, "first");
  world.metadata.attempts.abandon(first.id, rowTime(world.clock.wallClock()));
  rename(world, row, ROOT_INODE, "b");
  const arrived = nodeOf("older", { name: "a", lastKey: "first" });
  return { world, row, arrived };
}

const secondNode = nodeOf("newer", { name: "b", lastKey: "second", contentHash: EMPTY, size: 0 });

test("an upload that was given up arrives, nothing else was sent: the file has its node", async () => {
  const { world, row, arrived } = await givenUp();
  world.context.observer.node(arrived);
  expect(world.metadata.nodes.get(row.id)).toMatchObject({ nodeId: "older", base: { name: "a" } });
  expect(nextOf(world, row)).toMatchObject({ do: "send", request: { do: "patch", name: "b" } });
});

test("an upload that was given up arrives after the next one: it does not come back at its old place", async () => {
  const { world, row, arrived } = await givenUp();
  world.context.answers.acknowledge(sendNext(world, row, "second"), secondNode, 3);
  world.context.observer.node(arrived);
  expect(namesIn(world, ROOT_INODE)).toEqual(["b"]);
  expect(world.metadata.nodes.get(row.id)?.nodeId).toBe("newer");
  const older = rowOf(world, "older");
  expect(older).toMatchObject({ entry: null });
  expect(nextOf(world, older)).toMatchObject({ do: "send", request: { do: "delete", nodeId: "older" } });
});

test("the same while the next one is under way", async () => {
  const { world, row, arrived } = await givenUp();
  const second = sendNext(world, row, "second");
  world.context.observer.node(arrived);
  world.context.answers.acknowledge(second, secondNode, 3);
  expect(namesIn(world, ROOT_INODE)).toEqual(["b"]);
  expect(world.metadata.nodes.get(row.id)?.nodeId).toBe("newer");
  expect(nextOf(world, rowOf(world, "older"))).toMatchObject({ request: { do: "delete", nodeId: "older" } });
});

test("the same after the file was removed, deletion acknowledged", async () => {
  const { world, row, arrived } = await givenUp();
  world.context.answers.acknowledge(sendNext(world, row, "second"), secondNode, 3);
  remove(world, ROOT_INODE, "b");
  world.context.answers.acknowledge(sendNext(world, row, "delete"), { ...secondNode, revision: 2 }, 4);
  world.context.observer.node(arrived);
  expect(namesIn(world, ROOT_INODE)).toEqual([]);
  expect(nextOf(world, rowOf(world, "older"))).toMatchObject({ request: { do: "delete", nodeId: "older" } });
});

test("an old answer names what a given-up upload made, and somebody has edited that since: the edit is news", async () => {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  world.metadata.attempts.abandon(sendNext(world, row, "first").id, rowTime(0));
  const second = sendNext(world, row, "second");
  const made = nodeOf("n", { name: "a", lastKey: "first", contentHash: EMPTY, size: 0 });
  const edited = { ...made, lastKey: null, revision: 2, head: "theirs", contentHash: "theirs" };
  world.context.observer.node(edited);
  world.context.answers.refused(second, refusal("changed", { node: made }));
  world.context.observer.retryArrivals("", 10);
  expect(rowOf(world, "n")).toMatchObject({ id: row.id });
  // What was here is version one: theirs is taken over, or both are kept if it had changed since.
  expect(rowOf(world, "n").base?.revision).toBe(2);
});

test("somebody edits what a given-up upload made: that is theirs, and shown", async () => {
  const { world, row, arrived } = await givenUp();
  world.context.answers.acknowledge(sendNext(world, row, "second"), secondNode, 3);
  world.context.observer.node({ ...arrived, lastKey: null, revision: 2, head: "theirs" });
  expect(namesIn(world, ROOT_INODE)).toEqual(["b", "a"]);
});

test("a given-up request is remembered from when it was given up, not from when it was made", async () => {
  const { world, row, arrived } = await givenUp();
  world.context.answers.acknowledge(sendNext(world, row, "second"), secondNode, 3);
  const long = sendNextTo(world, "long");
  await world.clock.advance(2 * SETTLE_MS);
  world.metadata.attempts.abandon(long.id, rowTime(world.clock.wallClock()));
  world.metadata.attempts.removeAbandonedBefore(rowTime(world.clock.wallClock() - SETTLE_MS));
  expect(world.metadata.attempts.ofKey("long")?.state).toBe("abandoned");
  // The other one can no longer arrive; a node with its key is taken for anybody's.
  expect(world.metadata.attempts.ofKey("first")).toBeUndefined();
  world.context.observer.node(arrived);
  expect(namesIn(world, ROOT_INODE)).toContain("a");
});

test("a given-up request is forgotten once the gateway was heard for as long as it may take, not before", async () => {
  const { world } = await givenUp();
  const forget = createForgetting(world.context);
  const hear = async (milliseconds: number) => {
    for (let heard = 0; heard < milliseconds; heard += 60_000) {
      await world.clock.advance(60_000);
      forget();
    }
  };
  await hear(60_000);
  await world.clock.advance(10 * SETTLE_MS);
  await hear(SETTLE_MS);
  expect(world.metadata.attempts.ofKey("first")).toBeDefined();
  await hear(60_000);
  expect(world.metadata.attempts.ofKey("first")).toBeUndefined();
});

function sendNextTo(world: BytesWorld, name: string): Attempt<Request> {
  return sendNext(world, make(world, ROOT_INODE, name), name);
}

test("a row nobody needs goes when nothing of it can arrive any more", async () => {
  const { world, row } = await givenUp();
  remove(world, ROOT_INODE, "b");
  expect(nextOf(world, row)).toEqual({ do: "wait", for: "answer" });
  expect(world.metadata.nodes.counts().dirty).toBe(1);
  await world.clock.advance(SETTLE_MS + 1);
  world.metadata.attempts.removeAbandonedBefore(rowTime(world.clock.wallClock() - SETTLE_MS));
  expect(nextOf(world, row)).toBeUndefined();
  expect(world.metadata.nodes.get(row.id)).toBeUndefined();
});

test("a given-up upload took the place, was removed there, and the next one made a node of its own", async () => {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  world.metadata.attempts.abandon(sendNext(world, row, "first").id, rowTime(0));
  const second = sendNext(world, row, "second");
  world.context.observer.node(nodeOf("older", { name: "a", lastKey: "first" }));
  expect(world.metadata.nodes.get(row.id)?.nodeId).toBe("older");
  world.context.observer.deletion("older", 3, 5);
  world.context.answers.acknowledge(second, { ...secondNode, name: "a" }, 6);
  expect(world.metadata.nodes.get(row.id)).toMatchObject({ nodeId: "newer", seen: null });
  expect(namesIn(world, ROOT_INODE)).toEqual(["a"]);
});

test("a node that came in as a stranger and is in use: its request is dropped, late answers are only news", async () => {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  const birth = sendNext(world, row, "birth");
  // Made by the birth, moved by somebody before the answer came.
  world.context.observer.node(nodeOf("n", { name: "z", revision: 2, contentHash: EMPTY, size: 0 }));
  const stranger = rowOf(world, "n");
  const entry = world.metadata.entries.find(ROOT_INODE, "z");
  world.metadata.inodes.update(entry?.inode ?? inodeId(0), { attributes: { mode: 0o600 } });
  world.metadata.nodes.update(stranger.id, { dirtySince: rowTime(1), due: rowTime(1) });
  const change = sendNext(world, stranger, "change");
  let isStopped = false;
  world.context.sending.set(change.id, () => {
    isStopped = true;
  });
  world.context.answers.acknowledge(
    birth,
    nodeOf("n", { name: "a", lastKey: "birth", contentHash: EMPTY, size: 0 }),
    3,
  );
  expect(isStopped).toBe(true);
  expect(world.metadata.attempts.openOf(stranger.id)).toBeUndefined();
  const later = nodeOf("n", { name: "z", revision: 3, contentHash: EMPTY, size: 0, attributes: { mode: 0o600 } });
  world.context.answers.acknowledge(change, later, 4);
  expect(rowOf(world, "n").id).toBe(row.id);
  // A drain that was waiting for it goes on doing so.
  expect(world.metadata.nodes.get(stranger.id)).toMatchObject({ nodeId: null, dirtySince: 1 });
  expect(world.metadata.nodes.get(stranger.id)?.entry).not.toBeNull();
});

/** A file whose birth is under way; the node it made has been changed by somebody, and comes in as a stranger's. */
async function changedBirth(name: string) {
  const world = await makeWorld();
  const row = make(world, ROOT_INODE, "a");
  const birth = sendNext(world, row, "birth");
  const told = nodeOf("n", { name: "a", lastKey: "birth", contentHash: EMPTY, size: 0 });
  const changed = nodeOf("n", { name, revision: 2, contentHash: EMPTY, size: 0, attributes: { mode: 0o600 } });
  const removeIt = () => remove(world, ROOT_INODE, "a");
  const hearOfIt = () => world.context.observer.node(changed);
  return { world, row, removeIt, hearOfIt, answer: () => world.context.answers.acknowledge(birth, told, 3) };
}

test.each(["a", "z"])(
  "removed before its birth is answered, and then changed by somebody to %s: it goes",
  async (name) => {
    const { world, row, removeIt, hearOfIt, answer } = await changedBirth(name);
    removeIt();
    await world.clock.advance(1);
    hearOfIt();
    answer();
    expect(namesIn(world, ROOT_INODE)).toEqual([]);
    expect(nextOf(world, row)).toMatchObject({ do: "send", request: { do: "delete", nodeId: "n" } });
  },
);

test.each(["seen beside it", "changed here since"])(
  "removed before its birth is answered, the other name %s: it stays",
  async (how) => {
    const { world, removeIt, hearOfIt, answer } = await changedBirth("z");
    if (how === "seen beside it") hearOfIt();
    await world.clock.advance(1);
    removeIt();
    await world.clock.advance(1);
    if (how === "changed here since") {
      hearOfIt();
      world.metadata.nodes.update(rowOf(world, "n").id, {
        dirtySince: rowTime(world.clock.wallClock()),
        due: rowTime(world.clock.wallClock()),
      });
    }
    answer();
    expect(namesIn(world, ROOT_INODE)).toEqual(["z"]);
    expect(rowOf(world, "n").entry).not.toBeNull();
  },
);

/** The same, and it has become one of the names of a linked file. A program here has written to it by that name. */
async function writtenName(names: readonly string[]) {
  const world = await makeWorld();
  const { metadata } = world;
  const link = (hash: string) => ({ link: { group: "g", hash }, mtime: "1767225600.000000000" });
  const birth = sendNext(world, make(world, ROOT_INODE, "a"), "birth");
  for (const id of names) {
    world.context.observer.node(
      nodeOf(id, { revision: 2, head: "theirs", contentHash: "1st", attributes: link("1st") }),
    );
  }
  const inode = metadata.entries.find(ROOT_INODE, "n")?.inode ?? inodeId(0);
  metadata.inodes.update(inode, { content: "dirty", hash: EMPTY, size: 0, changes: 1 });
  metadata.transaction(() => world.context.queue.setInodeDirty(inode));
  const rows = metadata.entries.ofInode(inode).map(({ id }) => metadata.nodes.ofEntry(id));
  world.context.answers.acknowledge(
    birth,
    nodeOf("n", { name: "a", lastKey: "birth", contentHash: EMPTY, size: 0 }),
    3,
  );
  return { world, inode, link, ids: rows.map((row) => row?.id ?? nodeRowId(0)) };
}

test("a name of a linked file that was written to and loses its node: what was written is not taken for what is behind", async () => {
  const { world, inode, link, ids } = await writtenName(["n"]);
  const { metadata } = world;
  const row = metadata.nodes.get(ids[0] ?? nodeRowId(0));
  if (row === undefined) throw new Error("no row");
  const attempt = sendNext(world, row, "again");
  const createdAt = "2026-01-01T02:00:00.000Z";
  const { attributes = {} } = "attributes" in attempt.request ? attempt.request : {};
  const sent = { name: "n", contentHash: EMPTY, size: 0, createdAt, modifiedAt: createdAt };
  world.context.answers.acknowledge(attempt, nodeOf("m", { ...sent, attributes: attributes as Attributes }), 4);
  // Another name of the linked file, which somebody wrote to before what was written here was sent.
  const theirs = { head: "2nd", contentHash: "2nd", attributes: link("2nd"), modifiedAt: "2026-01-01T01:00:00.000Z" };
  world.context.observer.node(nodeOf("other", theirs));
  expect(metadata.inodes.get(inode)?.hash).toBe(EMPTY);
  expect(metadata.entries.find(ROOT_INODE, "n")?.inode).toBe(inode);
});

test("the same while another name is here: both stay names of one file", async () => {
  const { world, inode, ids } = await writtenName(["n", "y"]);
  expect(world.metadata.inodes.get(inode)?.linkGroup).toBe("g");
  expect(ids.map((id) => world.metadata.nodes.get(id)?.nodeId)).toEqual([null, "y"]);
});

test("names of a hard-linked file that come in while it is being updated are one file, which shows the newest", async () => {
  const world = await makeWorld();
  const link = (hash: string, saves: string[]) => ({ link: { group: "g", hash, saves } });
  const latest = link("new", ["new.2", "old.1"]);
  world.context.observer.node(nodeOf("a", { contentHash: "new", attributes: latest }));
  world.context.observer.node(nodeOf("b", { contentHash: "old", attributes: link("old", ["old.1"]) }));
  const inodeOf = (name: string) => world.metadata.entries.find(ROOT_INODE, name)?.inode;
  expect(inodeOf("b")).toBe(inodeOf("a"));
  expect(world.metadata.inodes.get(inodeOf("b") ?? inodeId(0))?.hash).toBe("new");
  expect(nextOf(world, rowOf(world, "b"))).toBeUndefined();
  world.context.observer.node(nodeOf("b", { contentHash: "new", head: "h2", revision: 2, attributes: latest }));
  expect(inodeOf("b")).toBe(inodeOf("a"));
  expect(nextOf(world, rowOf(world, "b"))).toBeUndefined();
});

test("a move that was given up is no birth: its row goes with the node", async () => {
  const world = await makeWorld();
  world.context.observer.node(nodeOf("n"));
  const row = rowOf(world, "n");
  rename(world, row, ROOT_INODE, "moved");
  world.metadata.attempts.abandon(sendNext(world, row, "move").id, rowTime(world.clock.wallClock()));
  rename(world, row, ROOT_INODE, "n");
  world.context.observer.deletion("n", 2, 5);
  expect(world.metadata.nodes.get(row.id)).toBeUndefined();
});

test("while an id is not to be found, what is wanted of it is asked for ever more seldom", async () => {
  const world = await makeWorld();
  world.context.observer.node(nodeOf("n"));
  const row = rowOf(world, "n");
  remove(world, ROOT_INODE, "n");
  const waits: number[] = [];
  for (let count = 0; count < 12; count += 1) {
    const now = rowTime(world.clock.wallClock());
    world.context.answers.refused(sendNext(world, row, `delete ${count}`), new RemoteError("notFound", "not there"));
    const [reread] = world.metadata.rereads.due(now, 1);
    if (reread === undefined) throw new Error("its id is not asked for");
    world.metadata.rereads.missing(reread, world.metadata.rereads.missingSince("n") ?? now, now);
    const wait = minus(world.metadata.nodes.get(row.id)?.due ?? now, now);
    waits.push(wait / 1000);
    await world.clock.advance(wait);
  }
  expect(waits).toEqual([1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
});

test("a 429 that names no time to wait, or none that is left, is not answered by the next request at once", async () => {
  const world = await makeWorld();
  const attempt = sendNext(world, make(world, ROOT_INODE, "a"), "upload");
  const after = (retryAfterMs: number) =>
    world.context.answers.refused(attempt, new RemoteError("throttled", "too many requests", { retryAfterMs }));
  expect([after(0), after(30_000), after(3_600_000)]).toEqual([
    { retry: true, afterMs: 1_000 },
    { retry: true, afterMs: 30_000 },
    // Nobody is believed to be busy for an hour.
    { retry: true, afterMs: 300_000 },
  ]);
});

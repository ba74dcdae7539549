/** The journal as a stream: waiting for what comes next leaves nothing behind; what comes too late is heard of, too. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import { createHearing, createJournalStream } from "../../../src/engine/remote/index.ts";
import { unlessAborted } from "../../../src/engine/remote/journal-stream.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

test("each round takes its listener off again; an abort ends the waiting, before or after", async () => {
  const connection = new AbortController();
  const { signal } = connection;
  const listeners = () => getEventListeners(signal, "abort").length;
  for (let round = 0; round < 20; round += 1) {
    expect(await unlessAborted(Promise.resolve(round), signal)).toBe(round);
    await expect(unlessAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  }
  expect(listeners()).toBe(0);
  const never = new Promise<number>(() => {});
  const waiting = unlessAborted(never, signal);
  connection.abort();
  expect(await waiting).toBeUndefined();
  expect(await unlessAborted(never, signal)).toBeUndefined();
});

const folderOf = (id: string, change: Partial<Node> = {}) => nodeOf(id, { kind: "folder", path: `/${id}`, ...change });

function entryOf(id: string, position: number, kind = "updated"): JournalEntry {
  return { position, time: "2026-01-01T00:00:00.000Z", kind, nodeId: id, revision: 2, parentId: "root", name: id };
}

test.each([
  { what: "together", isApart: false },
  { what: "when the later one was applied", isApart: true },
])(
  "an entry that comes after a later one is applied, $what; one that was told before is passed over",
  async ({ isApart }) => {
    const world = await createBytesWorld();
    const { metadata } = world.context;
    const [root] = metadata.entries.ofInode(ROOT_INODE);
    metadata.nodes.create(born(root?.id ?? null, folderOf("root", { parentId: null, name: "" })));
    metadata.settings.set("cursor", "4");
    const read: string[] = [];
    let isHeard = () => {};
    const heardLater = new Promise<void>((resolve) => {
      isHeard = resolve;
    });
    const context: Parts = withParts(world.context, {
      client: {
        ...world.context.client,
        readJournal: async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 500, asOf: 0 }),
        async getNode(id) {
          read.push(id);
          return folderOf(id, { name: `${id} moved`, revision: 2 });
        },
        async *streamJournal() {
          yield entryOf("c", 3);
          yield entryOf("b", 7);
          if (isApart) await heardLater;
          yield entryOf("a", 6);
          yield entryOf("d", 5, "deleted");
          yield entryOf("b", 7);
          await new Promise(() => {});
        },
      },
    });
    for (const id of ["a", "b", "c", "d"]) context.observer.node(folderOf(id));
    const stream = createJournalStream(context);
    const hear = createHearing(context, stream);
    const { signal } = new AbortController();
    stream.start();
    const heard = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      await hear(signal);
      return metadata.entries
        .list(ROOT_INODE, 15, 10)
        .map(({ name }) => name)
        .sort();
    };
    if (isApart) expect(await heard()).toEqual(["a", "b moved", "c", "d"]);
    isHeard();
    expect(await heard()).toEqual(["a moved", "b moved", "c"]);
    const [cursor, end] = [metadata.settings.getNumber("cursor"), context.timeline.last()?.position];
    expect({ read: read.sort(), late: stream.late, cursor, end }).toEqual({
      read: ["a", "b"],
      late: [],
      cursor: 7,
      end: 7,
    });
    await stream.stop();
  },
);

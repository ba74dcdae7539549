/** What a listing of a folder makes of it, and what it costs those who wait beside it. */
import { expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import type { Node } from "../../src/contract/resources.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { born } from "../../src/metadata/nodes.ts";
import type { Context } from "../../src/vfs/context.ts";
import { completeFolder } from "../../src/vfs/listing.ts";
import { createBytesWorld } from "../support/bytes-world.ts";
import { recordedRows } from "../support/recorded-rows.ts";
import { nodeOf } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const ROOT = nodeOf("root", { kind: "folder", parentId: null, name: "" });

/** `client` answers instead of the scripted one. `onRead`: rows that one statement gave. */
async function begin(client: Partial<Client>, onRead: (rows: number) => void = () => {}) {
  const world = await createBytesWorld(
    {},
    { rows: (database) => recordedRows(database, (sql, rows) => sql.trimStart().startsWith("SELECT") && onRead(rows)) },
  );
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, ROOT));
  const context: Context = { ...world.context, client: { ...world.context.client, ...client } };
  return { context, metadata, clock: world.clock };
}

/** Runs what waits for nothing but its turn. */
async function finished<T>(clock: { advance(milliseconds: number): Promise<void> }, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  while (!isOver) await clock.advance(1);
  return over;
}

function pageOf(nodes: readonly Node[], after: string | undefined, size: number) {
  const from = Number(after ?? 0);
  const next = from + size < nodes.length ? String(from + size) : null;
  return { items: nodes.slice(from, from + size), totalCount: nodes.length, pageNo: 1, pageSize: size, asOf: 5, next };
}

const noNews: Partial<Client> = {
  readJournal: async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 500, asOf: 5 }),
};

test("a large folder is compared with its list in parts: others have their turn in between", async () => {
  const nodes = Array.from({ length: 4_000 }, (_, index) => nodeOf(`n${index}`));
  let most = 0;
  const { context, metadata, clock } = await begin(
    { ...noNews, listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000) },
    (rows) => {
      most = Math.max(most, rows);
    },
  );
  await finished(clock, completeFolder(context, ROOT_INODE, SIGNAL));
  expect(metadata.inodes.get(ROOT_INODE)?.listed).toBe(5);
  expect(most).toBeLessThanOrEqual(1_000);
});

test("whatever the list of a large folder does not show is asked for by its id", async () => {
  let nodes = Array.from({ length: 2_500 }, (_, index) => nodeOf(`n${index}`));
  const asked: string[] = [];
  const { context, metadata, clock } = await begin({
    ...noNews,
    listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000),
    async getNode(id) {
      asked.push(id);
      return nodeOf(id, { revision: 2, name: `${id} moved` });
    },
  });
  await finished(clock, completeFolder(context, ROOT_INODE, SIGNAL));
  metadata.inodes.update(ROOT_INODE, { listed: null });
  const gone = ["n0", "n1300", "n2499"];
  nodes = nodes.filter(({ id }) => !gone.includes(id));
  await finished(clock, completeFolder(context, ROOT_INODE, SIGNAL));
  expect(asked.sort()).toEqual(gone);
  expect(metadata.entries.find(ROOT_INODE, "n1300 moved")).toBeDefined();
});

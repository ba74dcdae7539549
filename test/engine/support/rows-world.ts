/** Node rows of a world without a gateway: programs make, rename and remove names, and requests are under way. */
import type { Client } from "../../../src/client/client.ts";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import type { Request } from "../../../src/engine/core/index.ts";
import { createHearing, createJournalStream } from "../../../src/engine/remote/index.ts";
import type { Attempt } from "../../../src/metadata/attempts.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born, type NodeRow } from "../../../src/metadata/nodes.ts";
import { NEW_INODE } from "../../support/new-inode.ts";
import { type BytesWorld, createBytesWorld, type Parts, withParts } from "./bytes-world.ts";

export const TIME = "2026-01-01T00:00:00.000Z";
export const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export function nodeOf(id: string, change: Partial<Node> = {}): Node {
  const kind = change.kind ?? "file";
  const content = kind === "file" ? { size: 3, head: `head of ${id}`, contentHash: "three" } : {};
  return {
    id,
    kind,
    path: "",
    name: id,
    parentId: "root",
    mimeType: null,
    size: 0,
    head: null,
    contentHash: null,
    lastKey: null,
    revision: 1,
    createdAt: TIME,
    modifiedAt: TIME,
    attributes: {},
    ...content,
    ...change,
  };
}

export async function makeWorld(): Promise<BytesWorld & { readonly metadata: Parts["metadata"] }> {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, nodeOf("root", { kind: "folder", parentId: null, name: "" })));
  return { ...world, metadata };
}

/** A program makes an empty file; its content is what an upload of nothing has. */
export function make(world: BytesWorld, folder: InodeId, name: string): NodeRow {
  const { context } = world;
  const inode = context.metadata.inodes.create({ ...NEW_INODE, kind: "file", hash: EMPTY, content: "dirty" });
  const entry = context.metadata.transaction(() => context.names.add(folder, name, inode.id, "file"));
  const row = context.metadata.nodes.ofEntry(entry.id);
  if (row === undefined) throw new Error("no row");
  return row;
}

/** The request the plan asks for, under way. */
export function sendNext({ context }: BytesWorld, row: NodeRow, key: string): Attempt<Request> {
  const step = context.planner.advance(row.id)?.step;
  if (step?.do !== "send") throw new Error(`nothing to send: ${JSON.stringify(step)}`);
  const now = context.runtime.now();
  return context.metadata.attempts.create({
    node: row.id,
    key,
    request: step.request,
    snapshot: null,
    nextAt: now,
    createdAt: now,
  });
}

export function inodeOfFolder({ context }: BytesWorld, nodeId: string): InodeId {
  const row = context.metadata.nodes.ofNodeId(nodeId);
  const entry = row?.entry == null ? undefined : context.metadata.entries.get(row.entry);
  if (entry === undefined) throw new Error(`folder ${nodeId} is not shown`);
  return entry.inode;
}

export function namesIn({ context }: BytesWorld, folder: InodeId): string[] {
  return context.metadata.entries
    .list(folder, 15, 100)
    .filter((entry) => entry.inode !== folder)
    .map((entry) => entry.name);
}

export function remove({ context }: BytesWorld, folder: InodeId, name: string): void {
  const entry = context.metadata.entries.find(folder, name);
  if (entry === undefined) throw new Error(`no ${name}`);
  context.metadata.transaction(() => context.names.remove(entry));
}

export function rename({ context }: BytesWorld, row: NodeRow, folder: InodeId, name: string): void {
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  if (entry === undefined) throw new Error("no entry");
  context.metadata.transaction(() => context.names.move(entry, folder, name));
}

export function rowOf({ context }: BytesWorld, nodeId: string): NodeRow {
  const row = context.metadata.nodes.ofNodeId(nodeId);
  if (row === undefined) throw new Error(`no row of ${nodeId}`);
  return row;
}

/** The journal is these entries, and the mount hears of those that are new to it. */
export async function hearJournal(context: Parts, entries: readonly JournalEntry[]): Promise<void> {
  const readJournal: Client["readJournal"] = async (_, after) => ({
    items: entries.filter(({ position }) => position > after),
    totalCount: 0,
    pageNo: 1,
    pageSize: 500,
    asOf: 0,
  });
  await hearOnce(withParts(context, { client: { ...context.client, readJournal } }));
}

/** As a mount does in turn: lists what is to be listed, and reads the journal. */
export async function hearOnce(context: Parts): Promise<void> {
  await createHearing(context, createJournalStream(context))(new AbortController().signal);
}

/**
 * The resources of the gateway as schemas: the single source for the server's validation, the
 * client's types and checks, and the OpenAPI document.
 */
import { z } from "zod";
import { attributes, attributesPatch } from "./attributes.ts";

const id = z.string().min(1).max(128);
const count = z.number().int().min(0);
/** A place in the gateway's journal. Every change has one; a larger one is later. */
export const position = count;
/** ISO 8601 in UTC with milliseconds. */
const moment = z.iso.datetime({ precision: 3 });
/** Lower-case hex SHA-256 of the content. */
export const contentHash = z.string().regex(/^[0-9a-f]{64}$/, "expected 64 lower-case hex digits");
export const idempotencyKey = z.string().min(1).max(255);
export const branch = z.string().min(1).max(255);

export const workspace = z
  .object({ id, name: z.string(), rootId: id, quota: count.optional(), used: count.optional() })
  .meta({ id: "Workspace" });
export type Workspace = z.infer<typeof workspace>;

export const node = z
  .object({
    id,
    kind: z.enum(["file", "folder"]),
    path: z.string(),
    name: z.string(),
    /** Null for a root. */
    parentId: id.nullable(),
    mimeType: z.string().nullable(),
    size: count,
    /** Id of the latest version; null for a folder. */
    head: id.nullable(),
    contentHash: contentHash.nullable(),
    /** The idempotency key of the request that made the latest change, where it had one. */
    lastKey: z.string().nullable(),
    /** Goes up by one at every change of the node itself. */
    revision: count,
    createdAt: moment,
    /** When the content was written: the head's createdAt; a folder's own createdAt. Moves and attributes leave it. */
    modifiedAt: moment,
    attributes,
  })
  .meta({ id: "Node" });
export type Node = z.infer<typeof node>;

/** What a write answers: the node after it, and the change's place in the journal. */
export const writtenNode = node.extend({ position }).meta({ id: "WrittenNode" });
export type WrittenNode = z.infer<typeof writtenNode>;

export const version = z
  .object({
    id,
    nodeId: id,
    number: z.number().int().min(1),
    branch,
    size: count,
    contentHash,
    mimeType: z.string(),
    createdAt: moment,
  })
  .meta({ id: "Version" });
export type Version = z.infer<typeof version>;

export const journalEntry = z
  .object({
    position,
    time: moment,
    /** created, updated (content), moved, changed (attributes), deleted, restored; others come from callers. */
    kind: z.string().min(1).max(64),
    nodeId: id,
    revision: count,
    parentId: id.nullable(),
    name: z.string(),
    head: id.nullish(),
    contentHash: contentHash.nullish(),
    key: z.string().nullish(),
  })
  .meta({ id: "JournalEntry" });
export type JournalEntry = z.infer<typeof journalEntry>;

/** A page of a list. `asOf`: the journal position the list is complete up to. `next`: where `after=` goes on. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    totalCount: count,
    pageNo: z.number().int().min(1),
    pageSize: z.number().int().min(1),
    asOf: position,
    next: z.string().nullish(),
  });
}

export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 1000;

export const nodePage = page(node).meta({ id: "NodePage" });
export type NodePage = z.infer<typeof nodePage>;
export const workspacePage = page(workspace).meta({ id: "WorkspacePage" });
export type WorkspacePage = z.infer<typeof workspacePage>;
export const versionPage = page(version).meta({ id: "VersionPage" });
export type VersionPage = z.infer<typeof versionPage>;
export const journalPage = page(journalEntry).meta({ id: "JournalPage" });
export type JournalPage = z.infer<typeof journalPage>;

/** The `metadata` part of an upload. */
export const uploadMetadata = z
  .strictObject({
    branch: branch.optional(),
    idempotencyKey: idempotencyKey.nullish(),
    contentHash: contentHash.nullish(),
    attributes: attributes.optional(),
  })
  .meta({ id: "UploadMetadata" });
export type UploadMetadata = z.infer<typeof uploadMetadata>;

/** New content by reference: bytes of a version the gateway already has. */
export const contentReference = z
  .strictObject({
    copyOf: id,
    version: id.optional(),
    attributes: attributes.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "ContentReference" });
export type ContentReference = z.infer<typeof contentReference>;

/** POST /v1/nodes: a folder ({kind}), or a copy ({copyOf}). */
export const newNode = z
  .strictObject({
    parentId: id,
    name: z.string(),
    kind: z.literal("folder").optional(),
    copyOf: id.optional(),
    version: id.optional(),
    attributes: attributes.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewNode" });
export type NewNode = z.infer<typeof newNode>;

export const nodePatch = z
  .strictObject({
    parentId: id.optional(),
    name: z.string().optional(),
    attributes: attributesPatch.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NodePatch" });
export type NodePatch = z.infer<typeof nodePatch>;

export const exchange = z.strictObject({ with: id, idempotencyKey: idempotencyKey.nullish() }).meta({ id: "Exchange" });
export type Exchange = z.infer<typeof exchange>;

/** POST /v1/nodes/{id}/restore; the body may be left out. */
export const restoration = z.strictObject({ idempotencyKey: idempotencyKey.nullish() }).meta({ id: "Restoration" });
export type Restoration = z.infer<typeof restoration>;

/** POST /v1/journal. Naming an unprovisioned folder provisions it (gateway-spec §6). */
export const newJournalEntry = z
  .strictObject({ nodeId: id, kind: z.string().min(1).max(64), idempotencyKey: idempotencyKey.nullish() })
  .meta({ id: "NewJournalEntry" });
export type NewJournalEntry = z.infer<typeof newJournalEntry>;

/** RFC 9457. `node`: the one that stands in the way (409, 412). */
export const problem = z
  .object({
    type: z.string().optional(),
    status: z.number().int(),
    title: z.string(),
    detail: z.string().optional(),
    field: z.string().optional(),
    scope: z.string().optional(),
    node: node.nullish(),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof problem>;

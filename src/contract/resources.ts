/**
 * The resources of the gateway as schemas. They are the single source of the server's validation, the client's types
 * and checks, and the OpenAPI document.
 */
import { z } from "zod";
import { attributes, attributesPatch } from "./attributes.ts";
import { CHANGE_KINDS } from "./journal-kinds.ts";
import { NAME_BYTES_MAX, nameProblem } from "./names.ts";
import { ROLES } from "./roles.ts";

export const id = z.string().min(1).max(128);
export const count = z.number().int().min(0);
export const position = count.describe("A place in the gateway's journal. Every change has one; a larger one is later");
/** The position of a change. Undefined: it was not told. 0 stands for that, because it is before the first change. */
export const knownPosition = (told: number): number | undefined => (told === 0 ? undefined : told);
/** ISO 8601 in UTC with milliseconds. */
export const moment = z.iso.datetime({ precision: 3 });
export const contentHash = z
  .string()
  .regex(/^[0-9a-f]{64}$/, "expected 64 lower-case hex digits")
  .describe("SHA-256 of the content, 64 lower-case hex digits");
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .describe(
    "Chosen by the caller, unique in the workspace for at least 24 hours: the same request sent again with it gets the first answer, and nothing is done twice",
  );
export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 1000;
export const branch = z.string().min(1).max(255);
export const nodeName = z
  .string()
  .superRefine((name, { addIssue }) => {
    const problem = nameProblem(name);
    if (problem !== undefined) addIssue({ code: "custom", message: `${JSON.stringify(name)} ${problem}` });
  })
  .meta({
    minLength: 1,
    maxLength: NAME_BYTES_MAX,
    description: `A name in a folder: Unicode, kept as it is (NFC and NFD are two names), at most ${NAME_BYTES_MAX} bytes of UTF-8; not ".", "..", and without "/" and NUL`,
  });

const role = z
  .enum(ROLES)
  .describe("A viewer reads; an editor also writes and runs; an owner also installs, makes keys, triggers and grants");

export const workspace = z
  .object({
    id,
    name: z.string().describe("Unique in the gateway"),
    rootId: id.describe("The node of its topmost folder"),
    quota: count.optional().describe("The limit of `used`, in bytes; absent: no limit"),
    used: count
      .optional()
      .describe(
        "Bytes of the existing files: the head of each, and its heads on other branches. Earlier versions and deleted files do not count; every copy counts, shared bytes or not",
      ),
    role: role.optional().describe("The caller's role in it; a token without an account counts as an owner"),
  })
  .meta({ id: "Workspace" });
export type Workspace = z.infer<typeof workspace>;

export const newWorkspace = z
  .strictObject({ name: nodeName.describe("Unique in the gateway, and not in the form of an id") })
  .meta({ id: "NewWorkspace", description: "The name of a new workspace; the caller's account becomes its owner" });
export type NewWorkspace = z.infer<typeof newWorkspace>;

/** The author of a change. */
export const author = z
  .object({
    account: z.string().nullable().describe("Name of the account; null: the token had none"),
    mount: z.string().optional().describe("Name of the mount that it was made in"),
    execution: id.optional().describe("The execution that made it"),
  })
  .meta({ id: "Author", description: "The author of a change" });
export type Author = z.infer<typeof author>;

export const node = z
  .object({
    id,
    kind: z.enum(["file", "folder"]),
    path: z.string().describe('Its path from the root; begins with "/", the root\'s is "/"'),
    name: z.string(),
    parentId: id.nullable().describe("The folder it is in; null for a root"),
    mimeType: z
      .string()
      .nullable()
      .describe("As the uploader gave it, else detected from the content; null for a folder"),
    size: count.describe("Bytes of content; 0 for a folder"),
    head: id.nullable().describe("Id of the latest version; null for a folder"),
    contentHash: contentHash.nullable(),
    lastKey: z
      .string()
      .nullable()
      .describe("The idempotency key of the request that made the latest change; null if it had none"),
    revision: count.describe("Goes up by one at every change of the node itself"),
    createdAt: moment,
    modifiedAt: moment.describe(
      "The time of the content: the head's createdAt, for a folder its own createdAt. Moves and attributes do not change it",
    ),
    attributes,
  })
  .meta({ id: "Node", description: "A file or a folder" });
export type Node = z.infer<typeof node>;

/** An item of a list of nodes, which may be deleted ones. */
export const listedNode = node
  .extend({
    deletedAt: moment.optional().describe("With deleted=true: the time of the deletion"),
    deletedBy: author.nullish().describe("With deleted=true: the author of the deletion; null: it is not known"),
  })
  .meta({ id: "ListedNode", description: "A node in a list; a deleted one with the time and author of the deletion" });
export type ListedNode = z.infer<typeof listedNode>;

/** The answer of a write: the node afterwards, and the position of the change in the journal. */
export const writtenNode = node
  .extend({ position })
  .meta({ id: "WrittenNode", description: "The node after a change, and the position of the change in the journal" });
export type WrittenNode = z.infer<typeof writtenNode>;

export const version = z
  .object({
    id,
    nodeId: id,
    number: z.number().int().min(1).describe("1 for the first version of the node"),
    branch,
    size: count,
    contentHash: contentHash.nullable().describe("null: the gateway gives no hashes"),
    mimeType: z.string(),
    createdAt: moment,
    by: author.nullish().describe("null: it is not known"),
    attributes: attributes
      .nullish()
      .describe(
        "The file's attributes with this version (mode, mtime, ...), without `link`, which belongs to the file and not to a version",
      ),
  })
  .meta({ id: "Version", description: "The content of a file as it was written once; it never changes" });
export type Version = z.infer<typeof version>;

export type { ChangeKind } from "./journal-kinds.ts";

/** The state of a node before a change. */
export const formerState = z
  .object({
    parentId: id.nullable(),
    name: z.string(),
    head: id.nullable(),
    attributes,
    isDeleted: z.boolean(),
  })
  .meta({ id: "FormerState", description: "The state of a node before a change" });
export type FormerState = z.infer<typeof formerState>;

export const journalEntry = z
  .object({
    position,
    time: moment,
    kind: z
      .string()
      .min(1)
      .max(64)
      .describe(
        "created, updated (content), moved, changed (attributes), deleted, restored; execution.STATE; others come from callers",
      ),
    nodeId: id,
    revision: count,
    parentId: id.nullable(),
    name: z.string(),
    /** The head of main, and the hash of its content. */
    head: id.nullish(),
    contentHash: contentHash.nullish(),
    key: z.string().nullish(),
    /** The branch whose head the change moved, and its new head. Null when the content stayed as it was. */
    branch: branch.nullish(),
    branchHead: id.nullish(),
    by: author.nullish().describe("null: it is not known"),
    before: formerState
      .nullish()
      .describe(
        "With before=true: the node before the change; null if the node was new, or the entry is not about a change",
      ),
  })
  .meta({ id: "JournalEntry" });
export type JournalEntry = z.infer<typeof journalEntry>;

/** The answer of a write for a token that may not read the node: it tells only that the write is done. */
export const receipt = z.object({ id, revision: count, position });
export const journalReceipt = z.object({ nodeId: id, kind: z.string(), time: moment, position });
/** Accepts both receipts, and the full answers, which contain the same fields. */
export const anyReceipt = z.union([receipt, journalReceipt]);

/**
 * In the OpenAPI document this is one type with optional fields. Clients generated from a union of two types could show
 * the fields of neither.
 */
export const toldNode = writtenNode.partial().required({ id: true, revision: true, position: true }).meta({
  id: "ToldNode",
  description:
    "The node after a change, and the position of the change in the journal. A token without node.file.read gets only id, revision and position",
});
export const toldEntry = journalEntry
  .partial()
  .required({ nodeId: true, kind: true, time: true, position: true })
  .meta({
    id: "ToldEntry",
    description: "A JournalEntry. A token without node.file.read gets only nodeId, kind, time and position",
  });

/** A page of a list. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    totalCount: count.describe("The number of items of all pages together"),
    pageNo: z.number().int().min(1),
    pageSize: z.number().int().min(1).describe("The largest number of items of a page"),
    asOf: position.describe("The list shows all changes up to this position of the journal"),
    next: z.string().nullish().describe("The value of after= for the next page; null on the last"),
  });
}

export const nodePage = page(listedNode).meta({ id: "NodePage" });
export type NodePage = z.infer<typeof nodePage>;

/** Lines of a stream of nodes: `nodesBegin` precedes children of a folder, all or some; `nodesEnd` is the last line. */
export const nodesBegin = z.object({ folder: z.string().min(1), asOf: count, after: z.string() });
export const nodesEnd = z.object({ complete: z.literal(true), asOf: count, count });

export const workspacePage = page(workspace).meta({ id: "WorkspacePage" });
export type WorkspacePage = z.infer<typeof workspacePage>;
export const versionPage = page(version)
  .extend({
    thinned: count
      .optional()
      .describe(
        "The number of versions that the workspace's retention policy has thinned, if any: their numbers are missing in the list, their content is a 410",
      ),
  })
  .meta({ id: "VersionPage" });
export type VersionPage = z.infer<typeof versionPage>;
export const journalPage = page(journalEntry).meta({ id: "JournalPage" });
export type JournalPage = z.infer<typeof journalPage>;

/** The `metadata` part of an upload. */
export const uploadMetadata = z
  .strictObject({
    branch: branch.optional().describe('The branch whose head the content becomes; "main" when absent'),
    idempotencyKey: idempotencyKey.nullish(),
    contentHash: contentHash.nullish().describe("Checked: content with another SHA-256 is refused and not kept"),
    attributes: attributes.optional(),
  })
  .meta({ id: "UploadMetadata", description: "The metadata of an uploaded content" });
export type UploadMetadata = z.infer<typeof uploadMetadata>;

/** New content by reference: the bytes of a version that the gateway already has. */
export const contentReference = z
  .strictObject({
    copyOf: id.describe("The node whose content is taken; it may be a deleted one"),
    version: id.optional().describe("Id of the version; its head when absent, on `branch` if that is given"),
    branch: branch.optional().describe('The branch whose head the content becomes; "main" when absent'),
    attributes: attributes.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({
    id: "ContentReference",
    description: "New content by reference: the bytes of a version that the gateway has",
  });
export type ContentReference = z.infer<typeof contentReference>;

/** The largest number of nodes in one copy. */
export const COPY_NODES_MAX = 10_000;

/** POST /v1/nodes: a folder ({kind}), or a copy ({copyOf}). */
export const newNode = z
  .strictObject({
    parentId: id.describe("The folder it is made in"),
    name: nodeName,
    kind: z.literal("folder").optional().describe("For a new folder"),
    copyOf: id
      .optional()
      .describe(
        `For a copy: the node whose content is taken; a folder with all below it, ${COPY_NODES_MAX} nodes at most, more is 413. Needs the scope node.file.read, too`,
      ),
    version: id.optional().describe("Of a copy: id of the version; the head of main when absent"),
    attributes: attributes.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewNode", description: "A folder (kind) or a copy of a file (copyOf): exactly one of the two" });
export type NewNode = z.infer<typeof newNode>;

export const nodePatch = z
  .strictObject({
    parentId: id.optional(),
    name: nodeName.optional(),
    attributes: attributesPatch.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NodePatch", description: "The changes of a node: its folder, its name, its attributes" });
export type NodePatch = z.infer<typeof nodePatch>;

export const exchange = z
  .strictObject({
    with: id.describe("The other node"),
    withRevision: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe("The revision that the other node must have, like `If-Match` for this one"),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "Exchange", description: "The node to exchange places with" });
export type Exchange = z.infer<typeof exchange>;

/** POST /v1/nodes/{id}/restore. The body may be left out. */
export const restoration = z
  .strictObject({
    parentId: id.optional().describe("The folder it comes back to; the one it was deleted from when absent"),
    name: nodeName.optional().describe("The name to restore it under; the one it had when absent"),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "Restoration", description: "The place of a restored node; may be left out" });
export type Restoration = z.infer<typeof restoration>;

/** POST /v1/nodes/{id}/restore-tree. */
export const treeRestoration = z
  .strictObject({
    at: z.iso
      .datetime({ offset: true })
      .meta({ description: "The moment whose state comes back", examples: ["2026-01-31T12:00:00Z"] }),
    exact: z
      .boolean()
      .optional()
      .describe("Whether nodes that did not exist then are deleted; false when absent: newer nodes stay"),
    plan: z
      .boolean()
      .optional()
      .describe("Whether to change nothing, and answer the actions that would be taken; false when absent"),
    after: z.string().optional().describe("The `next` of the answer before; absent or empty in the first request"),
    pageSize: z
      .number()
      .int()
      .min(1)
      .max(PAGE_SIZE_MAX)
      .optional()
      .describe("The number of items after which an answer ends; the items of one node come together"),
    idempotencyKey: idempotencyKey
      .nullish()
      .describe("The `key` of the changes' journal entries: the same for all requests of a restoration"),
  })
  .meta({ id: "TreeRestoration", description: "The moment to which a node goes back, with all below it" });
export type TreeRestoration = z.infer<typeof treeRestoration>;

export const RESTORE_ACTIONS = ["restore", "move", "content", "attributes", "delete", "skip"] as const;

export const restoredItem = z
  .object({
    action: z
      .enum(RESTORE_ACTIONS)
      .describe(
        "restore: a deleted node comes back; move: it goes back to its place; content: its bytes, with its attributes; attributes: these alone; delete: it is newer and goes; skip: it stays as it is, `reason` says why",
      ),
    nodeId: id,
    kind: z.enum(["file", "folder"]),
    path: z.string().describe("Its path after the action; of a deleted node its former path"),
    from: z.string().optional().describe("Of a move: its path before"),
    reason: z.string().optional().describe("Why it is skipped"),
  })
  .meta({ id: "RestoredItem", description: "An action on a node, taken or planned" });
export type RestoredItem = z.infer<typeof restoredItem>;

export const restoredSlice = z
  .object({
    items: z.array(restoredItem).describe("The actions of this request, in order; with plan those that would be taken"),
    next: z.string().nullable().describe("The value of `after` for the next request; null: all is done"),
    position: position.nullish().describe("Position of the last change; null if there was none"),
  })
  .meta({ id: "RestoredSlice", description: "A part of a restoration: one transaction" });
export type RestoredSlice = z.infer<typeof restoredSlice>;

/** POST /v1/journal. It provisions an unprovisioned folder that it names (gateway-spec §6). */
export const newJournalEntry = z
  .strictObject({
    nodeId: id.describe("The node that the activity is about; an entry about a folder provisions it"),
    // An entry of a change's kind without a change would mislead readers of the journal.
    kind: z
      .string()
      .min(1)
      .max(64)
      .refine((kind) => !CHANGE_KINDS.some((own) => own === kind), {
        error: ({ input }) => `${JSON.stringify(input)} is a kind of changes, which only the gateway writes`,
      })
      .meta({ not: { enum: [...CHANGE_KINDS] } })
      .describe("The kind of activity, in a word of the caller's own; not one of the kinds of changes"),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewJournalEntry", description: "An activity to be recorded" });
export type NewJournalEntry = z.infer<typeof newJournalEntry>;

export const accountRef = z.object({ id, name: z.string() }).meta({ id: "AccountRef", description: "An account" });
export const workspaceRef = z.object({ id, name: z.string() }).meta({ id: "WorkspaceRef", description: "A workspace" });
export const engineRef = z.object({ id, name: z.string() }).meta({ id: "EngineRef", description: "An engine" });
export const accountStatus = z
  .object({
    account: accountRef.nullable().describe("null: the token has no account, and counts as an owner where it is valid"),
    scopes: z.array(z.string()),
    workspace: id.nullable().describe("The only workspace in which the token is valid; null: it is bound to none"),
    expiresAt: moment.nullable().describe("null: it is an API key that does not expire"),
    workspaces: z
      .array(workspaceRef.extend({ role }))
      .describe("The workspaces in which the token may act, ordered by name"),
  })
  .meta({ id: "AccountStatus", description: "The account, scopes and workspaces of a token" });
export type AccountStatus = z.infer<typeof accountStatus>;

export const grant = z
  .object({
    id: id.describe("Id of the grant, made of the ids of workspace and account"),
    account: accountRef,
    workspace: workspaceRef,
    role,
    createdAt: moment,
  })
  .meta({ id: "Grant", description: "The role of an account in a workspace" });
export type Grant = z.infer<typeof grant>;
export const grantPage = page(grant).meta({ id: "GrantPage" });
export type GrantPage = z.infer<typeof grantPage>;

export const newGrant = z
  .strictObject({ account: z.string().min(1).max(128).describe("Name or id of the account"), role })
  .meta({ id: "NewGrant", description: "An account, and its new role" });
export type NewGrant = z.infer<typeof newGrant>;

/** The type of a problem: the workspace has no room left, although the gateway has. */
export const OVER_QUOTA = "urn:wsfs:problem:over-quota";

/** The type of a problem: the workspace's retention policy has removed the content. */
export const THINNED = "urn:wsfs:problem:thinned";

export const problem = z
  .object({
    type: z
      .string()
      .optional()
      .describe(
        `${OVER_QUOTA} if a workspace is over its quota (507), ${THINNED} if its retention policy has removed the content or node (410), else about:blank`,
      ),
    status: z.number().int(),
    title: z.string(),
    detail: z.string().optional().describe("What was expected and what came, for people"),
    field: z.string().optional().describe("The field of the request that is at fault"),
    scope: z.string().optional().describe("The scope that the token lacks (403)"),
    grant: z
      .object({ workspace: id, role })
      .optional()
      .describe(
        "The role that the account lacks, and the workspace (403); also if the token is bound to another workspace",
      ),
    node: node.nullish().describe("The node that stands in the way (409, 412)"),
    quota: count.optional().describe("Over its quota: the workspace's quota"),
    used: count.optional().describe("Over its quota: the bytes that the workspace holds now"),
    growth: count.optional().describe("Over its quota: the bytes that the request would add at least"),
  })
  .meta({ id: "Problem", description: "Why a request was refused (RFC 9457)" });
export type Problem = z.infer<typeof problem>;

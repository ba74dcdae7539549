/**
 * The query and the JSON body or `metadata` part of each operation, as schemas. The server checks requests with them,
 * and the OpenAPI document is made of them. Unknown fields are refused, so that a typo is reported and not ignored.
 */
import { z } from "zod";
import { newApiKey } from "./api-keys.ts";
import { newExecution, newInstallation, stateFilter } from "./engines.ts";
import type { OperationName } from "./operations.ts";
import {
  branch as branchName,
  contentReference,
  exchange,
  idempotencyKey,
  newGrant,
  newJournalEntry,
  newNode,
  newWorkspace,
  nodeName,
  nodePatch,
  PAGE_SIZE_DEFAULT,
  PAGE_SIZE_MAX,
  restoration,
  treeRestoration,
  uploadMetadata,
} from "./resources.ts";
import { newTrigger, triggerPatch } from "./triggers.ts";

/** Text in the query; a number for the operation and in the OpenAPI document. */
function wholeNumber(minimum: number, maximum: number) {
  const expected = `expected a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, expected)
    .transform(Number)
    .pipe(z.number().min(minimum, expected).max(maximum, expected))
    .meta({ type: "integer", minimum, maximum });
}

const workspace = z
  .string()
  .min(1)
  .optional()
  .describe("Name or id. Needed if neither the token nor a node id determines the workspace");

const paging = {
  pageNo: wholeNumber(1, 1_000_000_000).default(1).describe("The number of the page; 1 when absent"),
  pageSize: wholeNumber(1, PAGE_SIZE_MAX)
    .default(PAGE_SIZE_DEFAULT)
    .describe(`The largest number of items of a page; ${PAGE_SIZE_DEFAULT} when absent`),
  orderBy: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'A field of the item, with "-" before it for descending order', examples: ["-createdAt"] }),
};

const after = z
  .string()
  .optional()
  .describe(
    "The `next` of the page before; empty for the first page. All pages read in this way show the list at one position. `pageNo` is ignored then",
  );
const branch = branchName.optional().describe('Content as it is on this branch; "main" when absent');
const flag = z
  .enum(["true", "false"], 'expected "true" or "false"')
  .transform((text) => text === "true")
  .default(false);
const at = z.iso
  .datetime({ offset: true })
  .optional()
  .meta({
    description: "A moment of the past: the answer shows the state of that moment",
    examples: ["2026-01-31T12:00:00Z"],
  });
const since = z
  .string()
  .regex(/^\d{0,16}$/, "expected a position")
  .default("")
  .transform(Number)
  .pipe(z.number().max(Number.MAX_SAFE_INTEGER, "expected a position"))
  .meta({
    description:
      "A position: only entries after it. From the start when absent or empty; a position that is not reached yet is refused",
    examples: ["42"],
  });

const { orderBy: _, ...linePaging } = paging;
const sinceLine = z
  .string()
  .regex(/^\d{0,16}$/, "expected the number of a line")
  .default("")
  .transform(Number)
  .meta({
    description: "The number of a line: only lines after it. From the first when absent or empty",
    examples: ["42"],
  });

const folderByPath = z
  .string()
  .optional()
  .meta({ description: "The folder, by its path", examples: ["/docs"] });
const folderById = z.string().min(1).optional().describe("The folder, by its id");

const onlyWorkspace = z.strictObject({ workspace });

export const INPUTS = {
  listWorkspaces: { query: z.strictObject({ workspace, ...paging, after }) },
  createWorkspace: { query: z.strictObject({}), body: newWorkspace },
  listNodes: {
    query: z.strictObject({
      workspace,
      path: folderByPath,
      parentId: folderById,
      name: nodeName.optional().describe("Only the node of this name"),
      recursive: flag.describe("Whether to list everything below the folder; false when absent"),
      deleted: flag.describe(
        "Whether to list the nodes that were deleted from the folder and can be restored, instead of its present ones; not with branch or at. The folder itself may be a deleted one, given by its id. false when absent",
      ),
      branch,
      at,
      ...paging,
      after,
    }),
  },
  streamNodes: {
    query: z.strictObject({
      workspace,
      path: folderByPath,
      parentId: folderById,
      branch,
      at,
      after: z
        .string()
        .optional()
        .describe(
          "The `after` of a line: the stream goes on there, at the same position. From the start when absent or empty",
        ),
    }),
  },
  getNode: { query: z.strictObject({ workspace, branch }) },
  getNodeByPath: { query: z.strictObject({ workspace, branch, at }) },
  getContent: {
    query: z.strictObject({
      workspace,
      version: z.string().min(1).optional().describe("Id of a version; the head when absent. Not with branch or at"),
      branch,
      at,
    }),
  },
  upload: {
    query: z.strictObject({
      workspace,
      parentId: z
        .string()
        .min(1)
        .optional()
        .describe("Id of the folder at which the path begins; the root when absent"),
    }),
    metadata: uploadMetadata,
  },
  writeContent: { query: onlyWorkspace, metadata: uploadMetadata },
  writeReference: { query: onlyWorkspace, body: contentReference },
  createNode: { query: onlyWorkspace, body: newNode },
  patchNode: { query: onlyWorkspace, body: nodePatch },
  exchangeNodes: { query: onlyWorkspace, body: exchange },
  deleteNode: { query: z.strictObject({ workspace, idempotencyKey: idempotencyKey.optional() }) },
  restoreNode: { query: onlyWorkspace, body: restoration },
  restoreTree: { query: onlyWorkspace, body: treeRestoration },
  getAccount: { query: z.strictObject({}) },
  listGrants: { query: z.strictObject({ workspace, ...paging, after }) },
  setGrant: { query: onlyWorkspace, body: newGrant },
  removeGrant: {
    query: z.strictObject({ workspace, account: z.string().min(1).max(128).describe("Name or id of the account") }),
  },
  listVersions: { query: z.strictObject({ workspace, branch, ...paging, after }) },
  appendJournal: { query: onlyWorkspace, body: newJournalEntry },
  readJournal: {
    query: z.strictObject({
      workspace,
      ...paging,
      orderBy: paging.orderBy.meta({
        description:
          'A field of the item, with "-" before it for descending order. position and time are read from an index; a long journal is sorted when it is first asked for in any other order',
        examples: ["-position"],
      }),
      after: z
        .string()
        .default("0")
        .meta({
          description:
            "A position: only entries after it; or the `next` of the page before. All when absent or empty; a position that is not reached yet is refused",
          examples: ["42"],
        }),
      nodeId: z.string().min(1).optional().describe("Only entries of this node, which may be a deleted one"),
      since: z.iso
        .datetime({ offset: true })
        .optional()
        .meta({ description: "Only entries from this moment on", examples: ["2026-01-31T12:00:00Z"] }),
      by: z.string().min(1).max(128).optional().describe("Only entries by the account of this name"),
      mount: z.string().min(1).max(128).optional().describe("Only entries by the mount of this name"),
      before: flag.describe("Whether entries carry the state of their nodes before the change; false when absent"),
    }),
  },
  streamJournal: { query: z.strictObject({ workspace, after: since }) },
  listEngines: { query: z.strictObject({ ...paging, after }) },
  getEngine: { query: z.strictObject({}) },
  createInstallation: { query: onlyWorkspace, body: newInstallation },
  listInstallations: { query: z.strictObject({ workspace, ...paging, after }) },
  getInstallation: { query: onlyWorkspace },
  removeInstallation: { query: onlyWorkspace },
  startExecution: { query: onlyWorkspace, body: newExecution },
  listExecutions: {
    query: z.strictObject({
      workspace,
      state: stateFilter,
      engine: z.string().min(1).max(128).optional().describe("Name or id: only executions of this engine"),
      ...paging,
      after,
    }),
  },
  getExecution: { query: onlyWorkspace },
  cancelExecution: { query: onlyWorkspace },
  readLogs: { query: z.strictObject({ workspace, ...linePaging, after: sinceLine }) },
  streamLogs: { query: z.strictObject({ workspace, after: sinceLine }) },
  createApiKey: { query: onlyWorkspace, body: newApiKey },
  listApiKeys: { query: z.strictObject({ workspace, ...paging, after }) },
  revokeApiKey: { query: onlyWorkspace },
  createTrigger: { query: onlyWorkspace, body: newTrigger },
  listTriggers: { query: z.strictObject({ workspace, ...paging, after }) },
  getTrigger: { query: onlyWorkspace },
  updateTrigger: { query: onlyWorkspace, body: triggerPatch },
  removeTrigger: { query: onlyWorkspace },
} as const satisfies Record<OperationName, { query: z.ZodType; metadata?: z.ZodType; body?: z.ZodType }>;

export type Inputs = typeof INPUTS;
export type QueryOf<N extends OperationName> = z.output<Inputs[N]["query"]>;
/** The checked JSON body. Undefined for operations without one. */
export type BodyOf<N extends OperationName> = Inputs[N] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined;

/**
 * What each operation takes in its query and its JSON body or `metadata` part, as schemas: the
 * server checks with them, the OpenAPI document is made of them. Unknown fields are refused, so
 * that a typo is told instead of ignored.
 */
import { z } from "zod";
import type { OperationName } from "./operations.ts";
import {
  branch as branchName,
  contentReference,
  exchange,
  idempotencyKey,
  newJournalEntry,
  newNode,
  nodePatch,
  PAGE_SIZE_DEFAULT,
  PAGE_SIZE_MAX,
  restoration,
  uploadMetadata,
} from "./resources.ts";

function wholeNumber(minimum: number, maximum: number) {
  const expected = `expected a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, expected)
    .transform(Number)
    .pipe(z.number().min(minimum, expected).max(maximum, expected));
}

/** Name or id. Needed where neither the token nor a node id says the workspace. */
const workspace = z.string().min(1).optional();

const paging = {
  pageNo: wholeNumber(1, 1_000_000_000).default(1),
  pageSize: wholeNumber(1, PAGE_SIZE_MAX).default(PAGE_SIZE_DEFAULT),
  /** A field of the item, `-field` for descending. */
  orderBy: z.string().min(1).optional(),
};

/** `next` of the page before, empty for the first page: all pages show one snapshot. */
const after = z.string().optional();
const branch = branchName.optional();
const flag = z
  .enum(["true", "false"], 'expected "true" or "false"')
  .transform((text) => text === "true")
  .default(false);
/** A moment of the past: the answer is as it was then. */
const at = z.iso.datetime({ offset: true }).optional();

const onlyWorkspace = z.strictObject({ workspace });

export const INPUTS = {
  listWorkspaces: { query: z.strictObject({ workspace, ...paging, after }) },
  listNodes: {
    query: z.strictObject({
      workspace,
      path: z.string().optional(),
      parentId: z.string().min(1).optional(),
      name: z.string().optional(),
      recursive: flag,
      branch,
      at,
      ...paging,
      after,
    }),
  },
  getNode: { query: z.strictObject({ workspace, branch }) },
  getNodeByPath: { query: z.strictObject({ workspace, branch, at }) },
  getContent: { query: z.strictObject({ workspace, version: z.string().min(1).optional(), branch, at }) },
  upload: { query: z.strictObject({ workspace, parentId: z.string().min(1).optional() }), metadata: uploadMetadata },
  writeContent: { query: onlyWorkspace, metadata: uploadMetadata, body: contentReference },
  createNode: { query: onlyWorkspace, body: newNode },
  patchNode: { query: onlyWorkspace, body: nodePatch },
  exchangeNodes: { query: onlyWorkspace, body: exchange },
  deleteNode: { query: z.strictObject({ workspace, idempotencyKey: idempotencyKey.optional() }) },
  restoreNode: { query: onlyWorkspace, body: restoration },
  listVersions: { query: z.strictObject({ workspace, branch, ...paging, after }) },
  appendJournal: { query: onlyWorkspace, body: newJournalEntry },
  readJournal: {
    query: z.strictObject({ workspace, ...paging, after: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0) }),
  },
  streamJournal: { query: z.strictObject({ workspace, after: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0) }) },
} as const satisfies Record<OperationName, { query: z.ZodType; metadata?: z.ZodType; body?: z.ZodType }>;

export type Inputs = typeof INPUTS;
export type QueryOf<N extends OperationName> = z.output<Inputs[N]["query"]>;
/** The JSON body, checked; undefined for operations that take none. */
export type BodyOf<N extends OperationName> = Inputs[N] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined;

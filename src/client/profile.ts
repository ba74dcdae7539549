/**
 * A profile describes how another gateway differs from the contract: method, path and query of each operation, the
 * fields of requests and answers, and the features that it lacks. A JSON file names the differences; without one it is
 * the profile of our own gateway. This file knows no request.
 */
import { z } from "zod";
import type { Features } from "../contract/features.ts";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";

/** The place of one of our fields at the other gateway. Null: it has none. */
export interface FieldPlace {
  /** Names of nested fields, the outermost first. */
  readonly at: readonly string[];
  /** For a time: the format that the gateway uses. */
  readonly format: "iso" | "seconds" | "milliseconds";
  /** For an enumerated value: our words, each with the gateway's. */
  readonly values: Readonly<Record<string, string | number | boolean>> | undefined;
}

type Fields = Readonly<Record<string, FieldPlace | null>>;

export interface ProfileOperation {
  readonly method: string;
  /** `{nodeId}`, `{path}` and names of the query are filled in, encoded. `{rootPath}` is the path from the root. */
  readonly path: string;
  /** Our names, each with the gateway's. Null: not sent. */
  readonly query: Readonly<Record<string, string | null>>;
  /** none: the answer does not contain the node. */
  readonly answer: "full" | "none";
  /** Our fields that the body must always have. Fields that a call does not give come from the present node. */
  readonly always: readonly ("parentId" | "name")[];
}

const RESOURCES = {
  workspace: ["id", "name", "rootId", "quota", "used", "role"],
  node: [
    "id",
    "kind",
    "path",
    "name",
    "parentId",
    "mimeType",
    "size",
    "head",
    "contentHash",
    "lastKey",
    "revision",
    "createdAt",
    "modifiedAt",
    "attributes",
    "position",
    "deletedAt",
    "deletedBy",
  ],
  version: ["id", "nodeId", "number", "branch", "size", "contentHash", "mimeType", "createdAt", "by", "attributes"],
  journalEntry: [
    "position",
    "time",
    "kind",
    "nodeId",
    "revision",
    "parentId",
    "name",
    "head",
    "contentHash",
    "key",
    "branch",
    "branchHead",
    "by",
    "before",
  ],
  page: ["items", "totalCount", "pageNo", "pageSize", "asOf", "next"],
  problem: ["title", "detail", "field", "scope", "grant", "node"],
  uploadMetadata: ["branch", "idempotencyKey", "contentHash", "attributes"],
  contentReference: ["copyOf", "version", "branch", "attributes", "idempotencyKey"],
  newNode: ["parentId", "name", "kind", "copyOf", "version", "attributes", "idempotencyKey"],
  nodePatch: ["parentId", "name", "attributes", "idempotencyKey"],
  exchange: ["with", "withRevision", "idempotencyKey"],
  restoration: ["parentId", "name", "idempotencyKey"],
  newJournalEntry: ["nodeId", "kind", "idempotencyKey"],
} as const satisfies Record<string, readonly string[]>;

export type ResourceName = keyof typeof RESOURCES;

export interface Profile {
  readonly name: string;
  readonly features: Features;
  /** Null: the gateway lacks the operation. */
  readonly operations: Readonly<Record<OperationName, ProfileOperation | null>>;
  readonly fields: Readonly<Record<ResourceName, Fields>>;
  /** Our names of headers, each with the gateway's, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** One line for the user when the file names features of earlier releases: the meaning that they got. */
  readonly warning?: string;
}

/** The features that belong to no tier. */
const SMALL = ["ranges", "hashes", "attributes"] as const;
/** The names that earlier releases had for parts of the full tier. A gateway that lacked one of them is plain. */
const FORMER = [
  "positions",
  "journal",
  "revisions",
  "conditions",
  "uploadKeys",
  "folderKeys",
  "changeKeys",
  "exchanges",
  "lastKey",
  "versions",
  "history",
  "references",
  "snapshots",
  "names",
] as const;

/** A gateway that lacks one of these cannot be mounted. */
const NEEDED: readonly OperationName[] = [
  "listWorkspaces",
  "listNodes",
  "getNode",
  "getContent",
  "upload",
  "writeContent",
  "createNode",
  "patchNode",
  "deleteNode",
];
/** A gateway that lacks one of these is not full. */
const OF_FULL: readonly OperationName[] = ["readJournal", "exchangeNodes", "restoreTree"];
/** Operations whose answer must contain the node: its id is known from nothing else. */
const ANSWERED: readonly OperationName[] = ["upload", "createNode"];

const place = z.union([
  z.string().min(1),
  z.null(),
  z.strictObject({
    at: z.string().min(1),
    format: z.enum(["iso", "seconds", "milliseconds"]).optional(),
    values: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  }),
]);

const operation = z.union([
  z.null(),
  z.strictObject({
    method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]).optional(),
    path: z.string().startsWith("/").optional(),
    query: z.record(z.string(), z.string().min(1).nullable()).optional(),
    answer: z.enum(["full", "none"]).optional(),
    always: z.array(z.enum(["parentId", "name"])).optional(),
  }),
]);

const file = z.strictObject({
  name: z.string().min(1),
  /** Default: full. A file of an earlier release that lacks one of the former features is plain in any case. */
  tier: z.enum(["full", "plain"]).optional(),
  features: z.partialRecord(z.enum([...SMALL, ...FORMER]), z.boolean()).optional(),
  /** Earlier releases wrote this: true if the gateway has the features that `features` does not name. */
  otherFeatures: z.boolean().optional(),
  operations: z.partialRecord(z.enum(Object.keys(OPERATIONS) as OperationName[]), operation).optional(),
  fields: z.partialRecord(z.enum(Object.keys(RESOURCES) as ResourceName[]), z.record(z.string(), place)).optional(),
  headers: z.record(z.string(), z.string().min(1)).optional(),
});

export type ProfileFile = z.input<typeof file>;

export class ProfileError extends Error {
  /** One line for each fault. */
  readonly faults: readonly string[];
  constructor(source: string, faults: readonly string[]) {
    // A fault may quote the file, which may have several lines.
    const lines = faults.map((fault) => fault.replace(/\s*\n\s*/g, " "));
    super(lines.map((fault) => `${source}: ${fault}`).join("\n"));
    this.name = "ProfileError";
    this.faults = lines;
  }
}

/** The gateway of this contract. */
export const OWN_PROFILE: Profile = build({ name: "wsfs" });

/** Reads a profile file's text. Throws a ProfileError that names `source` and has one line for each fault. */
export function parseProfile(text: string, source: string): Profile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ProfileError(source, [`expected JSON: ${cause instanceof Error ? cause.message : String(cause)}`]);
  }
  return checkProfile(value, source);
}

/** Checks the content of a profile file that is parsed already. Throws a ProfileError with all faults. */
export function checkProfile(value: unknown, source: string): Profile {
  const parsed = file.safeParse(value, { reportInput: true });
  if (!parsed.success) throw new ProfileError(source, parsed.error.issues.map(describeIssue));
  const faults = [...faultsOfNames(parsed.data), ...faultsOf(build(parsed.data))];
  if (faults.length > 0) throw new ProfileError(source, faults);
  return build(parsed.data);
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const where = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  if (issue.code === "unrecognized_keys") return `${where}unknown ${issue.keys.map((key) => `"${key}"`).join(", ")}`;
  const got = issue.input === undefined ? "nothing" : JSON.stringify(issue.input).slice(0, 80);
  if (issue.code === "invalid_union") return `${where}expected what the profile's documentation shows, got ${got}`;
  return `${where}${issue.message}, got ${got}`;
}

function faultsOfNames({ fields = {}, operations = {} }: z.output<typeof file>): string[] {
  const ofFields = Object.entries(fields).flatMap(([resource, places]) => {
    const known: readonly string[] = RESOURCES[resource as ResourceName];
    return Object.keys(places)
      .filter((field) => !known.includes(field))
      .map((field) => `fields.${resource}.${field}: unknown field, expected one of ${known.join(", ")}`);
  });
  const ofPaths = Object.entries(operations).flatMap(([name, given]) =>
    [...(given?.path ?? "").matchAll(/\{(\w*)\}/g)]
      .filter(([, key = ""]) => !PATH_NAMES.includes(key))
      .map(([key]) => `operations.${name}.path: unknown ${key}, expected one of ${PATH_NAMES.join(", ")}`),
  );
  return [...ofFields, ...ofPaths];
}

const PATH_NAMES = ["nodeId", "path", "rootPath", "parentId", "workspace", "version"];

function faultsOf(profile: Profile): string[] {
  const { operations, features, fields } = profile;
  const faults: string[] = [];
  for (const name of NEEDED) {
    if (operations[name] === null)
      faults.push(`operations.${name}: expected an operation, without it nothing can be mounted`);
  }
  for (const name of ANSWERED) {
    if (operations[name]?.answer === "none") faults.push(`operations.${name}.answer: expected "full", got "none"`);
  }
  for (const [name, operation] of Object.entries(operations)) {
    if (name !== "patchNode" && operation !== null && operation.always.length > 0) {
      faults.push(`operations.${name}.always: only patchNode changes a node in part`);
    }
  }
  for (const name of OF_FULL) {
    if (features.isFull && operations[name] === null) {
      faults.push(`operations.${name}: expected an operation, without it the gateway is plain ("tier": "plain")`);
    }
  }
  for (const name of ["id", "kind", "head"] as const) {
    if (fields.node[name] === null) faults.push(`fields.node.${name}: expected a field, got null`);
  }
  for (const name of ["id", "rootId", "name"] as const) {
    if (fields.workspace[name] === null) faults.push(`fields.workspace.${name}: expected a field, got null`);
  }
  if (fields.node.name === null && fields.node.path === null) {
    faults.push("fields.node: expected a name or a path, got neither");
  }
  if (fields.node.path === null && operations.upload?.path.includes("{rootPath}") === true) {
    faults.push("operations.upload.path: {rootPath} needs fields.node.path");
  }
  return faults;
}

function build(given: z.output<typeof file>): Profile {
  const { name, operations = {}, fields = {}, headers = {} } = given;
  const names = Object.keys(OPERATIONS) as OperationName[];
  const { writeContent } = operations;
  // If the file describes writing content and not writing by reference, the latter follows the former.
  const asContent = writeContent == null ? writeContent : { ...OPERATIONS.writeContent, ...writeContent };
  const resources = Object.keys(RESOURCES) as ResourceName[];
  const features = featuresOf(given);
  return {
    name,
    features,
    ...(isFormer(given) ? { warning: `profile ${name}: ${describeFormer(features)}` } : {}),
    operations: Object.fromEntries(
      names.map((key) => {
        const { method, path } = OPERATIONS[key];
        const own = key in operations || key !== "writeReference" ? operations[key] : asContent;
        return [key, own === null ? null : { method, path, query: {}, answer: "full", always: [], ...own }];
      }),
    ) as unknown as Profile["operations"],
    fields: Object.fromEntries(
      resources.map((resource) => [
        resource,
        Object.fromEntries(
          RESOURCES[resource].map((field) => {
            const own = fields[resource]?.[field];
            return [field, own === null ? null : placeOf(own ?? field)];
          }),
        ),
      ]),
    ) as unknown as Profile["fields"],
    headers: Object.fromEntries(
      Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value.toLowerCase()]),
    ),
  };
}

function placeOf(given: NonNullable<z.output<typeof place>>): FieldPlace {
  if (typeof given === "string") return { at: given.split("."), format: "iso", values: undefined };
  return { at: given.at.split("."), format: given.format ?? "iso", values: given.values };
}

function featuresOf({ tier, features = {}, otherFeatures = true }: z.output<typeof file>): Features {
  const has = (name: (typeof SMALL | typeof FORMER)[number]) => features[name] ?? otherFeatures;
  return {
    isFull: tier !== "plain" && FORMER.every(has),
    ranges: has("ranges"),
    hashes: has("hashes"),
    attributes: has("attributes"),
  };
}

function isFormer({ features = {}, otherFeatures }: z.output<typeof file>): boolean {
  return otherFeatures !== undefined || FORMER.some((name) => features[name] !== undefined);
}

function describeFormer(features: Features): string {
  const lacking = SMALL.filter((name) => !features[name]).map((name) => `"${name}": false`);
  const small = lacking.length === 0 ? "" : `, "features": { ${lacking.join(", ")} }`;
  return `its features are those of an earlier release; taken as "tier": "${features.isFull ? "full" : "plain"}"${small}`;
}

/** The arguments of each call in the groups of `connect`, and calls that check them before anything is sent. */

import { EXECUTION_STATES } from "../../contract/execution-states.ts";
import { ROLES } from "../../contract/roles.ts";
import type { TriggerPatch } from "../../contract/triggers.ts";
import {
  aBoolean,
  aFunction,
  aJson,
  aJsonObject,
  aSignal,
  aText,
  type Check,
  either,
  type Fields,
  fields,
  filledText,
  is,
  optional,
  texts,
  wholeNumber,
  wrongArgument,
} from "../checks.ts";
import type { CopySource, NodeChange, TriggerDescription } from "../client.ts";
import { RemoteError } from "../errors.ts";
import type { AccountCalls, GrantListOptions, GrantOptions } from "./account.ts";
import type { ApiKeyListOptions, ApiKeys, NewApiKeyOptions } from "./api-keys.ts";
import type { RequestOptions, WriteOptions } from "./context.ts";
import type { DownloadOptions } from "./download.ts";
import type { EngineListOptions, Engines, InstallationListOptions, Installations, InstallOptions } from "./engines.ts";
import type { ExecutionListOptions, Executions, LogFollowOptions, LogListOptions, StartOptions } from "./executions.ts";
import type { Files, UploadOptions, WriteContentOptions } from "./files.ts";
import type { FollowOptions } from "./follow.ts";
import type { Journal, JournalListOptions } from "./journal.ts";
import type {
  ChangeOptions,
  CreateOptions,
  ExchangeOptions,
  NodeListOptions,
  Nodes,
  PathOptions,
  RestoreOptions,
  RestoreTreeOptions,
} from "./nodes.ts";
import { paged } from "./paged.ts";
import type { ReadOptions } from "./read.ts";
import { isUploadable } from "./sources.ts";
import type { NewTriggerOptions, TriggerListOptions, Triggers } from "./triggers.ts";
import type { VersionListOptions, Versions } from "./versions.ts";
import type { WorkspaceListOptions, Workspaces } from "./workspaces.ts";

/**
 * The arguments of a call by name, in order. `fail` makes the result of a call with wrong arguments, which fails as the
 * call itself would: when it is awaited or walked.
 */
export interface Takes {
  readonly checks: Readonly<Record<string, Check>>;
  readonly fail: (error: RemoteError) => unknown;
}

export type Table<Calls> = { readonly [Name in keyof Calls]: Takes };

export function answers(checks: Takes["checks"]): Takes {
  return { checks, fail: (error) => Promise.reject(error) };
}

function lists(checks: Takes["checks"]): Takes {
  return { checks, fail: (error) => paged(() => Promise.reject(error)) };
}

export function streams(checks: Takes["checks"]): Takes {
  return {
    checks,
    // biome-ignore lint/correctness/useYield: it fails when the first entry is asked for
    fail: async function* (error) {
      throw error;
    },
  };
}

/**
 * Returns `calls` with checks of their arguments. A call with wrong arguments sends nothing and fails with "invalid";
 * `field` is the wrong argument.
 */
export function checked<Calls extends object>(group: string, calls: Calls, table: Partial<Table<Calls>>): Calls {
  const over: Record<string, (...given: unknown[]) => unknown> = {};
  for (const [name, takes] of Object.entries<Takes | undefined>(table)) {
    const call: unknown = Reflect.get(calls, name);
    if (takes === undefined || typeof call !== "function") continue;
    over[name] = (...given) => {
      const wrong = wrongArgument(takes.checks, given);
      if (wrong === undefined) return Reflect.apply(call, calls, given);
      const { field, reason } = wrong;
      return takes.fail(new RemoteError("invalid", `${group}.${name}: ${field}: ${reason}`, { field, isUnsent: true }));
    };
  }
  return Object.assign({ ...calls }, over);
}

const PAGE_SIZE = wholeNumber(1, 1000);

export const aMoment = is(
  "a Date, or a moment in ISO 8601 with its zone",
  (value) =>
    (value instanceof Date && !Number.isNaN(value.getTime())) ||
    (typeof value === "string" &&
      /^\d{4}-\d\d-\d\dT.+(?:Z|[+-]\d\d:?\d\d)$/.test(value) &&
      !Number.isNaN(Date.parse(value))),
);
export const aRange = fields<{ readonly start: number; readonly end: number }>({
  start: wholeNumber(0),
  end: wholeNumber(1),
});
export const aSource = fields<CopySource>({ copyOf: filledText, version: optional(filledText) });
export const aChange = fields<NodeChange>({
  parentId: optional(filledText),
  name: optional(filledText),
  attributes: optional(aJsonObject),
});
export const aHash = is(
  "64 digits of lower-case hex",
  (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value),
);

const request: Fields<RequestOptions> = {
  signal: optional(aSignal),
  retries: optional(
    either(
      false,
      is("false", () => false),
    ),
  ),
};
const write: Fields<WriteOptions> = { ...request, idempotencyKey: optional(filledText) };
const workspace = optional(filledText);
const branch = optional(filledText);
const list = { pageSize: optional(PAGE_SIZE), orderBy: optional(filledText) };
const change: Fields<ChangeOptions> = { ...write, ifRevision: optional(wholeNumber(0)) };
// The head of a folder is "", which is not a version.
const ifHead = optional(aText);
const content: Fields<WriteContentOptions> = {
  ...write,
  size: optional(wholeNumber(0)),
  contentHash: optional(aHash),
  contentType: optional(filledText),
  attributes: optional(aJsonObject),
  branch,
  onProgress: optional(aFunction),
};

const noOptions = optional(fields<RequestOptions>(request));
const ofWrite = optional(fields<WriteOptions>(write));
const ofCreate = optional(fields<CreateOptions>({ ...write, attributes: optional(aJsonObject) }));
const ofChange = optional(fields<ChangeOptions>(change));
const aContent = is(
  "text, bytes, a Blob, { path }, something that yields bytes, or a function that gives that",
  isUploadable,
);
const id = filledText;
const name = filledText;
const path = filledText;

export const WORKSPACES: Table<Workspaces> = {
  create: answers({ name: filledText, options: noOptions }),
  list: lists({ options: optional(fields<WorkspaceListOptions>({ ...request, ...list })) }),
  find: answers({ nameOrId: filledText, options: noOptions }),
};

export const NODES: Table<Nodes> = {
  list: lists({
    options: optional(
      fields<NodeListOptions>({
        ...request,
        ...list,
        path: optional(path),
        parentId: optional(id),
        name: optional(name),
        recursive: optional(aBoolean),
        deleted: optional(aBoolean),
        workspace,
        branch,
        at: optional(aMoment),
      }),
    ),
  }),
  get: answers({ nodeId: id, options: optional(fields<RequestOptions & { branch?: string }>({ ...request, branch })) }),
  byPath: answers({
    path,
    options: optional(fields<PathOptions>({ ...request, workspace, branch, at: optional(aMoment) })),
  }),
  createFolder: answers({ parentId: id, name, options: ofCreate }),
  ensureFolder: answers({
    path,
    options: optional(fields<RequestOptions & { workspace?: string }>({ ...request, workspace })),
  }),
  copy: answers({ parentId: id, name, source: aSource, options: ofCreate }),
  update: answers({ nodeId: id, change: aChange, options: ofChange }),
  exchange: answers({
    nodeId: id,
    otherId: id,
    options: optional(fields<ExchangeOptions>({ ...change, otherRevision: optional(wholeNumber(0)) })),
  }),
  delete: answers({ nodeId: id, options: ofChange }),
  restore: answers({
    nodeId: id,
    options: optional(fields<RestoreOptions>({ ...write, parentId: optional(id), name: optional(name) })),
  }),
  restoreTree: streams({
    nodeId: id,
    at: aMoment,
    options: optional(fields<RestoreTreeOptions>({ ...write, exact: optional(aBoolean), plan: optional(aBoolean) })),
  }),
};

export const FILES: Table<Files> = {
  upload: answers({
    path,
    content: aContent,
    options: optional(fields<UploadOptions>({ ...content, workspace, ifHead, ifAbsent: optional(aBoolean) })),
  }),
  create: answers({ parentId: id, name, content: aContent, options: optional(fields<WriteContentOptions>(content)) }),
  write: answers({
    nodeId: id,
    content: aContent,
    options: optional(fields<WriteContentOptions & { ifHead?: string }>({ ...content, ifHead })),
  }),
  writeCopy: answers({
    nodeId: id,
    source: aSource,
    options: optional(
      fields<CreateOptions & { ifHead?: string }>({ ...write, attributes: optional(aJsonObject), ifHead }),
    ),
  }),
  read: answers({
    nodeId: id,
    options: optional(
      fields<ReadOptions>({
        ...request,
        version: optional(id),
        range: optional(aRange),
        at: optional(aMoment),
        branch,
        contentHash: optional(aHash),
      }),
    ),
  }),
  download: answers({
    nodeId: id,
    path: filledText,
    options: optional(
      fields<DownloadOptions>({ ...request, version: optional(id), branch, onProgress: optional(aFunction) }),
    ),
  }),
};

const aRole = is(`one of ${ROLES.join(", ")}`, (value) => ROLES.some((role) => role === value));
const ofGrant = optional(fields<GrantOptions>({ ...request, workspace }));

export const ACCOUNT: Table<AccountCalls> = {
  get: answers({ options: optional(fields<RequestOptions>(request)) }),
  grants: lists({
    options: optional(fields<GrantListOptions>({ ...request, workspace, pageSize: optional(PAGE_SIZE) })),
  }),
  grant: answers({ account: filledText, role: aRole, options: ofGrant }),
  revoke: answers({ account: filledText, options: ofGrant }),
};

export const aState = is(`one of ${EXECUTION_STATES.join(", ")}`, (value) =>
  EXECUTION_STATES.some((state) => state === value),
);
const keyed = { ...write, workspace };
const listIn = { ...request, workspace, pageSize: optional(PAGE_SIZE) };

export const ENGINES: Table<Engines> = {
  list: lists({ options: optional(fields<EngineListOptions>({ ...request, ...list })) }),
  get: answers({ engine: filledText, options: noOptions }),
};

export const INSTALLATIONS: Table<Installations> = {
  create: answers({
    engine: filledText,
    options: optional(fields<InstallOptions>({ ...keyed, path: optional(path) })),
  }),
  list: lists({ options: optional(fields<InstallationListOptions>(listIn)) }),
  get: answers({ installationId: id, options: noOptions }),
  remove: answers({ installationId: id, options: noOptions }),
};

export const EXECUTIONS: Table<Executions> = {
  start: answers({ engine: filledText, options: optional(fields<StartOptions>({ ...keyed, input: optional(aJson) })) }),
  list: lists({
    options: optional(
      fields<ExecutionListOptions>({
        ...request,
        ...list,
        workspace,
        state: optional(aState),
        engine: optional(filledText),
      }),
    ),
  }),
  get: answers({ executionId: id, options: noOptions }),
  cancel: answers({ executionId: id, options: noOptions }),
  wait: answers({ executionId: id, options: noOptions }),
  log: lists({
    executionId: id,
    options: optional(
      fields<LogListOptions>({ ...request, after: optional(wholeNumber(0)), pageSize: optional(PAGE_SIZE) }),
    ),
  }),
  follow: streams({
    executionId: id,
    options: optional(
      fields<LogFollowOptions>({ ...request, after: optional(wholeNumber(0)), onBreak: optional(aFunction) }),
    ),
  }),
};

export const API_KEYS: Table<ApiKeys> = {
  create: answers({
    name: filledText,
    scopes: texts,
    options: optional(fields<NewApiKeyOptions>({ ...request, workspace, expiresAt: optional(aMoment) })),
  }),
  list: lists({ options: optional(fields<ApiKeyListOptions>(listIn)) }),
  revoke: answers({ keyId: id, options: noOptions }),
};

export const aTrigger = fields<TriggerDescription>({
  name: filledText,
  engine: filledText,
  on: aJsonObject,
  input: optional(aJson),
  isEnabled: optional(aBoolean),
});
export const aTriggerPatch = fields<TriggerPatch>({
  isEnabled: optional(aBoolean),
  on: optional(aJsonObject),
  input: optional(aJson),
});

export const TRIGGERS: Table<Triggers> = {
  create: answers({ description: aTrigger, options: optional(fields<NewTriggerOptions>(keyed)) }),
  list: lists({ options: optional(fields<TriggerListOptions>(listIn)) }),
  get: answers({ triggerId: id, options: noOptions }),
  update: answers({ triggerId: id, patch: aTriggerPatch, options: noOptions }),
  remove: answers({ triggerId: id, options: noOptions }),
};

export const VERSIONS: Table<Versions> = {
  list: lists({ nodeId: id, options: optional(fields<VersionListOptions>({ ...request, ...list, branch })) }),
};

export const JOURNAL: Table<Journal> = {
  list: lists({
    options: optional(
      fields<JournalListOptions>({
        ...request,
        orderBy: optional(filledText),
        nodeId: optional(id),
        since: optional(aMoment),
        by: optional(filledText),
        mount: optional(filledText),
        before: optional(aBoolean),
        after: optional(wholeNumber(0)),
        pageSize: optional(PAGE_SIZE),
        workspace,
      }),
    ),
  }),
  follow: streams({
    options: optional(
      fields<FollowOptions>({
        ...request,
        after: optional(wholeNumber(0)),
        workspace,
        pollMs: optional(wholeNumber(0)),
        onBreak: optional(aFunction),
      }),
    ),
  }),
  append: answers({ nodeId: id, kind: filledText, options: ofWrite }),
};

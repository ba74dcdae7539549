/** The arguments of each call of `calls()`, checked in the same way as those of the groups. */

import {
  aBoolean,
  aFunction,
  aJson,
  aJsonObject,
  aSignal,
  aText,
  type Fields,
  fields,
  filledText,
  hasMethods,
  optional,
  texts,
  wholeNumber,
} from "../checks.ts";
import type {
  ApiKeyOptions,
  CallOptions,
  Client,
  ContentOptions,
  ExchangeOptions,
  ExecutionListOptions,
  InstallOptions,
  JournalOptions,
  JournalStreamOptions,
  KeyOptions,
  ListOptions,
  LogOptions,
  LogStreamOptions,
  NodeListOptions,
  PageOptions,
  PathOptions,
  RestoreOptions,
  RestoreTreeOptions,
  RevisionOptions,
  StartOptions,
  UploadConditions,
  UploadOptions,
  VersionListOptions,
  WorkspaceOptions,
} from "../client.ts";
import {
  aChange,
  aHash,
  aMoment,
  answers,
  aRange,
  aSource,
  aState,
  aTrigger,
  aTriggerPatch,
  streams,
  type Table,
} from "./arguments.ts";

type Calls = Omit<Client, "features" | "gatewayTime" | "close">;
type CopyOptions = NonNullable<Parameters<Client["writeContentByReference"]>[2]>;
type CreateOptions = NonNullable<Parameters<Client["createFolder"]>[2]>;

const call: Fields<CallOptions> = { signal: optional(aSignal) };
const key: Fields<KeyOptions> = { ...call, idempotencyKey: optional(filledText) };
const where: Fields<WorkspaceOptions> = { ...call, workspace: optional(filledText) };
const revision: Fields<RevisionOptions> = { ...key, ifRevision: optional(wholeNumber(0)) };
const page: Fields<PageOptions> = {
  ...call,
  after: optional(aText),
  pageSize: optional(wholeNumber(1, 1000)),
  pageNo: optional(wholeNumber(1)),
  orderBy: optional(filledText),
};
const list: Fields<ListOptions> = { ...page, name: optional(filledText) };
const branch = optional(filledText);
const at = optional(aMoment);
const ifHead = optional(aText);
const upload: Fields<UploadOptions> = {
  ...key,
  contentHash: optional(aHash),
  contentType: optional(filledText),
  attributes: optional(aJsonObject),
  branch,
  onProgress: optional(aFunction),
};

const ofCall = optional(fields<CallOptions>(call));
const ofWorkspace = optional(fields<WorkspaceOptions>({ ...call, ...where }));
const ofPage = optional(fields<PageOptions>(page));
const ofPageIn = optional(fields<PageOptions & WorkspaceOptions>({ ...page, ...where }));
const ofKey = optional(fields<KeyOptions>(key));
const ofRevision = optional(fields<RevisionOptions>(revision));
const ofCreate = optional(fields<CreateOptions>({ ...key, attributes: optional(aJsonObject) }));
const ofUpload = optional(fields<UploadOptions>(upload));
const content = hasMethods("a content source: an object with a size and read()", "read");
const id = filledText;
const name = filledText;
const path = filledText;

export const CALLS: Table<Calls> = {
  listWorkspaces: answers({ options: ofCall }),
  findWorkspace: answers({ nameOrId: filledText, options: ofCall }),
  listWorkspacePage: answers({ options: ofPage }),
  listFolder: answers({ parentId: id, options: optional(fields<ListOptions>(list)) }),
  listNodes: answers({
    options: optional(
      fields<NodeListOptions>({
        ...list,
        ...where,
        path: optional(path),
        parentId: optional(id),
        recursive: optional(aBoolean),
        at,
        branch,
        deleted: optional(aBoolean),
      }),
    ),
  }),
  getNode: answers({ nodeId: id, options: optional(fields<CallOptions & { branch?: string }>({ ...call, branch })) }),
  getNodeByPath: answers({ path, options: optional(fields<PathOptions>({ ...where, at, branch })) }),
  getContent: answers({
    nodeId: id,
    options: optional(
      fields<ContentOptions>({
        ...call,
        version: optional(id),
        range: optional(aRange),
        ifVersion: optional(id),
        takesLoans: optional(aBoolean),
        at,
        branch,
      }),
    ),
  }),
  listVersions: answers({ nodeId: id, options: optional(fields<VersionListOptions>({ ...page, branch })) }),
  upload: answers({ parentId: id, name, content, options: ofUpload }),
  uploadByPath: answers({
    path,
    content,
    options: optional(
      fields<UploadOptions & UploadConditions & WorkspaceOptions>({
        ...upload,
        ...where,
        ifAbsent: optional(aBoolean),
        ifHead,
      }),
    ),
  }),
  writeContent: answers({
    nodeId: id,
    content,
    options: optional(fields<UploadOptions & { ifHead?: string }>({ ...upload, ifHead })),
  }),
  writeContentByReference: answers({
    nodeId: id,
    reference: aSource,
    options: optional(fields<CopyOptions>({ ...key, attributes: optional(aJsonObject), ifHead })),
  }),
  createFolder: answers({ parentId: id, name, options: ofCreate }),
  copyNode: answers({ parentId: id, name, reference: aSource, options: ofCreate }),
  patchNode: answers({ nodeId: id, patch: aChange, options: ofRevision }),
  exchangeNodes: answers({
    nodeId: id,
    other: id,
    options: optional(fields<ExchangeOptions>({ ...revision, otherRevision: optional(wholeNumber(0)) })),
  }),
  deleteNode: answers({ nodeId: id, options: ofRevision }),
  restoreNode: answers({
    nodeId: id,
    options: optional(fields<RestoreOptions>({ ...key, parentId: optional(id), name: optional(name) })),
  }),
  restoreTree: answers({
    nodeId: id,
    at: aMoment,
    options: optional(
      fields<RestoreTreeOptions>({
        ...key,
        exact: optional(aBoolean),
        plan: optional(aBoolean),
        after: optional(aText),
        pageSize: optional(wholeNumber(1, 1000)),
      }),
    ),
  }),
  readJournal: answers({
    workspaceId: optional(filledText),
    position: wholeNumber(0),
    options: optional(
      fields<JournalOptions>({
        ...where,
        nodeId: optional(id),
        since: at,
        by: optional(filledText),
        mount: optional(filledText),
        before: optional(aBoolean),
        orderBy: optional(filledText),
        after: optional(aText),
        pageSize: optional(wholeNumber(1, 1000)),
        pageNo: optional(wholeNumber(1)),
      }),
    ),
  }),
  streamJournal: streams({
    position: wholeNumber(0),
    options: optional(fields<JournalStreamOptions>({ ...where, onHeard: optional(aFunction) })),
  }),
  getAccount: answers({ options: ofCall }),
  listGrants: answers({ options: ofPageIn }),
  setGrant: answers({ account: filledText, role: filledText, options: ofWorkspace }),
  removeGrant: answers({ account: filledText, options: ofWorkspace }),
  createWorkspace: answers({ name: filledText, options: ofCall }),
  listEngines: answers({ options: ofPage }),
  getEngine: answers({ engine: filledText, options: ofCall }),
  createInstallation: answers({
    engine: filledText,
    options: optional(fields<InstallOptions>({ ...key, ...where, path: optional(path) })),
  }),
  listInstallations: answers({ options: ofPageIn }),
  getInstallation: answers({ installationId: id, options: ofCall }),
  removeInstallation: answers({ installationId: id, options: ofCall }),
  startExecution: answers({
    engine: filledText,
    options: optional(fields<StartOptions>({ ...key, ...where, input: optional(aJson) })),
  }),
  listExecutions: answers({
    options: optional(
      fields<ExecutionListOptions>({ ...page, ...where, state: optional(aState), engine: optional(filledText) }),
    ),
  }),
  getExecution: answers({ executionId: id, options: ofCall }),
  cancelExecution: answers({ executionId: id, options: ofCall }),
  readLogs: answers({
    executionId: id,
    after: wholeNumber(0),
    options: optional(
      fields<LogOptions>({ ...where, pageSize: optional(wholeNumber(1, 1000)), pageNo: optional(wholeNumber(1)) }),
    ),
  }),
  streamLogs: streams({
    executionId: id,
    after: wholeNumber(0),
    options: optional(fields<LogStreamOptions>({ ...where, onHeard: optional(aFunction) })),
  }),
  createApiKey: answers({
    name: filledText,
    scopes: texts,
    options: optional(fields<ApiKeyOptions>({ ...where, expiresAt: optional(filledText) })),
  }),
  listApiKeys: answers({ options: ofPageIn }),
  revokeApiKey: answers({ keyId: id, options: ofCall }),
  createTrigger: answers({
    description: aTrigger,
    options: optional(fields<WorkspaceOptions & KeyOptions>({ ...key, ...where })),
  }),
  listTriggers: answers({ options: ofPageIn }),
  getTrigger: answers({ triggerId: id, options: ofCall }),
  updateTrigger: answers({ triggerId: id, patch: aTriggerPatch, options: ofCall }),
  removeTrigger: answers({ triggerId: id, options: ofCall }),
  appendJournal: answers({ nodeId: id, kind: filledText, options: ofKey }),
};

/**
 * What one can ask of a gateway: typed calls over the contract, each of them one request. Each
 * rejects with a `RemoteError`. Only a call refused for its token (401) is sent once more, with a
 * new one; every other retry is the caller's: the engine's, or that of `sdk/`, which programs use.
 */
import type { ApiKeyPage, CreatedApiKey } from "../contract/api-keys.ts";
import type { Attributes, AttributesPatch } from "../contract/attributes.ts";
import type {
  Engine,
  EnginePage,
  Execution,
  ExecutionPage,
  ExecutionState,
  Installation,
  InstallationPage,
  LogEnd,
  LogLine,
  LogPage,
} from "../contract/engines.ts";
import type { Features } from "../contract/features.ts";
import type { ContentSource } from "../contract/http.ts";
import type {
  AccountStatus,
  Grant,
  GrantPage,
  JournalEntry,
  JournalPage,
  Node,
  NodePage,
  RestoredSlice,
  VersionPage,
  Workspace,
  WorkspacePage,
  WrittenNode,
} from "../contract/resources.ts";
import type { Role } from "../contract/roles.ts";
import type { NewTrigger, Trigger, TriggerPage, TriggerPatch } from "../contract/triggers.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Which page of a list. Without `pageNo`: pages of one snapshot, by `after`. */
export interface PageOptions extends CallOptions {
  /** From `next` of the page before; absent for the first page. All pages show one snapshot. */
  readonly after?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** From 1. Pages by number show the list as it is when each is asked for. */
  readonly pageNo?: number | undefined;
  /** A field of the item, `-field` for descending. */
  readonly orderBy?: string | undefined;
}

export interface ListOptions extends PageOptions {
  /** Only the node of this name. */
  readonly name?: string | undefined;
}

/** What says the workspace where neither the token nor a node id does. */
export interface WorkspaceOptions extends CallOptions {
  /** Name or id. A token bound to a workspace needs none and may name no other. */
  readonly workspace?: string | undefined;
}

export interface NodeListOptions extends ListOptions, WorkspaceOptions {
  /** The folder, by one of the two. Neither: the root. */
  readonly path?: string | undefined;
  readonly parentId?: string | undefined;
  /** All that is below the folder instead of its children. */
  readonly recursive?: boolean | undefined;
  /** A moment of the past, ISO 8601: the list as it was then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
  /** What was deleted from the folder, a deleted one too, instead of what is there; each with `deletedAt` and `deletedBy`. */
  readonly deleted?: boolean | undefined;
}

export interface VersionListOptions extends PageOptions {
  /** Only those written on the branch. */
  readonly branch?: string | undefined;
}

/** Which entries; of those that all of it says, if more than one is named. */
export interface JournalFilter {
  /** Of this node, also of a deleted one. */
  readonly nodeId?: string | undefined;
  /** Of this moment, ISO 8601, and later. */
  readonly since?: string | undefined;
  /** Of the account of this name. */
  readonly by?: string | undefined;
  /** Of the mount that calls itself so. */
  readonly mount?: string | undefined;
}

export interface JournalOptions extends WorkspaceOptions, JournalFilter {
  /** Whether entries say what their nodes were `before`. */
  readonly before?: boolean | undefined;
  /** A field of the entry, `-field` for descending. Default: position. */
  readonly orderBy?: string | undefined;
  /** From `next` of the page before, instead of the position. */
  readonly after?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** Page of the entries after the position, from 1. */
  readonly pageNo?: number | undefined;
}

export interface JournalStreamOptions extends WorkspaceOptions {
  /** Called with everything that comes, heartbeats too. */
  readonly onHeard?: (() => void) | undefined;
}

export interface ContentOptions extends CallOptions {
  /** Default: the head. */
  readonly version?: string | undefined;
  /** Bytes [start, end). Absent: the whole content. */
  readonly range?: { readonly start: number; readonly end: number } | undefined;
  /** With `range`: only if the content is still of this version, else the whole content comes. */
  readonly ifVersion?: string | undefined;
  /** A moment of the past, ISO 8601: the content the file had then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
}

export interface Content {
  /** Id of the version the bytes are of. */
  readonly version: string;
  /** Where `bytes` begin: 0 when the gateway ignored the range. */
  readonly start: number;
  /** Size of the whole content. */
  readonly size: number;
  /** As the gateway says it. */
  readonly mimeType?: string | undefined;
  /** To be read to the end or returned. Fails with a RemoteError when broken off or short. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface UploadOptions extends CallOptions {
  readonly idempotencyKey?: string | undefined;
  /** Lower-case hex SHA-256. */
  readonly contentHash?: string | undefined;
  /** Default: the gateway looks at the content. */
  readonly contentType?: string | undefined;
  /** Come with the content, in one change. */
  readonly attributes?: Attributes | undefined;
  /** The head to move. Default: the gateway's main branch. */
  readonly branch?: string | undefined;
  /** Bytes of the content handed to the network so far, for progress; from 0 again with another try. */
  readonly onProgress?: ((sent: number) => void) | undefined;
}

export interface KeyOptions extends CallOptions {
  /** A repeated request with the key of the first gets the first answer. */
  readonly idempotencyKey?: string | undefined;
}

export interface RevisionOptions extends KeyOptions {
  /** Only if the node's revision is still this; else "changed" (412), with the node as it is in `error.node`. */
  readonly ifRevision?: number | undefined;
}

export interface RestoreOptions extends KeyOptions {
  /** Where it comes back to. Default: where it was deleted. */
  readonly parentId?: string | undefined;
  readonly name?: string | undefined;
}

export interface RestoreTreeOptions extends KeyOptions {
  /** Deletes what was not there then. */
  readonly exact?: boolean | undefined;
  /** Does nothing, but says what it would. */
  readonly plan?: boolean | undefined;
  /** From `next` of the answer before; absent at first. */
  readonly after?: string | undefined;
}

export interface ExchangeOptions extends RevisionOptions {
  /** The same for the other node. */
  readonly otherRevision?: number | undefined;
}

/** A version of a file; without `version` its head. */
export interface CopySource {
  readonly copyOf: string;
  readonly version?: string | undefined;
}

/** What is not named stays. Attributes merge by key, null removes one. */
export interface NodeChange {
  readonly parentId?: string | undefined;
  readonly name?: string | undefined;
  readonly attributes?: AttributesPatch | undefined;
}

export interface PathOptions extends WorkspaceOptions {
  /** A moment of the past, ISO 8601: what had the path then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
}

export interface UploadConditions {
  /** Only if nothing has the name; else "changed" (412) with the node that has it in `error.node`. */
  readonly ifAbsent?: boolean | undefined;
  /** Only if the file is there and this is its head; else "changed" (412). */
  readonly ifHead?: string | undefined;
}

export interface InstallOptions extends WorkspaceOptions, KeyOptions {
  /** Where its folder is. Default: "/Engines/NAME". */
  readonly path?: string | undefined;
}

export interface StartOptions extends WorkspaceOptions, KeyOptions {
  /** Any JSON that the engine takes. */
  readonly input?: unknown;
}

export interface ExecutionListOptions extends PageOptions, WorkspaceOptions {
  readonly state?: ExecutionState | undefined;
  /** Name or id. */
  readonly engine?: string | undefined;
}

export interface LogOptions extends WorkspaceOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** Page of the lines after the number, from 1. */
  readonly pageNo?: number | undefined;
}

export interface LogStreamOptions extends WorkspaceOptions {
  /** Called with everything that comes, heartbeats too. */
  readonly onHeard?: (() => void) | undefined;
}

/** A line, or how the execution ended, which is the last. */
export type LogEvent =
  | { readonly line: LogLine; readonly end?: never }
  | { readonly line?: never; readonly end: LogEnd };

export interface ApiKeyOptions extends WorkspaceOptions {
  /** ISO 8601. Without one it does not expire. */
  readonly expiresAt?: string | undefined;
}

export type TriggerDescription = Omit<NewTrigger, "idempotencyKey">;

export interface Client {
  /** What the gateway can do; see profile.ts. */
  readonly features: Features;

  listWorkspaces(options?: CallOptions): Promise<Workspace[]>;
  /** By name or id; undefined when the token shows none such. */
  findWorkspace(nameOrId: string, options?: CallOptions): Promise<Workspace | undefined>;
  listWorkspacePage(options?: PageOptions): Promise<WorkspacePage>;
  /** "conflict" (409) when the name is taken. */
  createWorkspace(name: string, options?: CallOptions): Promise<Workspace>;

  listFolder(parentId: string, options?: ListOptions): Promise<NodePage>;
  listNodes(options?: NodeListOptions): Promise<NodePage>;
  getNode(nodeId: string, options?: CallOptions & { branch?: string | undefined }): Promise<Node>;
  /** "/" is the root. As late as the gateway's path index. */
  getNodeByPath(path: string, options?: PathOptions): Promise<Node>;
  getContent(nodeId: string, options?: ContentOptions): Promise<Content>;
  listVersions(nodeId: string, options?: VersionListOptions): Promise<VersionPage>;

  /** A new file below a known folder. `changed` (412) with the node that has the name. */
  upload(parentId: string, name: string, content: ContentSource, options?: UploadOptions): Promise<WrittenNode>;
  /** A file by its path, its folders made: a new one (201), or a new version of the one that is there (200). */
  uploadByPath(
    path: string,
    content: ContentSource,
    options?: UploadOptions & UploadConditions & WorkspaceOptions,
  ): Promise<WrittenNode>;
  /** A new version, if the head is still `ifHead`; else `changed` with the node as it is. */
  writeContent(
    nodeId: string,
    content: ContentSource,
    options?: UploadOptions & { ifHead?: string | undefined },
  ): Promise<WrittenNode>;
  /** A new version with content the gateway has. */
  writeContentByReference(
    nodeId: string,
    reference: CopySource,
    options?: CallOptions & {
      ifHead?: string | undefined;
      idempotencyKey?: string | undefined;
      attributes?: Attributes | undefined;
    },
  ): Promise<WrittenNode>;
  createFolder(
    parentId: string,
    name: string,
    options?: CallOptions & { idempotencyKey?: string | undefined; attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  copyNode(
    parentId: string,
    name: string,
    reference: CopySource,
    options?: CallOptions & { idempotencyKey?: string | undefined; attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  /** Move, rename, change attributes, if the revision is still `ifRevision`. */
  patchNode(nodeId: string, patch: NodeChange, options?: RevisionOptions): Promise<WrittenNode>;
  /** The two take each other's place, if both revisions are still these; else `changed` with the one that is not. */
  exchangeNodes(nodeId: string, other: string, options?: ExchangeOptions): Promise<WrittenNode>;
  deleteNode(nodeId: string, options?: RevisionOptions): Promise<WrittenNode>;
  restoreNode(nodeId: string, options?: RestoreOptions): Promise<WrittenNode>;
  /** A part of it, and where to go on. `at`: ISO 8601. Asked again, it does what is left to be done. */
  restoreTree(nodeId: string, at: string, options?: RestoreTreeOptions): Promise<RestoredSlice>;

  /** Entries after `position` (0: from the start), oldest first, at most `pageSize`. `asOf`: how far the journal shows. */
  readJournal(workspaceId: string | undefined, position: number, options?: JournalOptions): Promise<JournalPage>;
  /** Entries after `position` as they come, without end. The request is sent by the first `next`. */
  streamJournal(position: number, options?: JournalStreamOptions): AsyncGenerator<JournalEntry, void, undefined>;
  appendJournal(nodeId: string, kind: string, options?: KeyOptions): Promise<JournalEntry>;

  /** Whose the token is, what it may do and where. */
  getAccount(options?: CallOptions): Promise<AccountStatus>;
  listGrants(options?: PageOptions & WorkspaceOptions): Promise<GrantPage>;
  /** `account`: name or id. */
  setGrant(account: string, role: Role, options?: WorkspaceOptions): Promise<Grant>;
  removeGrant(account: string, options?: WorkspaceOptions): Promise<void>;

  listEngines(options?: PageOptions): Promise<EnginePage>;
  /** By id or name. */
  getEngine(engine: string, options?: CallOptions): Promise<Engine>;
  /** `engine`: name or id. */
  createInstallation(engine: string, options?: InstallOptions): Promise<Installation>;
  listInstallations(options?: PageOptions & WorkspaceOptions): Promise<InstallationPage>;
  getInstallation(installationId: string, options?: CallOptions): Promise<Installation>;
  removeInstallation(installationId: string, options?: CallOptions): Promise<void>;
  /** `engine`: name or id of one that is installed. */
  startExecution(engine: string, options?: StartOptions): Promise<Execution>;
  /** Newest first. */
  listExecutions(options?: ExecutionListOptions): Promise<ExecutionPage>;
  getExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  cancelExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  /** Lines after the one of a number (0: from the first), oldest first. */
  readLogs(executionId: string, after: number, options?: LogOptions): Promise<LogPage>;
  /** Lines after the one of a number as they come, then the end. The request is sent by the first `next`. */
  streamLogs(executionId: string, after: number, options?: LogStreamOptions): AsyncGenerator<LogEvent, void, undefined>;

  /** The key is in the answer, this once. */
  createApiKey(name: string, scopes: readonly string[], options?: ApiKeyOptions): Promise<CreatedApiKey>;
  listApiKeys(options?: PageOptions & WorkspaceOptions): Promise<ApiKeyPage>;
  revokeApiKey(keyId: string, options?: CallOptions): Promise<void>;

  createTrigger(description: TriggerDescription, options?: WorkspaceOptions & KeyOptions): Promise<Trigger>;
  listTriggers(options?: PageOptions & WorkspaceOptions): Promise<TriggerPage>;
  getTrigger(triggerId: string, options?: CallOptions): Promise<Trigger>;
  updateTrigger(triggerId: string, patch: TriggerPatch, options?: CallOptions): Promise<Trigger>;
  removeTrigger(triggerId: string, options?: CallOptions): Promise<void>;

  close(): Promise<void>;
}

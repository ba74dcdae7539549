/**
 * The calls of a gateway: typed, over the contract, each of them one request. Each call rejects with a `RemoteError`.
 * Only a call that was refused for its token (401) is sent again, with a new token. All other retries are up to the
 * caller: the engine, or `sdk/`, which programs use.
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
import type { GatewayTime } from "../lib/clocks.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Which page of a list. Without `pageNo`, pages belong to one snapshot and follow each other by `after`. */
export interface PageOptions extends CallOptions {
  /** The `next` of the page before; absent for the first page. All these pages show one snapshot. */
  readonly after?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** From 1. A page by number shows the list as it is when the page is asked for. */
  readonly pageNo?: number | undefined;
  /** A field of the item; `-field` sorts in descending order. */
  readonly orderBy?: string | undefined;
}

export interface ListOptions extends PageOptions {
  /** Only the node with this name. */
  readonly name?: string | undefined;
}

/** The workspace of a call that neither a token nor a node id assigns to one. */
export interface WorkspaceOptions extends CallOptions {
  /** Name or id. A token that is bound to a workspace needs none, and may name no other. */
  readonly workspace?: string | undefined;
}

export interface NodeListOptions extends ListOptions, WorkspaceOptions {
  /** The folder, by one of these two. Without both: the root. */
  readonly path?: string | undefined;
  readonly parentId?: string | undefined;
  /** All nodes below the folder instead of its children. */
  readonly recursive?: boolean | undefined;
  /** A moment of the past, ISO 8601: the list as it was then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
  /**
   * The nodes that were deleted from the folder, also from a deleted one, instead of those in it. Each has `deletedAt`
   * and `deletedBy`.
   */
  readonly deleted?: boolean | undefined;
}

export interface NodeStreamOptions
  extends WorkspaceOptions,
    Pick<NodeListOptions, "path" | "parentId" | "at" | "branch"> {
  /** The `after` of a part: the stream goes on there, in the same snapshot. */
  readonly after?: string | undefined;
}

/** Children of one folder, all of them or some in a row, in the order of names. */
export interface NodesPart {
  /** Id of their folder. */
  readonly folder: string;
  /** Position of the snapshot. */
  readonly asOf: number;
  /** A stream `after` this goes on with this part. */
  readonly after: string;
  readonly items: readonly Node[];
}

export interface VersionListOptions extends PageOptions {
  /** Only versions that were written on the branch. */
  readonly branch?: string | undefined;
}

/** Which entries. With several conditions, an entry must meet all of them. */
export interface JournalFilter {
  /** Entries of this node, also of a deleted one. */
  readonly nodeId?: string | undefined;
  /** Entries of this moment and later, ISO 8601. */
  readonly since?: string | undefined;
  /** Entries of the account with this name. */
  readonly by?: string | undefined;
  /** Entries of the mount with this name. */
  readonly mount?: string | undefined;
}

export interface JournalOptions extends WorkspaceOptions, JournalFilter {
  /** Entries also say what their nodes were `before`. */
  readonly before?: boolean | undefined;
  /** A field of the entry; `-field` sorts in descending order. Default: position. */
  readonly orderBy?: string | undefined;
  /** The `next` of the page before, instead of the position. */
  readonly after?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** The page's number among the entries after the position, from 1. */
  readonly pageNo?: number | undefined;
}

export interface JournalStreamOptions extends WorkspaceOptions {
  /** Called with everything that arrives, also heartbeats. */
  readonly onHeard?: (() => void) | undefined;
}

export interface ContentOptions extends CallOptions {
  /** Default: the head. */
  readonly version?: string | undefined;
  /** Bytes [start, end). Absent: the whole content. */
  readonly range?: { readonly start: number; readonly end: number } | undefined;
  /** With `range`: only if the content still has this version; otherwise the whole content comes. */
  readonly ifVersion?: string | undefined;
  /** A moment of the past, ISO 8601: the content that the file had then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
  /**
   * The reader of `bytes` is done with each chunk, or has copied it, in the turn in which the chunk comes. The
   * connection may then use its memory again.
   */
  readonly takesLoans?: boolean | undefined;
}

export interface Content {
  /** Id of the version that the bytes belong to. */
  readonly version: string;
  /** The offset of the first byte: 0 when the gateway ignored the range. */
  readonly start: number;
  /** Size of the whole content. */
  readonly size: number;
  /** The type that the gateway tells. */
  readonly mimeType?: string | undefined;
  /** Must be read to the end or returned. Fails with a RemoteError when it breaks off or is too short. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface UploadOptions extends CallOptions {
  readonly idempotencyKey?: string | undefined;
  /** Lower-case hex SHA-256. */
  readonly contentHash?: string | undefined;
  /** Default: the gateway determines it from the content. */
  readonly contentType?: string | undefined;
  /** Attributes that are set together with the content, in one change. */
  readonly attributes?: Attributes | undefined;
  /** The branch whose head moves. Default: the gateway's main branch. */
  readonly branch?: string | undefined;
  /** Bytes of the content that were handed to the network so far. Begins at 0 again with each try. */
  readonly onProgress?: ((sent: number) => void) | undefined;
}

export interface KeyOptions extends CallOptions {
  /** A request that is repeated with the same key gets the answer of the first. */
  readonly idempotencyKey?: string | undefined;
}

export interface RevisionOptions extends KeyOptions {
  /**
   * Only if the node's revision is still this one; otherwise "changed" (412), with the node as it is in `error.node`.
   */
  readonly ifRevision?: number | undefined;
}

export interface RestoreOptions extends KeyOptions {
  /** The folder it comes back to. Default: the one it was deleted from. */
  readonly parentId?: string | undefined;
  readonly name?: string | undefined;
}

export interface RestoreTreeOptions extends KeyOptions {
  /** Also deletes nodes that did not exist at that moment. */
  readonly exact?: boolean | undefined;
  /** Changes nothing, but says what would be done. */
  readonly plan?: boolean | undefined;
  /** The `next` of the answer before; absent at first. */
  readonly after?: string | undefined;
  /** The largest number of items in an answer, 1..1000. Items of one node come together. */
  readonly pageSize?: number | undefined;
}

export interface ExchangeOptions extends RevisionOptions {
  /** The same for the other node. */
  readonly otherRevision?: number | undefined;
}

/** A version of a file. Without `version`: its head. */
export interface CopySource {
  readonly copyOf: string;
  readonly version?: string | undefined;
}

/** Fields that are not named stay. Attributes merge by key; null removes one. */
export interface NodeChange {
  readonly parentId?: string | undefined;
  readonly name?: string | undefined;
  readonly attributes?: AttributesPatch | undefined;
}

export interface PathOptions extends WorkspaceOptions {
  /** A moment of the past, ISO 8601: the node that had the path then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
}

export interface UploadConditions {
  /** Only if the name is free; otherwise "changed" (412), with the node that has it in `error.node`. */
  readonly ifAbsent?: boolean | undefined;
  /** Only if the file exists and this is its head; otherwise "changed" (412). */
  readonly ifHead?: string | undefined;
}

export interface InstallOptions extends WorkspaceOptions, KeyOptions {
  /** Path of its folder. Default: "/Engines/NAME". */
  readonly path?: string | undefined;
}

export interface StartOptions extends WorkspaceOptions, KeyOptions {
  /** Any JSON that the engine accepts. */
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
  /** The page's number among the lines after `after`, from 1. */
  readonly pageNo?: number | undefined;
}

export interface LogStreamOptions extends WorkspaceOptions {
  /** Called with everything that arrives, also heartbeats. */
  readonly onHeard?: (() => void) | undefined;
}

/** A line of the log, or the end of the execution, which comes last. */
export type LogEvent =
  | { readonly line: LogLine; readonly end?: never }
  | { readonly line?: never; readonly end: LogEnd };

export interface ApiKeyOptions extends WorkspaceOptions {
  /** ISO 8601. Absent: the key does not expire. */
  readonly expiresAt?: string | undefined;
}

export type TriggerDescription = Omit<NewTrigger, "idempotencyKey">;

export interface Client {
  /** The features of the gateway; see profile.ts. */
  readonly features: Features;
  /** The gateway's clock; see gateway-clock.ts. */
  gatewayTime(): GatewayTime;

  listWorkspaces(options?: CallOptions): Promise<Workspace[]>;
  /** By name or id. Undefined when the token shows no such workspace. */
  findWorkspace(nameOrId: string, options?: CallOptions): Promise<Workspace | undefined>;
  listWorkspacePage(options?: PageOptions): Promise<WorkspacePage>;
  /** "conflict" (409) when the name is taken. */
  createWorkspace(name: string, options?: CallOptions): Promise<Workspace>;

  listFolder(parentId: string, options?: ListOptions): Promise<NodePage>;
  listNodes(options?: NodeListOptions): Promise<NodePage>;
  /**
   * All nodes below a folder, in one snapshot. Folders come before those in them; the parts of a folder follow each
   * other, and an empty folder is a part without items. A part comes when all of it has arrived. The first `next` sends
   * the request. Fails with a RemoteError, "server" when the stream ends before its end; `hasNoNodeStream` says whether
   * the gateway has no such stream.
   */
  streamNodes(options?: NodeStreamOptions): AsyncGenerator<NodesPart, void, undefined>;
  getNode(nodeId: string, options?: CallOptions & { branch?: string | undefined }): Promise<Node>;
  /** "/" is the root. The answer lags as the gateway's path index does. "notFound" when the path has no node. */
  getNodeByPath(path: string, options?: PathOptions): Promise<Node>;
  getContent(nodeId: string, options?: ContentOptions): Promise<Content>;
  listVersions(nodeId: string, options?: VersionListOptions): Promise<VersionPage>;

  /** A new file in a known folder. "changed" (412) with the node that has the name. */
  upload(parentId: string, name: string, content: ContentSource, options?: UploadOptions): Promise<WrittenNode>;
  /**
   * Writes a file by its path and makes missing folders: a new file (201), or a new version of an existing one (200).
   * "changed" (412) when a condition does not hold.
   */
  uploadByPath(
    path: string,
    content: ContentSource,
    options?: UploadOptions & UploadConditions & WorkspaceOptions,
  ): Promise<WrittenNode>;
  /** A new version, if the head is still `ifHead`; otherwise "changed" (412) with the node as it is. */
  writeContent(
    nodeId: string,
    content: ContentSource,
    options?: UploadOptions & { ifHead?: string | undefined },
  ): Promise<WrittenNode>;
  /** A new version with content that the gateway has already. "changed" (412) as above. */
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
  /**
   * Moves, renames, changes attributes, if the revision is still `ifRevision`; otherwise "changed" (412). "conflict"
   * (409) when the name is taken.
   */
  patchNode(nodeId: string, patch: NodeChange, options?: RevisionOptions): Promise<WrittenNode>;
  /**
   * The two nodes take each other's place, if both revisions are still these; otherwise "changed" (412) with the node
   * that has another one.
   */
  exchangeNodes(nodeId: string, other: string, options?: ExchangeOptions): Promise<WrittenNode>;
  deleteNode(nodeId: string, options?: RevisionOptions): Promise<WrittenNode>;
  restoreNode(nodeId: string, options?: RestoreOptions): Promise<WrittenNode>;
  /** Does a part of the restoration, and returns where to go on. `at`: ISO 8601. A repeated call does the rest. */
  restoreTree(nodeId: string, at: string, options?: RestoreTreeOptions): Promise<RestoredSlice>;

  /**
   * Entries after `position` (0: from the start), oldest first, at most `pageSize`. `asOf`: the position up to which
   * the journal shows everything.
   */
  readJournal(workspaceId: string | undefined, position: number, options?: JournalOptions): Promise<JournalPage>;
  /**
   * Entries after `position` as they come, without end. The first `next` sends the request. Rejects with a RemoteError
   * when the stream breaks.
   */
  streamJournal(position: number, options?: JournalStreamOptions): AsyncGenerator<JournalEntry, void, undefined>;
  appendJournal(nodeId: string, kind: string, options?: KeyOptions): Promise<JournalEntry>;

  /** The account of the token, its scopes and its workspaces. */
  getAccount(options?: CallOptions): Promise<AccountStatus>;
  listGrants(options?: PageOptions & WorkspaceOptions): Promise<GrantPage>;
  /** `account`: name or id. "conflict" when the workspace would lose its only owner. */
  setGrant(account: string, role: Role, options?: WorkspaceOptions): Promise<Grant>;
  removeGrant(account: string, options?: WorkspaceOptions): Promise<void>;

  listEngines(options?: PageOptions): Promise<EnginePage>;
  /** By id or name. */
  getEngine(engine: string, options?: CallOptions): Promise<Engine>;
  /** `engine`: name or id. "conflict" when it is installed already. */
  createInstallation(engine: string, options?: InstallOptions): Promise<Installation>;
  listInstallations(options?: PageOptions & WorkspaceOptions): Promise<InstallationPage>;
  getInstallation(installationId: string, options?: CallOptions): Promise<Installation>;
  removeInstallation(installationId: string, options?: CallOptions): Promise<void>;
  /** `engine`: name or id of an installed engine; "conflict" when it is not installed. */
  startExecution(engine: string, options?: StartOptions): Promise<Execution>;
  /** The newest comes first. */
  listExecutions(options?: ExecutionListOptions): Promise<ExecutionPage>;
  getExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  cancelExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  /** Lines after line number `after` (0: from the first), oldest first. */
  readLogs(executionId: string, after: number, options?: LogOptions): Promise<LogPage>;
  /** Lines after line number `after` as they come, then the end. The first `next` sends the request. */
  streamLogs(executionId: string, after: number, options?: LogStreamOptions): AsyncGenerator<LogEvent, void, undefined>;

  /** The key itself is only in this answer. */
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

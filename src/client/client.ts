/**
 * The calls of a gateway, typed by the contract. Each is one request and rejects with a `RemoteError`. Only a call that
 * was refused for its token (401) is sent again, with a new token. All other retries are up to the caller: the engine,
 * or `sdk/`, which programs use.
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

/** The page of a list that is asked for. Without `pageNo`, pages show the list at one position and follow each other by `after`. */
export interface PageOptions extends CallOptions {
  /** The `next` of the page before; absent for the first page. All these pages show the list at one position. */
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

/** The workspace of a call whose workspace follows neither from the token nor from a node id. */
export interface WorkspaceOptions extends CallOptions {
  /** Name or id. A token that is bound to a workspace needs none, and may name no other. */
  readonly workspace?: string | undefined;
}

export interface NodeListOptions extends ListOptions, WorkspaceOptions {
  /** The folder, by its path or its id. Without both: the root. */
  readonly path?: string | undefined;
  readonly parentId?: string | undefined;
  /** All nodes below the folder instead of its children. */
  readonly recursive?: boolean | undefined;
  /** A moment of the past, ISO 8601: the list as it was then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
  /**
   * The nodes that were deleted from the folder, instead of those in it. Each has `deletedAt` and `deletedBy`. The
   * folder itself may be deleted.
   */
  readonly deleted?: boolean | undefined;
}

export interface NodeStreamOptions
  extends WorkspaceOptions,
    Pick<NodeListOptions, "path" | "parentId" | "at" | "branch"> {
  /** The `after` of a part: the stream goes on there, at the same position. */
  readonly after?: string | undefined;
}

/** Some or all children of one folder, in the order of names. */
export interface NodesPart {
  /** Id of their folder. */
  readonly folder: string;
  /** The position at which the nodes are shown. */
  readonly asOf: number;
  /** A stream `after` this goes on with this part. */
  readonly after: string;
  readonly items: readonly Node[];
}

export interface VersionListOptions extends PageOptions {
  /** Only versions that were written on the branch. */
  readonly branch?: string | undefined;
}

/** Conditions on entries. An entry must meet all that are given. */
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
  /** With `range`: the range comes only if the content still has this version, else the whole content. */
  readonly ifVersion?: string | undefined;
  /** A moment of the past, ISO 8601: the content that the file had then. */
  readonly at?: string | undefined;
  readonly branch?: string | undefined;
  /**
   * True if the reader of `bytes` is done with each chunk, or has copied it, in the turn in which the chunk comes. The
   * connection then uses the chunk's memory again.
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
  /**
   * Must be read to the end or returned. Fails with a RemoteError: "offline" or "silent" when the connection breaks,
   * "malformed" when the bytes are too few or too many.
   */
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
  /** Called with the number of bytes of the content that were handed to the network. Each try counts from 0. */
  readonly onProgress?: ((sent: number) => void) | undefined;
}

export interface KeyOptions extends CallOptions {
  /**
   * A request that is repeated with the same key gets the answer of the first. "invalid" (field "idempotencyKey"): the
   * key was used for another request.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface RevisionOptions extends KeyOptions {
  /**
   * Only if the node's revision is still this one; otherwise "changed" (412), with the present node in `error.node`.
   */
  readonly ifRevision?: number | undefined;
}

export interface RestoreOptions extends KeyOptions {
  /** The folder it comes back to. Default: the one it was deleted from. */
  readonly parentId?: string | undefined;
  readonly name?: string | undefined;
}

export interface RestoreTreeOptions extends KeyOptions {
  /**
   * Deletes nodes that did not exist at that moment, besides restoring the others. Takes the scope node.file.delete
   * ("forbidden").
   */
  readonly exact?: boolean | undefined;
  /** Changes nothing: the items are the actions that would be taken. */
  readonly plan?: boolean | undefined;
  /** The `next` of the answer before; absent at first. */
  readonly after?: string | undefined;
  /** The largest number of items in an answer, 1..1000. Items of one node come together. */
  readonly pageSize?: number | undefined;
}

export interface ExchangeOptions extends RevisionOptions {
  /** Like `ifRevision`, for the other node. */
  readonly otherRevision?: number | undefined;
}

/** A version of a file. Without `version`: its head. */
export interface CopySource {
  readonly copyOf: string;
  readonly version?: string | undefined;
}

/** Fields that are absent stay as they are. Attributes merge by key; null removes one. */
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

/**
 * Any call may reject with "offline", "silent", "server", "malformed", "throttled", "unauthorized", "forbidden",
 * "invalid" and "aborted" (`Gateway` in connect.ts explains them). A call that names something which does not exist,
 * or which the token does not show, rejects with "notFound". Further codes stand at each call; `sdk/` has the details.
 */
export interface Client {
  /** The features of the gateway; see profile.ts. */
  readonly features: Features;
  /** The gateway's clock; see gateway-clock.ts. */
  gatewayTime(): GatewayTime;

  listWorkspaces(options?: CallOptions): Promise<Workspace[]>;
  /** By name or id. Undefined: the token shows no such workspace. */
  findWorkspace(nameOrId: string, options?: CallOptions): Promise<Workspace | undefined>;
  listWorkspacePage(options?: PageOptions): Promise<WorkspacePage>;
  /** "conflict" (409): the name is taken. */
  createWorkspace(name: string, options?: CallOptions): Promise<Workspace>;

  /** "malformed" also when the answer has nodes of another folder. */
  listFolder(parentId: string, options?: ListOptions): Promise<NodePage>;
  listNodes(options?: NodeListOptions): Promise<NodePage>;
  /**
   * All nodes below a folder, at one position. A folder comes before its content, and the parts of a folder follow each
   * other. An empty folder is a part without items. A part comes when all of it has arrived. The first `next` sends the
   * request. "server" also when the stream was cut off. `hasNoNodeStream` of an error tells whether the gateway has no
   * such stream.
   */
  streamNodes(options?: NodeStreamOptions): AsyncGenerator<NodesPart, void, undefined>;
  /** "notFound" also for a deleted node. */
  getNode(nodeId: string, options?: CallOptions & { branch?: string | undefined }): Promise<Node>;
  /** "/" is the root. The answer lags as the gateway's path index does. */
  getNodeByPath(path: string, options?: PathOptions): Promise<Node>;
  /**
   * Resolves when the answer begins. "notFound" also when the content was thinned (410). A range behind the end of the
   * content has no bytes.
   */
  getContent(nodeId: string, options?: ContentOptions): Promise<Content>;
  /** The versions of a file, also of a deleted one. "malformed" also when the answer has versions of another node. */
  listVersions(nodeId: string, options?: VersionListOptions): Promise<VersionPage>;

  /**
   * A new file in a known folder. "changed" (412): a node has the name; it is in `error.node`. This and all other
   * writes of content: "tooLarge", "overQuota", and "aborted" when the content cannot be read.
   */
  upload(parentId: string, name: string, content: ContentSource, options?: UploadOptions): Promise<WrittenNode>;
  /**
   * Writes a file by its path and makes missing folders: a new file (201), or a new version of an existing one (200).
   * "changed" (412): a condition does not hold. "conflict" (409): a folder has the name, or a name on the path is a
   * file.
   */
  uploadByPath(
    path: string,
    content: ContentSource,
    options?: UploadOptions & UploadConditions & WorkspaceOptions,
  ): Promise<WrittenNode>;
  /** A new version, if the head is still `ifHead`; otherwise "changed" (412) with the present node. */
  writeContent(
    nodeId: string,
    content: ContentSource,
    options?: UploadOptions & { ifHead?: string | undefined },
  ): Promise<WrittenNode>;
  /** A new version with content that the gateway has. "changed" (412) as above. "notFound" also for thinned content. */
  writeContentByReference(
    nodeId: string,
    reference: CopySource,
    options?: CallOptions & {
      ifHead?: string | undefined;
      idempotencyKey?: string | undefined;
      attributes?: Attributes | undefined;
    },
  ): Promise<WrittenNode>;
  /** "conflict" (409): a node has the name; it is in `error.node`. "tooLarge": the attributes. */
  createFolder(
    parentId: string,
    name: string,
    options?: CallOptions & { idempotencyKey?: string | undefined; attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  /**
   * Copies a file, or a folder with all below it. "conflict" (409) as above. "overQuota". "tooLarge" also for a folder
   * with too many nodes.
   */
  copyNode(
    parentId: string,
    name: string,
    reference: CopySource,
    options?: CallOptions & { idempotencyKey?: string | undefined; attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  /**
   * Moves, renames, changes attributes, if the revision is still `ifRevision`; otherwise "changed" (412). "conflict"
   * (409): a node has the name. "tooLarge": the attributes.
   */
  patchNode(nodeId: string, patch: NodeChange, options?: RevisionOptions): Promise<WrittenNode>;
  /**
   * The two nodes take each other's place, if their revisions are still the given ones; otherwise "changed" (412) with
   * the node that has another one.
   */
  exchangeNodes(nodeId: string, other: string, options?: ExchangeOptions): Promise<WrittenNode>;
  /** "conflict" (409): the folder is not empty. "changed" (412) as above. */
  deleteNode(nodeId: string, options?: RevisionOptions): Promise<WrittenNode>;
  /**
   * "conflict" (409): the node is not deleted, the name is taken, or the folder is deleted; the node in the way is in
   * `error.node`. "notFound" also when the node was removed for good (410). "overQuota".
   */
  restoreNode(nodeId: string, options?: RestoreOptions): Promise<WrittenNode>;
  /**
   * Does a part of the restoration; the next call goes on with `after`. `at`: ISO 8601. "notFound" also when the node
   * did not exist then. "conflict" (409): its folder is deleted. "overQuota".
   */
  restoreTree(nodeId: string, at: string, options?: RestoreTreeOptions): Promise<RestoredSlice>;

  /**
   * Entries after `position` (0: from the start), oldest first, at most `pageSize`. `asOf`: the position up to which
   * the journal shows everything. "invalid" (field "after"): the gateway has not reached the position.
   */
  readJournal(workspaceId: string | undefined, position: number, options?: JournalOptions): Promise<JournalPage>;
  /**
   * Entries after `position` as they come. Ends when the gateway ends the stream. The first `next` sends the request.
   * "offline" or "silent": the stream broke. "invalid" (field "after") as above.
   */
  streamJournal(position: number, options?: JournalStreamOptions): AsyncGenerator<JournalEntry, void, undefined>;
  /** Records an activity. "invalid" (field "kind"): it is the kind of a change. "notFound" also for a deleted node. */
  appendJournal(nodeId: string, kind: string, options?: KeyOptions): Promise<JournalEntry>;

  /** The account of the token, its scopes and its workspaces. */
  getAccount(options?: CallOptions): Promise<AccountStatus>;
  listGrants(options?: PageOptions & WorkspaceOptions): Promise<GrantPage>;
  /** `account`: name or id. "conflict": the workspace would lose its only owner. */
  setGrant(account: string, role: Role, options?: WorkspaceOptions): Promise<Grant>;
  /** "conflict" as above. No error if the account has no role. */
  removeGrant(account: string, options?: WorkspaceOptions): Promise<void>;

  listEngines(options?: PageOptions): Promise<EnginePage>;
  /** By id or name. */
  getEngine(engine: string, options?: CallOptions): Promise<Engine>;
  /** `engine`: name or id. "conflict": it is installed already, or a name on the folder's path is a file. */
  createInstallation(engine: string, options?: InstallOptions): Promise<Installation>;
  listInstallations(options?: PageOptions & WorkspaceOptions): Promise<InstallationPage>;
  getInstallation(installationId: string, options?: CallOptions): Promise<Installation>;
  removeInstallation(installationId: string, options?: CallOptions): Promise<void>;
  /**
   * `engine`: name or id. "conflict": it is not installed, or the gateway runs no engines. "invalid": the engine does
   * not accept the input. "tooLarge": the input. "throttled" also when too many executions wait.
   */
  startExecution(engine: string, options?: StartOptions): Promise<Execution>;
  /** The newest comes first. */
  listExecutions(options?: ExecutionListOptions): Promise<ExecutionPage>;
  getExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  /** An execution that has ended stays as it is. */
  cancelExecution(executionId: string, options?: CallOptions): Promise<Execution>;
  /** Lines after line number `after` (0: from the first), oldest first. */
  readLogs(executionId: string, after: number, options?: LogOptions): Promise<LogPage>;
  /**
   * Lines after line number `after` as they come, then the end of the execution. A stream that ends without it was cut
   * off. The first `next` sends the request. "offline" or "silent": the stream broke.
   */
  streamLogs(executionId: string, after: number, options?: LogStreamOptions): AsyncGenerator<LogEvent, void, undefined>;

  /**
   * Only this answer contains the key itself. "forbidden" also when a scope is not among those of the token. "invalid"
   * (field "expiresAt"): the moment is past.
   */
  createApiKey(name: string, scopes: readonly string[], options?: ApiKeyOptions): Promise<CreatedApiKey>;
  listApiKeys(options?: PageOptions & WorkspaceOptions): Promise<ApiKeyPage>;
  revokeApiKey(keyId: string, options?: CallOptions): Promise<void>;

  /**
   * "conflict": the name is taken, or the engine is not installed. "invalid": the condition or the input is wrong.
   * "tooLarge": the input.
   */
  createTrigger(description: TriggerDescription, options?: WorkspaceOptions & KeyOptions): Promise<Trigger>;
  listTriggers(options?: PageOptions & WorkspaceOptions): Promise<TriggerPage>;
  getTrigger(triggerId: string, options?: CallOptions): Promise<Trigger>;
  /** "invalid" and "tooLarge" as above. "conflict": there is a new input and the engine is not installed any more. */
  updateTrigger(triggerId: string, patch: TriggerPatch, options?: CallOptions): Promise<Trigger>;
  removeTrigger(triggerId: string, options?: CallOptions): Promise<void>;

  /** Ends calls under way ("aborted") and frees the connections. */
  close(): Promise<void>;
}

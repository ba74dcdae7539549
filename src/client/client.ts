/**
 * What one can ask of a gateway: typed calls over the contract. Each rejects with a `RemoteError`.
 * It repeats by itself only what is safe (a new token after 401); every other retry is the caller's.
 */
import type { Attributes, AttributesPatch } from "../contract/attributes.ts";
import type { ContentSource } from "../contract/http.ts";
import type { JournalPage, Node, NodePage, VersionPage, Workspace, WrittenNode } from "../contract/resources.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ListOptions extends CallOptions {
  /** From `next` of the page before; absent for the first page. All pages show one snapshot. */
  readonly after?: string;
  /** 1..1000. */
  readonly pageSize?: number;
  /** Only the node of this name. */
  readonly name?: string;
}

export interface ContentOptions extends CallOptions {
  /** Default: the head. */
  readonly version?: string;
  /** Bytes [start, end). Absent: the whole content. */
  readonly range?: { readonly start: number; readonly end: number };
}

export interface Content {
  /** Id of the version the bytes are of. */
  readonly version: string;
  /** Where `bytes` begin: 0 when the gateway ignored the range. */
  readonly start: number;
  /** Size of the whole content. */
  readonly size: number;
  /** To be read to the end or returned. Fails with a RemoteError when broken off or short. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface UploadOptions extends CallOptions {
  readonly idempotencyKey?: string;
  /** Lower-case hex SHA-256. */
  readonly contentHash?: string;
  readonly contentType?: string;
  readonly attributes?: Attributes;
  /** Bytes of the content handed to the network so far, for progress. */
  readonly onProgress?: (sent: number) => void;
}

/** What a gateway can do beyond what gateway-spec.md shows. */
export interface Capabilities {
  /** Moves, attributes, exchanges, deletions and restores take an idempotency key; if not, none is sent. */
  readonly keyedChanges: boolean;
}

export interface Client {
  readonly capabilities: Capabilities;

  listWorkspaces(options?: CallOptions): Promise<Workspace[]>;
  /** By name or id; undefined when the token shows none such. */
  findWorkspace(nameOrId: string, options?: CallOptions): Promise<Workspace | undefined>;

  listFolder(parentId: string, options?: ListOptions): Promise<NodePage>;
  getNode(nodeId: string, options?: CallOptions): Promise<Node>;
  getContent(nodeId: string, options?: ContentOptions): Promise<Content>;
  listVersions(nodeId: string, options?: ListOptions): Promise<VersionPage>;

  /** A new file below a known folder. `changed` (412) with the node that has the name. */
  upload(parentId: string, name: string, content: ContentSource, options?: UploadOptions): Promise<WrittenNode>;
  /** A new version, if the head is still `ifHead`; else `changed` with the node as it is. */
  writeContent(
    nodeId: string,
    content: ContentSource,
    options?: UploadOptions & { ifHead?: string },
  ): Promise<WrittenNode>;
  /** A new version with content the gateway has. */
  writeContentByReference(
    nodeId: string,
    reference: { copyOf: string; version?: string },
    options?: CallOptions & { ifHead?: string; idempotencyKey?: string; attributes?: Attributes },
  ): Promise<WrittenNode>;
  createFolder(
    parentId: string,
    name: string,
    options?: CallOptions & { idempotencyKey?: string; attributes?: Attributes },
  ): Promise<WrittenNode>;
  copyNode(
    parentId: string,
    name: string,
    reference: { copyOf: string; version?: string },
    options?: CallOptions & { idempotencyKey?: string; attributes?: Attributes },
  ): Promise<WrittenNode>;
  /** Move, rename, change attributes, if the revision is still `ifRevision`. */
  patchNode(
    nodeId: string,
    patch: { parentId?: string; name?: string; attributes?: AttributesPatch },
    options?: CallOptions & { ifRevision?: number; idempotencyKey?: string },
  ): Promise<WrittenNode>;
  exchangeNodes(
    nodeId: string,
    other: string,
    options?: CallOptions & { ifRevision?: number; idempotencyKey?: string },
  ): Promise<WrittenNode>;
  deleteNode(
    nodeId: string,
    options?: CallOptions & { ifRevision?: number; idempotencyKey?: string },
  ): Promise<WrittenNode>;
  restoreNode(nodeId: string, options?: CallOptions & { idempotencyKey?: string }): Promise<WrittenNode>;

  /** Entries after `position` (0: from the start), oldest first, at most `pageSize`. `asOf`: how far the journal shows. */
  readJournal(
    workspaceId: string,
    position: number,
    options?: CallOptions & { pageSize?: number },
  ): Promise<JournalPage>;

  close(): Promise<void>;
}

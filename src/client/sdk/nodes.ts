/** Nodes: files and folders, by id and by path; created, moved, changed, exchanged, deleted, restored. */
import type { Attributes } from "../../contract/attributes.ts";
import type { ListedNode, Node, RestoredItem, RestoredSlice, WrittenNode } from "../../contract/resources.ts";
import type {
  ExchangeOptions as AskedExchange,
  NodeListOptions as AskedList,
  PathOptions as AskedPath,
  RestoreOptions as AskedRestore,
  RestoreTreeOptions as AskedTree,
  Client,
  CopySource,
  NodeChange,
  RevisionOptions,
} from "../client.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read, type WriteOptions, write } from "./context.ts";
import { streamNodes } from "./node-stream.ts";
import { type Paged, paged, pagedItems } from "./paged.ts";

/**
 * Ordered by name unless `orderBy` says otherwise. With `recursive` and without `orderBy`, items come folder by folder,
 * in an unspecified order. Default of `workspace`: that of `connect`.
 */
export interface NodeListOptions extends RequestOptions, Omit<AskedList, "after" | "pageNo" | "at"> {
  /** The list as it was at this moment. */
  readonly at?: Date | string | undefined;
}

/** Default of `workspace`: that of `connect`. */
export interface PathOptions extends RequestOptions, Omit<AskedPath, "at"> {
  /** The node that had the path at this moment. */
  readonly at?: Date | string | undefined;
}

export interface CreateOptions extends WriteOptions {
  readonly attributes?: Attributes | undefined;
}

export interface ChangeOptions extends WriteOptions, Pick<RevisionOptions, "ifRevision"> {}
export interface ExchangeOptions extends ChangeOptions, Pick<AskedExchange, "otherRevision"> {}

export interface RestoreOptions extends WriteOptions, Pick<AskedRestore, "parentId" | "name"> {}

export interface RestoreTreeOptions extends WriteOptions, Pick<AskedTree, "exact" | "plan"> {}

/**
 * Sizes are bytes, `createdAt` and `modifiedAt` ISO 8601 in UTC, `attributes` as file systems have them (`mode`:
 * permission bits, `mtime`: "seconds.nanoseconds"). A write returns the node as it is afterwards, with the change's
 * `position` in the journal. Every call may fail with "notFound" (no such node, folder or workspace, or it is deleted)
 * and "forbidden" (gateway-spec §5, §7). A call with `ifRevision` fails with "changed" (412) and the node in
 * `error.node` when the revision is another one. A call with `attributes` fails with "tooLarge" when they exceed the
 * gateway's limit. A call with a new name fails with "invalid" (field "name") when no node can have it.
 */
export interface Nodes {
  /**
   * The nodes of a folder. With `deleted`: the nodes that were deleted from it and can be restored, each with
   * `deletedAt` and `deletedBy`. The list lags as the gateway's path index does. "invalid": `path` or `parentId` is a
   * file, both are given, or `at` or `branch` is given with `deleted`. Scope: node.node.read-all.
   */
  list(options?: NodeListOptions): Paged<ListedNode>;
  /** By id, always the present state. Scope: node.file.read. */
  get(nodeId: string, options?: RequestOptions & { readonly branch?: string | undefined }): Promise<Node>;
  /** By path; "/" is the root. The answer lags as the gateway's path index does. Scope: node.file.read. */
  byPath(path: string, options?: PathOptions): Promise<Node>;
  /**
   * A new folder. "conflict" (409): a node has the name; it is in `error.node`. "invalid" (field "parentId"): that node
   * is a file. Scopes: node.node.create, node.journal.create.
   */
  createFolder(parentId: string, name: string, options?: CreateOptions): Promise<WrittenNode>;
  /**
   * The folder at the path. It is made if it is missing, together with missing ones above it. "conflict": a file is in
   * the way; it is in `error.node`. Scopes: those of `byPath` and `createFolder`.
   */
  ensureFolder(path: string, options?: RequestOptions & { readonly workspace?: string | undefined }): Promise<Node>;
  /**
   * A new file with content that the gateway has, or a copy of a folder with all below it. Errors as for
   * `createFolder`. "overQuota": the workspace is full. "tooLarge" also for a folder with too many nodes. "notFound"
   * also when the content was thinned (410). "invalid" (field "copyOf"): the source is in another workspace. Scopes:
   * those of `createFolder`, and node.file.read.
   */
  copy(parentId: string, name: string, source: CopySource, options?: CreateOptions): Promise<WrittenNode>;
  /**
   * Moves, renames, changes attributes; other fields stay. "conflict" (409): a node has the name; it is in
   * `error.node`. "invalid" (field "parentId" or "name"): the new parent is a file or in another workspace, a folder
   * would move into itself, or the node is a root. Scope: node.node.update.
   */
  update(nodeId: string, change: NodeChange, options?: ChangeOptions): Promise<WrittenNode>;
  /**
   * The two nodes take each other's place. Returns the first one. "changed" (412): one of the revisions is another one;
   * that node is in `error.node`. "invalid" (field "with"): one is a root, is in the other, is the other, or is in
   * another workspace. Scope: node.node.update.
   */
  exchange(nodeId: string, otherId: string, options?: ExchangeOptions): Promise<WrittenNode>;
  /**
   * Deletes a node; its versions stay readable. "conflict" (409): the folder is not empty. "invalid" (field "nodeId"):
   * the node is a root. Scope: node.file.delete.
   */
  delete(nodeId: string, options?: ChangeOptions): Promise<WrittenNode>;
  /**
   * Brings a deleted node back to its old place, or to `parentId` and `name`. "conflict" (409): the node is not
   * deleted, the name is taken, or the folder is deleted; the node in the way is in `error.node`. "notFound" also when
   * the node was removed for good (410). "invalid" (field "parentId"): that node is a file or in another workspace.
   * "overQuota": the workspace has no room for it. Scope: node.node.update.
   */
  restore(nodeId: string, options?: RestoreOptions): Promise<WrittenNode>;
  /**
   * Brings a node and all below it back to a moment. Deleted nodes come back, moved nodes go back, contents and
   * attributes become those of that moment. If a name is taken, the node is called `name (restored …)`. Newer nodes
   * stay, unless `exact` is set. Each item comes when its action is done. With `plan` nothing is changed, and the items
   * are the actions that would be taken. If the loop is left early or breaks off, the items that came are done, and the
   * same call does the rest. The generator returns the journal position of the last change; undefined: it changed
   * nothing. "notFound": the node did not exist then, or was removed for good (410). "conflict": its folder is deleted.
   * "overQuota": the workspace has no room. Scopes: node.node.update, node.file.read; with `exact` also
   * node.file.delete.
   */
  restoreTree(
    nodeId: string,
    at: Date | string,
    options?: RestoreTreeOptions,
  ): AsyncGenerator<RestoredItem, number | undefined, undefined>;
}

export function createNodes(context: Context): Nodes {
  const change = (options: WriteOptions, call: (client: Client, idempotencyKey: string) => Promise<WrittenNode>) =>
    write(context, "change", options, call);

  const nodes: Nodes = {
    list(options = {}) {
      const { retries: _, workspace = context.workspace, at, ...which } = options;
      // Only calls by path name a workspace; an id implies its own.
      const where = which.parentId === undefined ? { workspace } : {};
      const pages = paged((page) =>
        read(context, options, (client) => client.listNodes({ ...which, ...where, ...page, at: moment(at) })),
      );
      const { recursive, name, orderBy, deleted, path, parentId, branch } = which;
      if (recursive !== true || deleted === true || name !== undefined || orderBy !== undefined) return pages;
      const asked = { path, parentId, branch, ...where, at: moment(at) };
      return pagedItems(pages, () => streamNodes(context, asked, options, pages));
    },
    get: (nodeId, options = {}) => read(context, options, (client) => client.getNode(nodeId, options)),
    byPath(path, options = {}) {
      const { workspace = context.workspace, at, branch, signal } = options;
      return read(context, options, (client) =>
        client.getNodeByPath(path, { workspace, at: moment(at), branch, signal }),
      );
    },
    createFolder: (parentId, name, options = {}) =>
      write(context, "change", options, (client, idempotencyKey) =>
        client.createFolder(parentId, name, { ...options, idempotencyKey }),
      ),
    async ensureFolder(path, options = {}) {
      const { signal, retries, workspace } = options;
      const missing: string[] = [];
      let above = path;
      let folder: Node | undefined;
      while (folder === undefined) {
        folder = await nodes.byPath(above, { signal, retries, workspace }).catch((error: unknown) => {
          const isRoot = parentOf(above) === undefined;
          if (!(error instanceof RemoteError) || error.code !== "notFound" || isRoot) throw error;
          return undefined;
        });
        if (folder !== undefined) break;
        missing.unshift(nameOf(above));
        above = parentOf(above) ?? "/";
      }
      for (const name of missing) folder = await folderIn(folder, name, options);
      return checkedFolder(folder);
    },
    copy: (parentId, name, { copyOf, version }, options = {}) =>
      write(context, "change", options, (client, idempotencyKey) =>
        client.copyNode(parentId, name, { copyOf, version }, { ...options, idempotencyKey }),
      ),
    update: (nodeId, patch, options = {}) =>
      change(options, (client, idempotencyKey) => client.patchNode(nodeId, patch, { ...options, idempotencyKey })),
    exchange: (nodeId, otherId, options = {}) =>
      change(options, (client, idempotencyKey) =>
        client.exchangeNodes(nodeId, otherId, { ...options, idempotencyKey }),
      ),
    delete: (nodeId, options = {}) =>
      change(options, (client, idempotencyKey) => client.deleteNode(nodeId, { ...options, idempotencyKey })),
    restore: (nodeId, options = {}) =>
      change(options, (client, idempotencyKey) =>
        client.restoreNode(nodeId, {
          parentId: options.parentId,
          name: options.name,
          idempotencyKey,
          signal: options.signal,
        }),
      ),
    async *restoreTree(nodeId, at, options = {}) {
      const { exact, plan, signal, idempotencyKey = context.uuid() } = options;
      let last: number | undefined;
      for (let after: string | null = ""; after !== null; ) {
        const part = { exact, plan, after, idempotencyKey, signal };
        // A repeated request finds the result of the first and takes no action again, so it is retried like a read.
        const slice: RestoredSlice = await read(context, options, (client) =>
          client.restoreTree(nodeId, moment(at) ?? "", part),
        );
        yield* slice.items;
        after = slice.next;
        last = slice.position ?? last;
      }
      return last;
    },
  };

  /**
   * Makes the folder, or takes the existing one. The path index may not show that one yet, or another program made it
   * meanwhile.
   */
  async function folderIn(parent: Node, name: string, options: RequestOptions): Promise<Node> {
    const { signal, retries } = options;
    try {
      return await nodes.createFolder(checkedFolder(parent).id, name, { signal, retries });
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== "conflict" || error.node === undefined) throw error;
      return error.node;
    }
  }
  return nodes;
}

function checkedFolder(node: Node): Node {
  if (node.kind === "folder") return node;
  throw new RemoteError("conflict", `ensureFolder: ${node.path} is a file`, { node, isUnsent: true });
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Undefined for the root. */
function parentOf(path: string): string | undefined {
  if (path === "" || path === "/") return undefined;
  const end = path.lastIndexOf("/");
  return end <= 0 ? "/" : path.slice(0, end);
}

/** A moment in the contract's form: ISO 8601 in UTC. */
export function moment(at: Date | string | undefined): string | undefined {
  return at instanceof Date ? at.toISOString() : at;
}

/** Content of files: uploaded as new files and new versions, and read. */
import type { Attributes } from "../../contract/attributes.ts";
import type { ContentSource } from "../../contract/http.ts";
import type { WrittenNode } from "../../contract/resources.ts";
import type { Client, CopySource, UploadOptions as SentOptions, UploadConditions } from "../client.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type WriteOptions, write } from "./context.ts";
import { type Downloaded, type DownloadOptions, download } from "./download.ts";
import { type FileContent, type ReadOptions, readContent } from "./read.ts";
import { hashed, sourceOf, type Uploadable } from "./sources.ts";

export interface WriteContentOptions extends WriteOptions, Omit<SentOptions, "idempotencyKey"> {
  /**
   * The size in bytes of a content that does not tell it. "aborted": the content has another size; nothing was written.
   */
  readonly size?: number | undefined;
  /**
   * Lower-case hex SHA-256. The gateway refuses content with another hash ("invalid", field "contentHash"). Without it,
   * the hash of the stored content is compared with that of the sent bytes ("malformed", after the write).
   */
  readonly contentHash?: string | undefined;
}

export interface UploadOptions extends WriteContentOptions, UploadConditions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

/**
 * Sizes and positions are bytes, hashes lower-case hex SHA-256. Every call may fail with "notFound" (no such node,
 * version or workspace, or it is deleted) and "forbidden". Every write may fail with "tooLarge" (content or attributes
 * over the gateway's limit) and "overQuota" (the workspace is full). A write of content also with "aborted" (the
 * content breaks off while it is read) and "invalid" (field "content": the file at `{ path }` cannot be read). Scopes
 * of `upload` and `create`: node.node.create, node.file.read, node.node.update, node.journal.create; without the last
 * one, new folders stay hidden until a journal entry names them (gateway-spec §4, upload rules).
 */
export interface Files {
  /**
   * Writes the file at the path and makes missing folders: a new file, or a new version of an existing one. "changed"
   * (412): a condition does not hold. "conflict" (409): a folder has the name, or a name on the path is a file; it is
   * in `error.node`. "invalid" (field "path"): the path is the root, or has a name that no node can have.
   */
  upload(path: string, content: Uploadable, options?: UploadOptions): Promise<WrittenNode>;
  /**
   * A new file in a folder. "changed" (412): a node has the name; it is in `error.node`. "invalid" (field "parentId"):
   * that node is a file; (field "name"): no node can have the name.
   */
  create(parentId: string, name: string, content: Uploadable, options?: WriteContentOptions): Promise<WrittenNode>;
  /**
   * A new version. "changed" (412): the head is not `ifHead` any more; the file is in `error.node`. "invalid" (field
   * "nodeId"): the node is a folder. Scope: node.node.update.
   */
  write(
    nodeId: string,
    content: Uploadable,
    options?: WriteContentOptions & { readonly ifHead?: string | undefined },
  ): Promise<WrittenNode>;
  /**
   * A new version with content that the gateway has: an older version, or another file's content. Errors as for
   * `write`; "notFound" also when the content of the source was thinned (410); "invalid" (field "copyOf") when the
   * source is a folder or in another workspace. Scopes: node.node.update, node.file.read.
   */
  writeCopy(
    nodeId: string,
    source: CopySource,
    options?: WriteOptions & { readonly ifHead?: string | undefined; readonly attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  /**
   * Resolves when the answer begins. A broken connection is resumed. "notFound" also when the content was thinned
   * (410). "invalid": the node is a folder, or `version` is given with `at` or `branch`. Scope: node.file.read.
   */
  read(nodeId: string, options?: ReadOptions): Promise<FileContent>;
  /**
   * Downloads into a file of the disk, which appears when it is whole. Continues where an earlier attempt ended. Errors
   * as for `read`. "malformed": the bytes have another hash. A failure of the disk is the system's error (`code`
   * "ENOSPC"). Scope: node.file.read.
   */
  download(nodeId: string, path: string, options?: DownloadOptions): Promise<Downloaded>;
}

type Send = (client: Client, source: ContentSource, sent: SentOptions) => Promise<WrittenNode>;

export function createFiles(context: Context): Files {
  const send = async (content: Uploadable, options: WriteContentOptions, call: Send): Promise<WrittenNode> => {
    const { size, branch, contentHash, contentType, attributes, onProgress, signal, retries } = options;
    const { source, hash } = hashed(await sourceOf(content, size));
    const key = options.idempotencyKey;
    const node = await write(
      context,
      "upload",
      { signal, retries, idempotencyKey: key, isSpent: source.isSpent },
      (client, made) =>
        call(client, source, {
          branch,
          contentHash,
          contentType,
          attributes,
          onProgress,
          signal,
          idempotencyKey: made,
        }),
    );
    checkStored(node, hash(), branch);
    return node;
  };

  return {
    upload(path, content, options = {}) {
      const { workspace = context.workspace, ifAbsent, ifHead } = options;
      return send(content, options, (client, source, sent) =>
        client.uploadByPath(path, source, { ...sent, workspace, ifAbsent, ifHead }),
      );
    },
    create: (parentId, name, content, options = {}) =>
      send(content, options, (client, source, sent) => client.upload(parentId, name, source, sent)),
    write: (nodeId, content, options = {}) =>
      send(content, options, (client, source, sent) =>
        client.writeContent(nodeId, source, { ...sent, ifHead: options.ifHead }),
      ),
    writeCopy: (nodeId, { copyOf, version }, options = {}) =>
      write(context, "upload", options, (client, idempotencyKey) =>
        client.writeContentByReference(nodeId, { copyOf, version }, { ...options, idempotencyKey }),
      ),
    read: (nodeId, options) => readContent(context, nodeId, options),
    download: (nodeId, path, options) => download(context, nodeId, path, options),
  };
}

/** Checks that the gateway stored the bytes that were read here. Not on a branch: there the node shows another head. */
function checkStored(node: WrittenNode, sent: string | undefined, branch: string | undefined): void {
  if (sent === undefined || node.contentHash === null || branch !== undefined || node.contentHash === sent) return;
  throw new RemoteError(
    "malformed",
    `upload: the gateway stored content with SHA-256 ${node.contentHash}, expected ${sent}`,
    { node },
  );
}

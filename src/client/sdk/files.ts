/** Content of files: sent up, as new files and new versions, and read. */
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
  /** Bytes of content that does not say them itself; it must have exactly these. */
  readonly size?: number | undefined;
  /** Lower-case hex SHA-256: the gateway stores nothing that has another. Without, what it stored is compared with what was sent. */
  readonly contentHash?: string | undefined;
}

export interface UploadOptions extends WriteContentOptions, UploadConditions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

/**
 * Sizes and positions in bytes, hashes lower-case hex SHA-256. Every call may fail with "notFound"
 * and "forbidden"; "tooLarge" is content beyond the gateway's limit. Scopes of `upload` and
 * `create`: node.node.create, node.file.read, node.node.update, node.journal.create; without the
 * last, new folders stay hidden until a journal entry names them (gateway-spec §4, upload rules).
 */
export interface Files {
  /** The file at the path, its folders made: a new file, or a new version of the one that is there. */
  upload(path: string, content: Uploadable, options?: UploadOptions): Promise<WrittenNode>;
  /** A new file in a folder; "changed" (412) with the node that has the name in `error.node`. */
  create(parentId: string, name: string, content: Uploadable, options?: WriteContentOptions): Promise<WrittenNode>;
  /** A new version. With `ifHead` only if the head is still that; else "changed" (412). Scope: node.node.update. */
  write(
    nodeId: string,
    content: Uploadable,
    options?: WriteContentOptions & { readonly ifHead?: string | undefined },
  ): Promise<WrittenNode>;
  /** A new version with content the gateway has: an older version restored, another file's content. Scopes: node.node.update, node.file.read. */
  writeCopy(
    nodeId: string,
    source: CopySource,
    options?: WriteOptions & { readonly ifHead?: string | undefined; readonly attributes?: Attributes | undefined },
  ): Promise<WrittenNode>;
  /** Resolves when the answer begins. A connection that breaks is taken up again. Scope: node.file.read. */
  read(nodeId: string, options?: ReadOptions): Promise<FileContent>;
  /** Into a file of the disk, which is there when it is whole. Goes on where an earlier attempt ended. Scope: node.file.read. */
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
      "uploadKeys",
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
      write(context, "uploadKeys", options, (client, idempotencyKey) =>
        client.writeContentByReference(nodeId, { copyOf, version }, { ...options, idempotencyKey }),
      ),
    read: (nodeId, options) => readContent(context, nodeId, options),
    download: (nodeId, path, options) => download(context, nodeId, path, options),
  };
}

/** What the gateway stored is what was read here. On a branch the node shows another head. */
function checkStored(node: WrittenNode, sent: string | undefined, branch: string | undefined): void {
  if (sent === undefined || node.contentHash === null || branch !== undefined || node.contentHash === sent) return;
  throw new RemoteError(
    "malformed",
    `upload: the gateway stored content with SHA-256 ${node.contentHash}, expected ${sent}`,
    { node },
  );
}

/** Calls that upload content: new files and new versions, with bytes or by reference. */
import type { Attributes } from "../contract/attributes.ts";
import type { ContentSource, UploadBody } from "../contract/http.ts";
import { type ContentReference, type UploadMetadata, type WrittenNode, writtenNode } from "../contract/resources.ts";
import { askJson, type Send } from "./call.ts";
import { checkName, checkPath } from "./check-names.ts";
import type { CallOptions, CopySource, UploadConditions, UploadOptions, WorkspaceOptions } from "./client.ts";
import { askNode } from "./nodes.ts";

export async function upload(
  send: Send,
  parentId: string,
  name: string,
  content: ContentSource,
  options: UploadOptions = {},
): Promise<WrittenNode> {
  // The name becomes part of a path: "a/b" would be a file in a folder.
  checkName("upload", "name", name);
  return askJson(
    send,
    {
      operation: "upload",
      parameters: { path: name },
      query: { parentId },
      headers: { "if-none-match": "*" },
      body: uploadBody(content, options),
      signal: options.signal,
    },
    writtenNode,
  );
}

export async function uploadByPath(
  send: Send,
  path: string,
  content: ContentSource,
  options: UploadOptions & UploadConditions & WorkspaceOptions = {},
): Promise<WrittenNode> {
  const { workspace, ifAbsent = false, signal } = options;
  return askJson(
    send,
    {
      operation: "upload",
      parameters: { path: checkPath("upload", path) },
      query: { workspace },
      headers: { ...ifHead(options), "if-none-match": ifAbsent ? "*" : undefined },
      body: uploadBody(content, options),
      signal,
    },
    writtenNode,
  );
}

export function writeContent(
  send: Send,
  nodeId: string,
  content: ContentSource,
  options: UploadOptions & { ifHead?: string | undefined } = {},
): Promise<WrittenNode> {
  return askNode(
    send,
    nodeId,
    {
      operation: "writeContent",
      headers: ifHead(options),
      body: uploadBody(content, options),
      signal: options.signal,
    },
    writtenNode,
  );
}

export function writeContentByReference(
  send: Send,
  nodeId: string,
  reference: CopySource,
  options: CallOptions & {
    ifHead?: string | undefined;
    idempotencyKey?: string | undefined;
    attributes?: Attributes | undefined;
  } = {},
): Promise<WrittenNode> {
  const { signal, attributes, idempotencyKey } = options;
  const value: ContentReference = { ...reference, attributes, idempotencyKey };
  return askNode(
    send,
    nodeId,
    { operation: "writeReference", headers: ifHead(options), body: { kind: "json", value }, signal },
    writtenNode,
  );
}

function ifHead(options: { ifHead?: string | undefined }): { "if-match": string | undefined } {
  return { "if-match": options.ifHead === undefined ? undefined : `"${options.ifHead}"` };
}

function uploadBody(content: ContentSource, options: UploadOptions): UploadBody {
  const { branch, idempotencyKey, contentHash, contentType, attributes, onProgress } = options;
  const metadata: UploadMetadata = { branch, idempotencyKey, contentHash, attributes };
  return {
    kind: "upload",
    metadata,
    contentType,
    content: onProgress === undefined ? content : withProgress(content, onProgress),
  };
}

function withProgress(content: ContentSource, onProgress: (sent: number) => void): ContentSource {
  return {
    ...content,
    async *read() {
      let sent = 0;
      for await (const chunk of content.read()) {
        yield chunk;
        sent += chunk.length;
        onProgress(sent);
      }
    },
  };
}

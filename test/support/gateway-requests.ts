/** What is asked of a gateway that is killed: drawn, sent, and what its answer means. */
import { createHash } from "node:crypto";
import { type Node, writtenNode } from "../../src/contract/resources.ts";
import { type Answer, type Callee, type CallOptions, callGateway, jsonBody, uploadBody } from "./gateway-calls.ts";

/** Kept in the store, kept as a blob, and a blob of several writes; the small ones more often. */
const SIZES = [0, 100, 100, 100, 100, 20_000, 20_000, 40_000, 40_000, 700_000] as const;
export const PARENT = "parent";
export const INLINE_BYTES = 32 * 1024;

export type Request = { readonly key?: string | undefined } & (
  | { readonly do: "upload"; readonly name: string; readonly content: Uint8Array; readonly key: string }
  | { readonly do: "version"; readonly node: Node; readonly content: Uint8Array; readonly key: string }
  | { readonly do: "reference"; readonly node: Node; readonly version: string; readonly key: string }
  | { readonly do: "folder"; readonly parentId: string; readonly name: string; readonly key: string }
  | { readonly do: "copy"; readonly node: Node; readonly name: string; readonly key: string }
  | { readonly do: "rename"; readonly node: Node; readonly name: string }
  | { readonly do: "delete"; readonly node: Node }
  | { readonly do: "restore"; readonly node: Node; readonly key: string }
);

/** What one writer did last, and what may follow. */
export interface Own {
  readonly node: Node;
  readonly isDeleted: boolean;
  /** A head the file has had. */
  readonly version: string | undefined;
}

export interface Draw {
  readonly random: () => number;
  readonly seed: number;
  readonly root: string;
  /** Goes up with each request. */
  readonly number: number;
}

export function drawRequest({ random, seed, root, number }: Draw, own: Own | undefined): Request {
  const [name, key] = [`n-${number}`, `key-${number}`];
  const content = () => {
    const size = SIZES[Math.floor(random() * SIZES.length)] ?? 0;
    return Buffer.alloc(size, createHash("sha256").update(`${seed}/${number}`).digest());
  };
  const choice = random();
  if (own?.isDeleted === true && choice < 0.5) return { do: "restore", node: own.node, key };
  if (own === undefined || own.isDeleted || choice < 0.35) {
    return choice < 0.05
      ? { do: "folder", parentId: root, name, key }
      : { do: "upload", name, content: content(), key };
  }
  const { node, version } = own;
  if (node.kind === "file") {
    if (choice < 0.55) return { do: "version", node, content: content(), key };
    if (choice < 0.62 && version !== undefined) return { do: "reference", node, version, key };
    if (choice < 0.7) return { do: "copy", node, name, key };
  }
  const maybe = random() < 0.5 ? { key } : {};
  return choice < 0.87 ? { do: "rename", node, name, ...maybe } : { do: "delete", node, ...maybe };
}

export function describe(request: Request): string {
  const what = "name" in request ? request.name : request.node.name;
  return `${request.do} ${what}${request.key === undefined ? "" : ` (${request.key})`}`;
}

export function sendRequest(to: Callee, request: Request): Promise<Answer> {
  const { key } = request;
  const keyed = key === undefined ? {} : { idempotencyKey: key };
  const call = (method: string, path: string, { headers, body }: Partial<CallOptions>, condition: object = {}) =>
    callGateway(to, method, path, { headers: { ...headers, ...condition }, ...(body === undefined ? {} : { body }) });
  const unlessChanged = (node: Node) => ({ "if-match": `"${node.revision}"` });
  switch (request.do) {
    case "upload": {
      const body = uploadBody({ ...keyed, contentHash: sha256(request.content) }, request.content);
      return call("POST", `/v1/files/${PARENT}/${request.name}`, body, { "if-none-match": "*" });
    }
    case "version": {
      const body = uploadBody({ ...keyed, contentHash: sha256(request.content) }, request.content);
      return call("PUT", `/v1/nodes/${request.node.id}/content`, body, { "if-match": `"${request.node.head}"` });
    }
    case "reference": {
      const { id, head } = request.node;
      const body = jsonBody({ copyOf: id, version: request.version, ...keyed });
      return call("PUT", `/v1/nodes/${id}/content`, body, { "if-match": `"${head}"` });
    }
    case "folder":
      return call("POST", "/v1/nodes", jsonBody({ ...pick(request), kind: "folder", ...keyed }));
    case "copy": {
      const { node, name } = request;
      return call("POST", "/v1/nodes", jsonBody({ parentId: node.parentId, name, copyOf: node.id, ...keyed }));
    }
    case "rename": {
      const { node, name } = request;
      return call("PATCH", `/v1/nodes/${node.id}`, jsonBody({ name, ...keyed }), unlessChanged(node));
    }
    case "delete": {
      const query = key === undefined ? "" : `?idempotencyKey=${key}`;
      return call("DELETE", `/v1/nodes/${request.node.id}${query}`, {}, unlessChanged(request.node));
    }
    case "restore":
      return call("POST", `/v1/nodes/${request.node.id}/restore`, jsonBody(keyed));
  }
}

const pick = ({ parentId, name }: { readonly parentId: string; readonly name: string }) => ({ parentId, name });

/** The node as it was answered. Throws what is wrong with the answer. */
export function readAnswer(request: Request, { status, body }: Answer): Node {
  if (status >= 300) throw new Error(`${describe(request)}: ${status} ${body}`);
  const { position: _, ...answered } = writtenNode.parse(JSON.parse(String(body)));
  if ("content" in request && answered.contentHash !== sha256(request.content)) {
    throw new Error(`${describe(request)}: the answer tells of other content`);
  }
  return answered;
}

export const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Calls about single nodes: get, create, move, change, delete, restore. */
import type { z } from "zod";
import type { Attributes } from "../contract/attributes.ts";
import {
  type Exchange,
  type NewNode,
  type Node,
  type NodePatch,
  node,
  type Restoration,
  type RestoredSlice,
  restoredSlice,
  type TreeRestoration,
  type WrittenNode,
  writtenNode,
} from "../contract/resources.ts";
import { askJson, type Call, type Send } from "./call.ts";
import { checkPath } from "./check-names.ts";
import type {
  CallOptions,
  CopySource,
  ExchangeOptions,
  KeyOptions,
  NodeChange,
  PathOptions,
  RestoreOptions,
  RestoreTreeOptions,
  RevisionOptions,
} from "./client.ts";

interface CreateOptions extends KeyOptions {
  attributes?: Attributes | undefined;
}

/** Asks for the node and checks that the answer is about it. */
export function askNode<T extends typeof node>(send: Send, nodeId: string, call: Call, schema: T) {
  return askJson(send, { ...call, parameters: { nodeId } }, schema, ({ id }: z.infer<T>) =>
    id === nodeId ? undefined : `the answer is another node, ${id}`,
  );
}

/** Changes the node, on condition of its revision if one is given. */
function changeNode(send: Send, nodeId: string, call: Call, { ifRevision, signal }: RevisionOptions) {
  const headers = { "if-match": ifRevision === undefined ? undefined : `"${ifRevision}"` };
  return askNode(send, nodeId, { ...call, headers, signal }, writtenNode);
}

export function getNode(
  send: Send,
  nodeId: string,
  options: CallOptions & { branch?: string | undefined } = {},
): Promise<Node> {
  const { branch, signal } = options;
  return askNode(send, nodeId, { operation: "getNode", query: { branch }, signal }, node);
}

export async function getNodeByPath(send: Send, path: string, options: PathOptions = {}): Promise<Node> {
  const { workspace, at, branch, signal } = options;
  const parameters = { path: checkPath("getNodeByPath", path) };
  return askJson(send, { operation: "getNodeByPath", parameters, query: { workspace, at, branch }, signal }, node);
}

export function createFolder(
  send: Send,
  parentId: string,
  name: string,
  options: CreateOptions = {},
): Promise<WrittenNode> {
  return createNode(send, { parentId, name, kind: "folder" }, options);
}

export function copyNode(
  send: Send,
  parentId: string,
  name: string,
  reference: CopySource,
  options: CreateOptions = {},
): Promise<WrittenNode> {
  return createNode(send, { parentId, name, ...reference }, options);
}

function createNode(send: Send, place: NewNode, options: CreateOptions): Promise<WrittenNode> {
  const { signal, attributes, idempotencyKey } = options;
  const value = { ...place, attributes, idempotencyKey };
  return askJson(send, { operation: "createNode", body: { kind: "json", value }, signal }, writtenNode);
}

export function patchNode(
  send: Send,
  nodeId: string,
  patch: NodeChange,
  options: RevisionOptions = {},
): Promise<WrittenNode> {
  const value: NodePatch = { ...patch, idempotencyKey: options.idempotencyKey };
  return changeNode(send, nodeId, { operation: "patchNode", body: { kind: "json", value } }, options);
}

export function exchangeNodes(
  send: Send,
  nodeId: string,
  other: string,
  options: ExchangeOptions = {},
): Promise<WrittenNode> {
  const { otherRevision: withRevision, idempotencyKey } = options;
  const value: Exchange = { with: other, withRevision, idempotencyKey };
  return changeNode(send, nodeId, { operation: "exchangeNodes", body: { kind: "json", value } }, options);
}

export function deleteNode(send: Send, nodeId: string, options: RevisionOptions = {}): Promise<WrittenNode> {
  const query = { idempotencyKey: options.idempotencyKey };
  return changeNode(send, nodeId, { operation: "deleteNode", query }, options);
}

export function restoreNode(send: Send, nodeId: string, options: RestoreOptions = {}): Promise<WrittenNode> {
  const { signal, ...value } = options;
  const isPlain = Object.values(value).every((given) => given === undefined);
  const body = isPlain ? undefined : ({ kind: "json", value: value satisfies Restoration } as const);
  return askNode(send, nodeId, { operation: "restoreNode", body, signal }, writtenNode);
}

export function restoreTree(
  send: Send,
  nodeId: string,
  at: string,
  options: RestoreTreeOptions = {},
): Promise<RestoredSlice> {
  const { signal, ...rest } = options;
  const value: TreeRestoration = { at, ...rest };
  const call: Call = { operation: "restoreTree", parameters: { nodeId }, body: { kind: "json", value }, signal };
  return askJson(send, call, restoredSlice);
}

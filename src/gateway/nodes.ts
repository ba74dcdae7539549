/**
 * Operations on nodes by id and by path: create folders and copies; move, rename, change, exchange, delete, restore.
 */
import { patchAttributes, sameValue } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";
import { changeOf } from "./access.ts";
import { shownPosition } from "./as-of.ts";
import { checkAttributes } from "./attribute-states.ts";
import { beginChange, changeNodeRow, changeNodeRows, createNodeRow, reread } from "./changes.ts";
import { isKnown, matches, nodeTag, quoted } from "./conditions.ts";
import { sourceOfCopy } from "./content.ts";
import type { Context } from "./context.ts";
import { type PreparedCopy, placeCopy, withCopy } from "./copies.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { once } from "./idempotency.ts";
import { lastChange } from "./lag.ts";
import {
  attributesOf,
  findChild,
  isWithin,
  type NodeRow,
  nodeByPath,
  onBranch,
  pathOf,
  showCurrent,
  showNode,
  type Written,
} from "./node-rows.ts";
import { decodePath } from "./paths.ts";
import { changed, conflict, invalid, notFound } from "./problems.ts";
import { mayJournal, requireRead } from "./scopes.ts";
import type { Caller } from "./tokens.ts";
import { callWorkspace, liveNode, relatedNode, visibleNode } from "./workspaces.ts";

export function getNode(context: Context, call: Call<"getNode">): GatewayAnswer {
  const row = liveNode(context, call.caller, call.parameters.nodeId);
  if (!context.births.isFound(row.id)) throw notFound(`There is no node ${JSON.stringify(row.id)} yet.`);
  return nodeAnswer(call.headers, showCurrent(context.store, row, call.query.branch));
}

export function getNodeByPath(context: Context, call: Call<"getNodeByPath">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const names = decodePath(call.parameters.path);
  const asOf = shownPosition(context, call.query.at);
  const row = nodeByPath(context.store, workspace.root, names, asOf);
  if (row === undefined) throw notFound(`There is no node at ${JSON.stringify(`/${names.join("/")}`)}.`);
  const shown = onBranch(context.store, row, call.query.branch, asOf);
  return nodeAnswer(call.headers, showNode(shown, pathOf(context.store, row, asOf)));
}

function nodeAnswer(headers: Call<"getNode">["headers"], node: Node): GatewayAnswer {
  const tag = nodeTag(node);
  const etag = quoted(tag);
  if (isKnown(headers["if-none-match"], tag)) return { status: 304, headers: { etag } };
  return jsonAnswer(200, node, { etag });
}

/** Throws a 409 with the node that has the name. */
function checkFree(context: Context, parent: string, name: string, except?: string): void {
  const other = findChild(context.store, parent, name);
  if (other === undefined || other.id === except) return;
  throw conflict("The folder already has a node of this name.", showCurrent(context.store, other));
}

function checkFolder(row: NodeRow, field: string): void {
  if (row.deleted === 1) throw notFound(`${field}: the folder ${JSON.stringify(row.id)} is deleted.`);
  if (row.kind !== "folder") throw invalid(field, `${field}: expected a folder, got a file`);
}

export function createNode(context: Context, call: Call<"createNode">): Promise<GatewayAnswer> {
  const body = required(call.json);
  if ((body.kind === undefined) === (body.copyOf === undefined)) {
    throw invalid("kind", 'kind: expected either kind "folder" or copyOf');
  }
  if (body.version !== undefined && body.copyOf === undefined) throw invalid("version", "version: only with copyOf");
  if (body.copyOf !== undefined) requireRead(call.caller);
  const create = (copy: PreparedCopy | undefined) => {
    const parent = visibleNode(context, call.caller, body.parentId);
    const request = {
      workspace: parent.workspace,
      key: body.idempotencyKey,
      same: ["createNode", parent.id, body.name, body.copyOf ?? null, body.version ?? null],
    };
    return once(context, call.caller, request, () => {
      checkFolder(parent, "parentId");
      const from =
        body.copyOf === undefined
          ? undefined
          : relatedNode(context, call.caller, parent.workspace, body.copyOf, "copyOf");
      if (from?.kind === "folder") return { status: 201, written: copyFolder(context, call, parent, from, copy) };
      const source =
        from === undefined ? undefined : sourceOfCopy(context, call.caller, parent.workspace, from.id, body.version);
      checkFree(context, parent.id, body.name);
      // Attributes that a copy takes over were checked when they were set.
      if (body.attributes !== undefined) checkAttributes(body.attributes);
      const change = beginChange(context, changeOf(call.caller, body.idempotencyKey, mayJournal(call.caller)));
      const { id, position } = createNodeRow(context, change, {
        workspace: parent.workspace,
        kind: source === undefined ? "folder" : "file",
        parent: parent.id,
        name: body.name,
        attributes: body.attributes ?? source?.attributes ?? {},
        ...(source === undefined ? {} : { content: source.content }),
      });
      return { status: 201, written: { id, position } };
    });
  };
  return withCopy(context, create);
}

function copyFolder(
  context: Context,
  call: Call<"createNode">,
  parent: NodeRow,
  source: NodeRow,
  copy: PreparedCopy | undefined,
): Written {
  const { name, version, attributes, idempotencyKey: key } = required(call.json);
  if (version !== undefined) throw invalid("version", "version: a folder has no versions");
  checkFree(context, parent.id, name);
  if (attributes !== undefined) checkAttributes(attributes);
  const { workspace, id } = parent;
  const { by, journaled } = changeOf(call.caller, key, mayJournal(call.caller));
  return placeCopy(context, copy, source, { ...{ workspace, parent: id, name, attributes, key }, by, journaled });
}

export function patchNode(context: Context, call: Call<"patchNode">): GatewayAnswer {
  const patch = required(call.json);
  const { store } = context;
  return store.transaction(() => {
    const row = visibleNode(context, call.caller, call.parameters.nodeId);
    const { idempotencyKey: key, ...change } = patch;
    return once(context, call.caller, { workspace: row.workspace, key, same: ["patchNode", row.id, change] }, () => {
      checkLive(row);
      checkRevision(context, call.headers, row);
      const parent = patch.parentId ?? row.parent ?? undefined;
      const name = patch.name ?? row.name;
      const moves = parent !== (row.parent ?? undefined) || name !== row.name;
      if (moves) checkMove(context, call.caller, row, parent, name, patch.parentId === undefined ? "name" : "parentId");
      const before = attributesOf(row);
      const attributes = patchAttributes(before, patch.attributes ?? {});
      checkAttributes(attributes, before);
      // A request that changes nothing makes no change. The answer shows the node as of now.
      if (!moves && sameValue(before, attributes)) {
        return { status: 200, written: { id: row.id, position: lastChange(store).position } };
      }
      const position = changeNodeRow(
        context,
        beginChange(context, changeOf(call.caller, key)),
        row,
        moves ? "moved" : "changed",
        {
          name,
          ...(parent === undefined ? {} : { parent }),
          attributes,
        },
      );
      return { status: 200, written: { id: row.id, position } };
    });
  });
}

/**
 * Checked only right before the effect: a repeated request gets its first answer even when the node is deleted by now.
 */
function checkLive(row: NodeRow): void {
  if (row.deleted === 1) throw notFound(`The node ${JSON.stringify(row.id)} is deleted.`);
}

function checkMove(
  context: Context,
  caller: Caller,
  row: NodeRow,
  parent: string | undefined,
  name: string,
  field: string,
): void {
  if (row.parent === null || parent === undefined) throw invalid(field, `${field}: a root cannot be moved or renamed`);
  if (parent !== row.parent) {
    checkFolder(relatedNode(context, caller, row.workspace, parent, "parentId"), "parentId");
    if (isWithin(context.store, parent, row.id)) {
      throw invalid("parentId", "parentId: a folder cannot be moved into itself or below itself");
    }
  }
  checkFree(context, parent, name, row.id);
}

function checkRevision(context: Context, headers: Call<"patchNode">["headers"], row: NodeRow): void {
  const condition = headers["if-match"];
  // The path is looked up only when the revision alone does not suffice.
  if (matches(condition, String(row.revision)) || matches(condition, nodeTag(showCurrent(context.store, row)))) return;
  throw hasMovedOn(context, row);
}

function hasMovedOn(context: Context, row: NodeRow) {
  return changed(`The node is at revision ${row.revision}.`, showCurrent(context.store, row));
}

export function exchangeNodes(context: Context, call: Call<"exchangeNodes">): GatewayAnswer {
  const body = required(call.json);
  return context.store.transaction(() => {
    const row = visibleNode(context, call.caller, call.parameters.nodeId);
    const key = body.idempotencyKey;
    return once(
      context,
      call.caller,
      { workspace: row.workspace, key, same: ["exchangeNodes", row.id, body.with] },
      () => {
        checkLive(row);
        const other = relatedNode(context, call.caller, row.workspace, body.with, "with");
        if (other.deleted === 1) throw notFound(`with: the node ${JSON.stringify(other.id)} is deleted.`);
        checkRevision(context, call.headers, row);
        if (body.withRevision !== undefined && body.withRevision !== other.revision) throw hasMovedOn(context, other);
        if (row.parent === null || other.parent === null) throw invalid("with", "with: a root cannot be exchanged");
        if (isWithin(context.store, row.id, other.id) || isWithin(context.store, other.id, row.id)) {
          throw invalid("with", "with: a node cannot be exchanged with itself or with a folder it is in");
        }
        const position = changeNodeRows(context, beginChange(context, changeOf(call.caller, key)), [
          { row: other, kind: "moved", to: { parent: row.parent, name: row.name } },
          { row, kind: "moved", to: { parent: other.parent, name: other.name } },
        ]);
        return { status: 200, written: { id: row.id, position } };
      },
    );
  });
}

export function deleteNode(context: Context, call: Call<"deleteNode">): GatewayAnswer {
  const { store } = context;
  return store.transaction(() => {
    const row = visibleNode(context, call.caller, call.parameters.nodeId);
    const key = call.query.idempotencyKey;
    return once(context, call.caller, { workspace: row.workspace, key, same: ["deleteNode", row.id] }, () => {
      checkLive(row);
      checkRevision(context, call.headers, row);
      if (row.parent === null) throw invalid("nodeId", "nodeId: a root cannot be deleted");
      const child = store.prepare("SELECT 1 FROM node WHERE parent = ? AND deleted = 0 LIMIT 1").get(row.id);
      if (child !== undefined) throw conflict("The folder is not empty.", showCurrent(store, row));
      const position = changeNodeRow(context, beginChange(context, changeOf(call.caller, key)), row, "deleted", {
        deleted: true,
      });
      return { status: 200, written: { id: row.id, position } };
    });
  });
}

export function restoreNode(context: Context, call: Call<"restoreNode">): GatewayAnswer {
  const { store } = context;
  return store.transaction(() => {
    const row = visibleNode(context, call.caller, call.parameters.nodeId);
    const { idempotencyKey: key, ...place } = call.json ?? {};
    const { parentId, name = row.name } = place;
    const same = ["restoreNode", row.id, ...(parentId === undefined && place.name === undefined ? [] : [place])];
    return once(context, call.caller, { workspace: row.workspace, key, same }, () => {
      if (row.deleted === 0) throw conflict("The node is not deleted.", showCurrent(store, row));
      // A root is never deleted.
      const parent =
        parentId === undefined
          ? reread(context, row.parent ?? "")
          : relatedNode(context, call.caller, row.workspace, parentId, "parentId");
      if (parent.kind !== "folder") throw invalid("parentId", "parentId: expected a folder, got a file");
      if (parent.deleted === 1) {
        throw conflict("The folder it would be in is deleted: restore that first.", showCurrent(store, parent));
      }
      checkFree(context, parent.id, name);
      const position = changeNodeRow(context, beginChange(context, changeOf(call.caller, key)), row, "restored", {
        deleted: false,
        parent: parent.id,
        name,
      });
      return { status: 200, written: { id: row.id, position } };
    });
  });
}

function required<T>(body: T | undefined): T {
  if (body === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  return body;
}

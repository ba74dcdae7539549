/** Workspaces: creation, listing, and the workspace of a request. */

import { nameProblem } from "../contract/names.ts";
import type { Author, Workspace } from "../contract/resources.ts";
import { isUuid } from "../lib/uuid.ts";
import { changeOf, checkAccess, roleIn } from "./access.ts";
import { beginChange, createNodeRow } from "./changes.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange } from "./lag.ts";
import { findNode, type NodeRow } from "./node-rows.ts";
import { pageOfList } from "./paging.ts";
import { conflict, invalid, lacksGrant, notFound } from "./problems.ts";
import { quotaOf } from "./quota.ts";
import type { Row } from "./sorted-lists.ts";
import type { Store } from "./store.ts";
import type { Caller } from "./tokens.ts";

export interface WorkspaceRow {
  readonly id: string;
  readonly name: string;
  readonly root: string;
  /** See quota.ts. */
  readonly used: number;
}

export function findWorkspace(store: Store, nameOrId: string): WorkspaceRow | undefined {
  return store
    .prepare<WorkspaceRow>(
      "SELECT id, name, root, used FROM workspace WHERE id = :text OR name = :text ORDER BY id = :text DESC",
    )
    .get({ text: nameOrId });
}

/** Makes the workspace when there is none of this name. Throws when the name is invalid. */
export function ensureWorkspace(context: Context, name: string): WorkspaceRow {
  const { store } = context;
  const problem = nameProblem(name);
  if (problem !== undefined) throw new Error(`The workspace name ${JSON.stringify(name)} ${problem}.`);
  return store.transaction(() => {
    return workspaceNamed(store, name) ?? insertWorkspace(context, name, context.clock.uuid(), null);
  });
}

function workspaceNamed(store: Store, name: string): WorkspaceRow | undefined {
  return store.prepare<WorkspaceRow>("SELECT id, name, root, used FROM workspace WHERE name = ?").get(name);
}

function insertWorkspace(context: Context, name: string, id: string, by: Author | null): WorkspaceRow {
  const { store } = context;
  const change = beginChange(context, { by });
  store
    .prepare("INSERT INTO workspace (id, name, root, created_at, entries, used) VALUES (?, ?, '', ?, 0, 0)")
    .run(id, name, change.time);
  const root = createNodeRow(context, change, {
    workspace: id,
    kind: "folder",
    parent: null,
    name: "",
    attributes: {},
  });
  store.prepare("UPDATE workspace SET root = ? WHERE id = ?").run(root.id, id);
  return { id, name, root: root.id, used: 0 };
}

/**
 * Names belong to the gateway, not to an account: a caller that may make workspaces learns that a name is taken, and
 * nothing else about that workspace. The role is stored first, in its own store. So whenever the gateway dies, no
 * workspace is without an owner; at most there is a role in a workspace that was never created.
 */
export function createWorkspace(context: Context, { caller, json }: Call<"createWorkspace">): GatewayAnswer {
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  if (isUuid(json.name)) throw invalid("name", `name: expected a name that does not look like an id, got ${json.name}`);
  if (caller.workspace !== undefined) {
    throw lacksGrant(
      "The token is bound to a workspace: it takes one that is not to make others.",
      caller.workspace,
      "owner",
    );
  }
  const { store, clock, accounts } = context;
  const made = store.transaction(() => {
    if (workspaceNamed(store, json.name) !== undefined) {
      throw conflict(`There is a workspace ${JSON.stringify(json.name)} already.`);
    }
    const id = clock.uuid();
    if (caller.account !== undefined) accounts.setRole(caller.account.id, id, "owner");
    clock.step("gateway: owner of a new workspace");
    return insertWorkspace(context, json.name, id, changeOf(caller, null).by);
  });
  return jsonAnswer(201, shown(context, caller, made));
}

/** Returns the workspace of a call by path or of the journal: that of the token, or the one of `workspace=`. */
export function callWorkspace(context: Context, caller: Caller, asked: string | undefined): WorkspaceRow {
  if (caller.workspace === undefined) {
    if (asked === undefined) {
      throw invalid("workspace", "The token is bound to no workspace: name one with workspace= (name or id).");
    }
    return seenWorkspace(context, caller, asked);
  }
  const row = seenWorkspace(context, caller, caller.workspace);
  if (asked === undefined || asked === row.id || asked === row.name) return row;
  const other = seenWorkspace(context, { ...caller, workspace: undefined }, asked);
  throw lacksGrant("The token is bound to another workspace.", other.id, caller.needs ?? "viewer");
}

function seenWorkspace(context: Context, caller: Caller, nameOrId: string): WorkspaceRow {
  const unseen = () => notFound(`There is no workspace ${JSON.stringify(nameOrId)}.`);
  const row = findWorkspace(context.store, nameOrId);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.id, unseen);
  return row;
}

/**
 * Returns the node of an id as it is now, deleted nodes included. Throws a 404 when there is none or the account has no
 * role in its workspace, and a 403 when its role is too low or the token is bound elsewhere.
 */
export function visibleNode(context: Context, caller: Caller, id: string): NodeRow {
  const unseen = () => notFound(`There is no node ${JSON.stringify(id)}.`);
  const row = findNode(context.store, id);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.workspace, unseen);
  return row;
}

/** Like `visibleNode`, but throws a 404 when the node is deleted. */
export function liveNode(context: Context, caller: Caller, id: string): NodeRow {
  const row = visibleNode(context, caller, id);
  if (row.deleted === 1) throw notFound(`The node ${JSON.stringify(id)} is deleted.`);
  return row;
}

/** Returns a node of `workspace` that another one is to be put in or beside. Problems name the field of its id. */
export function relatedNode(context: Context, caller: Caller, workspace: string, id: string, field: string): NodeRow {
  const row = findNode(context.store, id);
  if (row === undefined || roleIn(context, caller, row.workspace) === undefined) {
    throw notFound(`${field}: there is no node ${JSON.stringify(id)}.`);
  }
  if (row.workspace !== workspace) throw invalid(field, `${field}: the node is in another workspace.`);
  return row;
}

/** Fields of a workspace, and their SQL. */
const FIELDS = {
  id: "w.id",
  name: "w.name",
  rootId: "w.root",
  // The quota of the workspace, as quotaOf finds it.
  quota: `coalesce((SELECT value FROM json_each(:quota) WHERE key = w.name),
                   (SELECT value FROM json_each(:quota) WHERE key = 'all'))`,
  used: "w.used",
  role: `coalesce((SELECT value FROM json_each(:roles) WHERE key = w.id), 'owner')`,
} as const satisfies Record<keyof Workspace, string>;
type Field = keyof typeof FIELDS;

export async function listWorkspaces(context: Context, call: Call<"listWorkspaces">): Promise<GatewayAnswer> {
  const { store } = context;
  const { caller, query } = call;
  // A bound token gets its own workspace or is refused.
  if (caller.workspace !== undefined) callWorkspace(context, caller, query.workspace);
  const { position: asOf } = lastChange(store);
  const quota = JSON.stringify(context.options.quota);
  const memberships = caller.account && context.accounts.memberships({ account: caller.account.id });
  // Null: all workspaces.
  const roles =
    memberships === undefined
      ? null
      : JSON.stringify(Object.fromEntries(memberships.map(({ workspace, role }) => [workspace, role])));
  const page = await pageOfList(context.lists, query, {
    key: ["workspaces", caller.workspace ?? null, query.workspace ?? null, quota, roles],
    fields: Object.keys(FIELDS) as Field[],
    fallback: "name",
    asOf,
    changedAt: (position) => position,
    rows: (field, position) => [
      store
        .prepare<Row>(
          `SELECT w.rowid AS row, w.id, ${FIELDS[field]} AS value FROM workspace w
           WHERE (SELECT min(position) FROM change WHERE node = w.root AND activity = 0) <= :position
             AND (:roles IS NULL OR w.id IN (SELECT key FROM json_each(:roles)))
             AND (:bound IS NULL OR w.id = :bound) AND (:bound IS NOT NULL OR :asked IS NULL OR :asked IN (w.id, w.name))`,
        )
        .all({ position, bound: caller.workspace ?? null, asked: query.workspace ?? null, quota, roles }),
    ],
    show: (rows) =>
      store
        .prepare<WorkspaceRow>(
          `SELECT w.id, w.name, w.root, w.used FROM json_each(?) j CROSS JOIN workspace w ON w.rowid = j.value`,
        )
        .all(JSON.stringify(rows))
        .map((row) => shown(context, caller, row)),
  });
  return jsonAnswer(200, page);
}

function shown(context: Context, caller: Caller, { id, name, root, used }: WorkspaceRow): Workspace {
  const quota = quotaOf(context, name);
  const role = roleIn(context, caller, id);
  return { id, name, rootId: root, ...(quota === undefined ? {} : { quota }), used, ...(role && { role }) };
}

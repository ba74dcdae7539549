/**
 * Every operation of the gateway: its method, its path and the scopes that its token must have (gateway-spec §4,
 * docs/gateway/api.md). The server registers its routes from this table, and the client builds its requests from it.
 * `{name}` is one encoded path segment. `{path}` is the rest of the path, with its "/" kept or encoded.
 */
import type { Role } from "./roles.ts";
import { type Scope, UPLOAD_SCOPES } from "./scopes.ts";

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly scopes: readonly Scope[];
  /** Scopes of `scopes` that the token may lack: the call then has less effect (gateway-spec §4, upload rule 4). */
  readonly mayLack?: readonly Scope[];
  /** The effect of a lacking scope, for the OpenAPI document: the rest of a sentence that begins "Without node.…". */
  readonly lacking?: string;
  /** The least role of the account in the workspace of the call. Absent: the call is not about a workspace. */
  readonly role?: Role;
  readonly summary: string;
}

const NOT_JOURNALED =
  "the change is made, but not journaled: new folders are not provisioned, and not found by path until a journal entry names them.";
/** The entry that started an execution belongs to the journal, so it needs the scopes of `readJournal`. */
const EXECUTION_SCOPES = {
  mayLack: ["node.node.read-all"],
  lacking: "`cause` has the position of the journal entry, not the entry.",
} as const;

export const OPERATIONS = {
  listWorkspaces: {
    method: "GET",
    path: "/v1/workspaces",
    scopes: ["account.workspace.read"],
    summary: "The workspaces that the token may see",
  },
  createWorkspace: {
    method: "POST",
    path: "/v1/workspaces",
    scopes: ["account.workspace.create"],
    summary: "Make a workspace; the caller's account becomes its owner",
  },
  listNodes: {
    method: "GET",
    path: "/v1/nodes",
    scopes: ["node.node.read-all"],
    role: "viewer",
    summary: "The nodes of a folder, given by path= or parentId=; or the nodes deleted from it (deleted=true)",
  },
  streamNodes: {
    method: "GET",
    path: "/v1/tree",
    scopes: ["node.node.read-all"],
    role: "viewer",
    summary:
      "All nodes below a folder, given by path= or parentId=, as lines, at one position. Accept: application/x-ndjson of /v1/nodes?recursive=true is the same, unless it gives orderBy, name or deleted",
  },
  getNode: {
    method: "GET",
    path: "/v1/nodes/{nodeId}",
    scopes: ["node.file.read"],
    role: "viewer",
    summary: "One node by its id",
  },
  getNodeByPath: {
    method: "GET",
    path: "/v1/files/{path}",
    scopes: ["node.file.read"],
    role: "viewer",
    summary: "One node by path",
  },
  getContent: {
    method: "GET",
    path: "/v1/nodes/{nodeId}/content",
    scopes: ["node.file.read"],
    role: "viewer",
    summary: "The bytes of a file, of its head or of version=",
  },
  upload: {
    method: "POST",
    path: "/v1/files/{path}",
    scopes: UPLOAD_SCOPES,
    mayLack: ["node.journal.create"],
    lacking: NOT_JOURNALED,
    role: "editor",
    summary: "Create a file with content, and its parent folders; with parentId= the path starts at that folder",
  },
  writeContent: {
    method: "PUT",
    path: "/v1/nodes/{nodeId}/content",
    scopes: ["node.node.update"],
    role: "editor",
    summary: "A new version with the bytes of a multipart body",
  },
  writeReference: {
    method: "POST",
    path: "/v1/nodes/{nodeId}/versions",
    scopes: ["node.node.update", "node.file.read"],
    role: "editor",
    summary:
      "A new version by reference: the bytes of a version that the gateway has. PUT of the content takes the same JSON",
  },
  createNode: {
    method: "POST",
    path: "/v1/nodes",
    scopes: ["node.node.create", "node.journal.create"],
    mayLack: ["node.journal.create"],
    lacking: NOT_JOURNALED,
    role: "editor",
    summary: "A new folder, or a copy of a node",
  },
  patchNode: {
    method: "PATCH",
    path: "/v1/nodes/{nodeId}",
    scopes: ["node.node.update"],
    role: "editor",
    summary: "Move, rename, change attributes",
  },
  exchangeNodes: {
    method: "POST",
    path: "/v1/nodes/{nodeId}/exchange",
    scopes: ["node.node.update"],
    role: "editor",
    summary: "Two nodes take each other's place",
  },
  deleteNode: {
    method: "DELETE",
    path: "/v1/nodes/{nodeId}",
    scopes: ["node.file.delete"],
    role: "editor",
    summary: "Delete a node",
  },
  restoreNode: {
    method: "POST",
    path: "/v1/nodes/{nodeId}/restore",
    scopes: ["node.node.update"],
    role: "editor",
    summary: "Bring a deleted node back to its place, or to another one",
  },
  restoreTree: {
    method: "POST",
    path: "/v1/nodes/{nodeId}/restore-tree",
    scopes: ["node.node.update", "node.file.read", "node.file.delete"],
    mayLack: ["node.file.delete"],
    lacking: "`exact` is refused: it deletes newer nodes.",
    role: "editor",
    summary: "Bring a node and all below it back to the state of a moment; each request does a part",
  },
  listVersions: {
    method: "GET",
    path: "/v1/nodes/{nodeId}/versions",
    scopes: ["node.file.read"],
    role: "viewer",
    summary: "The versions of a file, also of a deleted one",
  },
  appendJournal: {
    method: "POST",
    path: "/v1/journal",
    scopes: ["node.journal.create"],
    role: "editor",
    summary: "Record an activity",
  },
  readJournal: {
    method: "GET",
    path: "/v1/journal",
    scopes: ["node.node.read-all"],
    role: "viewer",
    summary:
      "The entries after a position (after=), oldest first; all, or those of a node, an account, a mount, a time",
  },
  streamJournal: {
    method: "GET",
    path: "/v1/journal/stream",
    scopes: ["node.node.read-all"],
    role: "viewer",
    summary: "The entries after a position (after= or Last-Event-ID) as server-sent events, as they come",
  },
  getAccount: {
    method: "GET",
    path: "/v1/account",
    scopes: [],
    summary: "The account, scopes and workspaces of the token",
  },
  listGrants: {
    method: "GET",
    path: "/v1/grants",
    scopes: ["account.grant.read"],
    role: "owner",
    summary: "The roles of accounts in a workspace",
  },
  setGrant: {
    method: "PUT",
    path: "/v1/grants",
    scopes: ["account.grant.update"],
    role: "owner",
    summary: "Give an account a role in a workspace, or change its role",
  },
  removeGrant: {
    method: "DELETE",
    path: "/v1/grants",
    scopes: ["account.grant.update"],
    role: "owner",
    summary: "Remove an account's role in a workspace",
  },
  listEngines: {
    method: "GET",
    path: "/v1/engines",
    scopes: ["execution.execution.run"],
    summary: "All engines",
  },
  getEngine: {
    method: "GET",
    path: "/v1/engines/{engineId}",
    scopes: ["execution.execution.run"],
    summary: "One engine, by id or name",
  },
  createInstallation: {
    method: "POST",
    path: "/v1/installations",
    scopes: ["marketplace.install.create", "node.node.create"],
    role: "owner",
    summary: "Install an engine in a workspace, and make its folder",
  },
  listInstallations: {
    method: "GET",
    path: "/v1/installations",
    scopes: ["marketplace.install.read"],
    role: "viewer",
    summary: "The engines that are installed in a workspace",
  },
  getInstallation: {
    method: "GET",
    path: "/v1/installations/{installationId}",
    scopes: ["marketplace.install.read"],
    role: "viewer",
    summary: "One installation",
  },
  removeInstallation: {
    method: "DELETE",
    path: "/v1/installations/{installationId}",
    scopes: ["marketplace.install.delete"],
    role: "owner",
    summary: "Remove an engine from a workspace; its folder stays",
  },
  startExecution: {
    method: "POST",
    path: "/v1/executions",
    scopes: ["execution.execution.run"],
    role: "editor",
    summary: "Run an engine",
  },
  listExecutions: {
    method: "GET",
    path: "/v1/executions",
    scopes: ["execution.execution.read", "node.node.read-all"],
    ...EXECUTION_SCOPES,
    role: "viewer",
    summary: "The executions of a workspace, newest first",
  },
  getExecution: {
    method: "GET",
    path: "/v1/executions/{executionId}",
    scopes: ["execution.execution.read", "node.node.read-all"],
    ...EXECUTION_SCOPES,
    role: "viewer",
    summary: "One execution",
  },
  cancelExecution: {
    method: "POST",
    path: "/v1/executions/{executionId}/cancel",
    scopes: ["execution.execution.cancel", "node.node.read-all"],
    ...EXECUTION_SCOPES,
    role: "editor",
    summary: "End an execution; one that has ended stays as it is",
  },
  readLogs: {
    method: "GET",
    path: "/v1/executions/{executionId}/logs",
    scopes: ["execution.execution.read"],
    role: "viewer",
    summary: "The lines of an execution after a number (after=), oldest first",
  },
  streamLogs: {
    method: "GET",
    path: "/v1/executions/{executionId}/logs/stream",
    scopes: ["execution.execution.read"],
    role: "viewer",
    summary:
      "The lines after a number (after= or Last-Event-ID) as server-sent events, as they come, and its end. Accept: text/event-stream of the path without /stream is the same",
  },
  createApiKey: {
    method: "POST",
    path: "/v1/api-keys",
    scopes: ["account.key.create"],
    role: "owner",
    summary: "Make an API key for a workspace; it is shown this once",
  },
  listApiKeys: {
    method: "GET",
    path: "/v1/api-keys",
    scopes: ["account.key.read"],
    role: "owner",
    summary: "The API keys of a workspace",
  },
  revokeApiKey: {
    method: "DELETE",
    path: "/v1/api-keys/{keyId}",
    scopes: ["account.key.delete"],
    role: "owner",
    summary: "End an API key, at once",
  },
  createTrigger: {
    method: "POST",
    path: "/v1/triggers",
    scopes: ["execution.trigger.create"],
    role: "owner",
    summary: "Make a trigger: journal entries, or set times, start an engine",
  },
  listTriggers: {
    method: "GET",
    path: "/v1/triggers",
    scopes: ["execution.trigger.read"],
    role: "viewer",
    summary: "The triggers of a workspace",
  },
  getTrigger: {
    method: "GET",
    path: "/v1/triggers/{triggerId}",
    scopes: ["execution.trigger.read"],
    role: "viewer",
    summary: "One trigger",
  },
  updateTrigger: {
    method: "PATCH",
    path: "/v1/triggers/{triggerId}",
    scopes: ["execution.trigger.update"],
    role: "owner",
    summary: "Switch a trigger on or off, or change its condition or input",
  },
  removeTrigger: {
    method: "DELETE",
    path: "/v1/triggers/{triggerId}",
    scopes: ["execution.trigger.delete"],
    role: "owner",
    summary: "Remove a trigger; its executions go on",
  },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
/** The parameters in an operation's path: `nodeId` of "/v1/nodes/{nodeId}". */
export type ParameterOf<N extends OperationName> = NamesIn<(typeof OPERATIONS)[N]["path"]>;

/** Fills in the parameters, encoded. `{path}` keeps its slashes. */
export function operationPath(name: OperationName, parameters: Readonly<Record<string, string>>): string {
  return OPERATIONS[name].path.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = parameters[key] ?? "";
    return key === "path" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
}

/** The operation that a method and an encoded path stand for. Undefined: none. */
export function findOperation(method: string, path: string): OperationName | undefined {
  const given = path.split("/");
  return (Object.keys(OPERATIONS) as OperationName[]).find((name) => {
    const { method: expected, path: template }: Operation = OPERATIONS[name];
    const segments = template.split("/");
    const isRest = segments.at(-1) === "{path}";
    if (method !== expected || (isRest ? given.length < segments.length : given.length !== segments.length))
      return false;
    const fixed = isRest ? segments.slice(0, -1) : segments;
    return fixed.every((segment, index) => segment.startsWith("{") || segment === given[index]);
  });
}

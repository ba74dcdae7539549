/** A tree in a gateway's core, with good calls of each operation on it, and calls it does not allow. */
import { z } from "zod";
import { newAccount } from "../../support/account-token.ts";
import type { TestCore } from "../../support/gateway-core.ts";

export interface Example {
  /** Of a node, or of what else the path names by its id. */
  readonly id?: string;
  readonly path?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly metadata?: unknown;
  readonly file?: string;
  readonly token?: string;
  readonly method?: string;
}

/** The path of an operation, with what the example says in it. Nothing is encoded: tests send what should be, and is not. */
export function filledPath(template: string, { id = "", path = "" }: Example): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => (name === "path" ? path : id));
}

export interface Examples {
  /** Good calls by operation, the usual one first. */
  readonly examples: Readonly<Record<string, readonly Example[]>>;
  /** Calls the tree does not allow. */
  readonly conflicts: Readonly<Record<string, Example>>;
}

export async function makeExamples(core: TestCore): Promise<Examples> {
  const root = core.workspace.root;
  const file = await core.file("/d/f", "x");
  const other = await core.file("/d/g", "xx");
  const tag = (await core.call("GET", "/v1/files/d/f")).headers.etag ?? "";
  const gone = await core.file("/d/h", "x");
  const again = await core.file("/d/i", "x");
  const below = await core.file("/d/e/f", "x");
  const at = new Date(core.clock.wallClock()).toISOString();
  await core.clock.advance(1000);
  for (const id of [gone.id, again.id, below.id, below.parentId]) await core.call("DELETE", `/v1/nodes/${id}`);
  const { accounts } = core.accounts;
  const ada = newAccount(core.accounts, "ada");
  const eve = newAccount(core.accounts, "eve");
  accounts.setRole(ada.id, core.workspace.id, "viewer");
  accounts.setRole(eve.id, core.workspace.id, "owner");
  const engine = { description: "", command: ["true"], timeLimitSeconds: 60, scopes: [], inputSchema: null };
  for (const name of ["scan", "resize"]) core.accounts.engines.add({ ...engine, name });
  const made = async (path: string, json: object) => String((await core.call("POST", path, { json })).json.id);
  const installation = await made("/v1/installations", { engine: "scan" });
  const execution = await made("/v1/executions", { engine: "scan" });
  const apiKey = await made("/v1/api-keys", { name: "backup", scopes: ["node.file.read"] });
  const on = { journal: { kinds: ["created"], path: "/in/**" } };
  const trigger = await made("/v1/triggers", { name: "new", engine: "scan", on });
  // Its engine is installed no more.
  const resize = await made("/v1/installations", { engine: "resize" });
  const idle = await made("/v1/triggers", { name: "idle", engine: "resize", on });
  await core.call("DELETE", `/v1/installations/${resize}`);
  const reference = { copyOf: other.id, attributes: { mode: 0o600 }, idempotencyKey: "k" };
  const examples = {
    listWorkspaces: [{}],
    listNodes: [
      { query: { path: "/d" } },
      { query: { parentId: root, after: "", orderBy: "name" } },
      { query: { path: "/", deleted: "true", recursive: "true", orderBy: "-deletedAt" } },
    ],
    streamNodes: [{ query: { path: "/d" } }, { query: { parentId: root, after: "" } }],
    getNode: [{ id: file.id }, { id: file.id, headers: { "if-none-match": "*" } }],
    getNodeByPath: [{ path: "d/f" }, { path: "d/f", headers: { "if-none-match": tag } }],
    getContent: [
      { id: file.id },
      { id: file.id, headers: { range: "bytes=0-0" } },
      { id: file.id, headers: { "if-none-match": `"${file.head}"` } },
    ],
    upload: [
      { path: "d/new", file: "x", metadata: { attributes: { mode: 0o644 } } },
      { path: "d/f", file: "y" },
    ],
    writeContent: [{ id: file.id, file: "x" }],
    writeReference: [{ id: file.id, json: reference }],
    createNode: [
      { json: { parentId: root, name: "n", kind: "folder", attributes: { xattrs: { a: "YQ==" } } } },
      { json: { parentId: root, name: "copy", copyOf: file.id, version: file.head } },
    ],
    patchNode: [{ id: file.id, json: { name: "n", parentId: root, attributes: { mode: null } } }],
    exchangeNodes: [{ id: file.id, json: { with: other.id } }],
    deleteNode: [{ id: file.id }],
    restoreNode: [{ id: gone.id }, { id: again.id, json: { idempotencyKey: "r" } }],
    restoreTree: [
      { id: file.id, json: { at, idempotencyKey: "k" } },
      { id: root, json: { at, exact: true, plan: true, after: "" } },
    ],
    listVersions: [{ id: file.id }],
    appendJournal: [{ json: { nodeId: file.id, kind: "seen" } }],
    readJournal: [{}, { query: { nodeId: file.id, since: at, by: "ada", mount: "here", before: "true" } }],
    streamJournal: [{}],
    getAccount: [{}],
    listGrants: [{}, { query: { after: "", orderBy: "-role" } }],
    setGrant: [{ json: { account: "ada", role: "editor" } }],
    removeGrant: [{ query: { account: "ada" } }],
    createWorkspace: [{ json: { name: "papers" } }],
    listEngines: [{}, { query: { after: "", orderBy: "-createdAt" } }],
    getEngine: [{ id: "scan" }],
    createInstallation: [{ json: { engine: "resize", path: "/tools/resize", idempotencyKey: "k" } }],
    listInstallations: [{}, { query: { after: "", orderBy: "-createdAt" } }],
    getInstallation: [{ id: installation }],
    removeInstallation: [{ id: installation }],
    startExecution: [{ json: { engine: "scan", input: { size: 1 }, idempotencyKey: "k" } }],
    listExecutions: [{}, { query: { after: "", orderBy: "state", state: "queued" } }],
    getExecution: [{ id: execution }],
    cancelExecution: [{ id: execution }],
    readLogs: [{ id: execution }],
    streamLogs: [{ id: execution }],
    createApiKey: [{ json: { name: "k", scopes: ["node.file.read"] } }],
    listApiKeys: [{}, { query: { after: "", orderBy: "-createdAt" } }],
    revokeApiKey: [{ id: apiKey }],
    createTrigger: [{ json: { name: "t", engine: "scan", on, input: 1, isEnabled: false, idempotencyKey: "k" } }],
    listTriggers: [{}, { query: { after: "", orderBy: "-createdAt" } }],
    getTrigger: [{ id: trigger }],
    updateTrigger: [{ id: trigger, json: { isEnabled: false, on, input: 2 } }],
    removeTrigger: [{ id: trigger }],
  };
  const conflicts = {
    upload: { path: "d", file: "x" },
    createNode: { json: { parentId: root, name: "d", kind: "folder" } },
    patchNode: { id: file.id, json: { name: "g" } },
    deleteNode: { id: String(file.parentId) },
    restoreNode: { id: file.id },
    restoreTree: { id: below.id, json: { at } },
    // The only owner.
    setGrant: { json: { account: "eve", role: "viewer" } },
    removeGrant: { query: { account: "eve" } },
    createWorkspace: { json: { name: "workspace" } },
    createInstallation: { json: { engine: "scan" } },
    startExecution: { json: { engine: "resize" } },
    createTrigger: { json: { name: "new", engine: "scan", on } },
    updateTrigger: { id: idle, json: { input: 1 } },
  };
  return { examples, conflicts };
}

/** Gives up, by the policy of retention, what it may, and answers calls of operations that would need it. */
export async function giveUp(core: TestCore, { createNode, restoreNode, restoreTree }: Examples["examples"]) {
  const copy = z.object({ copyOf: z.string(), version: z.string() }).loose().parse(createNode?.[1]?.json);
  await core.file("/d/f", "newer");
  core.gateway.retention.setPolicy("workspace", { versions: "none", deleted: "0d" });
  core.clock.jump(1000);
  await core.gateway.retention.prune();
  const { copyOf: id, version } = copy;
  const calls: Readonly<Record<string, Example | undefined>> = {
    getContent: { id, query: { version } },
    writeReference: { id, json: { copyOf: id, version } },
    createNode: { json: copy },
    restoreNode: restoreNode?.[0],
    restoreTree: { ...restoreTree?.[0], ...restoreNode?.[0] },
  };
  return calls;
}

/** One of those that the path names, in another workspace; undefined: they are in none. */
export async function elsewhere(core: TestCore, parameter: string): Promise<string | undefined> {
  const other = core.gateway.ensureWorkspace("other");
  const options = { token: core.token(undefined, null), query: { workspace: "other" } };
  const made = async (path: string, json: object) =>
    String((await core.call("POST", path, { json, ...options })).json.id);
  const on = { journal: {} };
  if (parameter === "nodeId") return other.root;
  if (parameter === "keyId") return made("/v1/api-keys", { name: "k", scopes: ["node.file.read"] });
  if (parameter === "engineId") return undefined;
  const installation = await made("/v1/installations", { engine: "scan" });
  if (parameter === "installationId") return installation;
  if (parameter === "executionId") return made("/v1/executions", { engine: "scan" });
  if (parameter === "triggerId") return made("/v1/triggers", { name: "t", engine: "scan", on });
  throw new Error(`${parameter} is new: say what one of another workspace is.`);
}

/** Engines, and their installations in workspaces. */
import type { Engine, Installation } from "../../contract/engines.ts";
import { changeOf, checkAccess, shownAuthor } from "../access.ts";
import type { EngineEntry } from "../accounts/index.ts";
import { beginChange } from "../changes.ts";
import type { Context } from "../context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "../exchange.ts";
import { once } from "../idempotency.ts";
import { lastChange } from "../lag.ts";
import { pageOfItems } from "../paging.ts";
import { parsePath } from "../paths.ts";
import { conflict, invalid, notFound } from "../problems.ts";
import type { Store } from "../store.ts";
import type { Caller } from "../tokens.ts";
import { makeFolders, walk } from "../uploads.ts";
import { callWorkspace } from "../workspaces.ts";

const ENGINE_FIELDS = ["id", "name", "description", "timeLimitSeconds", "createdAt"] as const;

export function listEngines(context: Context, call: Call<"listEngines">): GatewayAnswer {
  const items = context.registered.list().map(shownEngine);
  const by = (field: (typeof ENGINE_FIELDS)[number]) => (item: Engine) => item[field];
  const { position: asOf } = lastChange(context.store);
  return jsonAnswer(200, pageOfItems(call.query, { items, fields: ENGINE_FIELDS, fallback: "name", by, asOf }));
}

export function getEngine(context: Context, call: Call<"getEngine">): GatewayAnswer {
  const engine = context.registered.find(call.parameters.engineId);
  if (engine === undefined) throw notFound(`There is no engine ${JSON.stringify(call.parameters.engineId)}.`);
  return jsonAnswer(200, shownEngine(engine));
}

/** Leaves out the command, which only the owner of the gateway may know. */
function shownEngine({ command: _, scopes, createdAt, ...rest }: EngineEntry): Engine {
  return { ...rest, scopes: [...scopes], inputSchema: rest.inputSchema, createdAt: new Date(createdAt).toISOString() };
}

export interface InstallationRow {
  readonly id: string;
  readonly workspace: string;
  readonly workspaceName: string;
  readonly engine: string;
  readonly engineName: string;
  readonly folder: string;
  readonly createdAt: number;
  /** JSON of an Author. */
  readonly by: string | null;
}

const SELECT = `SELECT i.id, i.workspace, w.name AS workspaceName, i.engine, i.engine_name AS engineName, i.folder,
    i.created_at AS createdAt, i.by
  FROM installation i JOIN workspace w ON w.id = i.workspace`;

/** Finds the installation of an engine in a workspace, both by id. */
export function findInstallation(store: Store, workspace: string, engine: string): InstallationRow | undefined {
  return store.prepare<InstallationRow>(`${SELECT} WHERE i.workspace = ? AND i.engine = ?`).get(workspace, engine);
}

function installationSeen(context: Context, caller: Caller, id: string): InstallationRow {
  const unseen = () => notFound(`There is no installation ${JSON.stringify(id)}.`);
  const row = context.store.prepare<InstallationRow>(`${SELECT} WHERE i.id = ?`).get(id);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.workspace, unseen);
  return row;
}

function shown(row: InstallationRow): Installation {
  return {
    id: row.id,
    engine: { id: row.engine, name: row.engineName },
    workspace: { id: row.workspace, name: row.workspaceName },
    folderId: row.folder,
    createdAt: new Date(row.createdAt).toISOString(),
    by: shownAuthor(row.by),
  };
}

export function createInstallation(context: Context, call: Call<"createInstallation">): GatewayAnswer {
  const { store, clock } = context;
  const { caller, json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const workspace = callWorkspace(context, caller, call.query.workspace);
  const { engine: asked, path, idempotencyKey: key } = json;
  const names = path === undefined ? undefined : parsePath(path);
  if (names?.length === 0) throw invalid("path", "path: expected a folder below the root");
  return store.transaction(() => {
    const request = { workspace: workspace.id, key, same: ["createInstallation", asked, path ?? null] };
    const effect = () => {
      const engine = requiredEngine(context, asked);
      if (findInstallation(store, workspace.id, engine.id) !== undefined) {
        throw conflict(`The engine ${engine.name} is installed in the workspace already.`);
      }
      const change = beginChange(context, changeOf(caller, key));
      const { parent, missing } = walk(context, workspace.root, names ?? ["Engines", engine.name]);
      const folder = makeFolders(context, change, parent, missing);
      const id = clock.uuid();
      store
        .prepare(
          `INSERT INTO installation (id, workspace, engine, engine_name, folder, created_at, by)
           VALUES (?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(id, workspace.id, engine.id, engine.name, folder, change.time, change.by);
      return { status: 201, value: shown(installationSeen(context, caller, id)) };
    };
    // A caller that may install sees the answer, even without the right to read files.
    return once(context, caller, request, effect, (value) => value);
  });
}

/** Throws a 404 that names the field when there is no such engine. */
export function requiredEngine(context: Context, nameOrId: string): EngineEntry {
  const engine = context.registered.find(nameOrId);
  if (engine === undefined) throw notFound(`engine: there is no engine ${JSON.stringify(nameOrId)}.`);
  return engine;
}

const FIELDS = ["id", "engine", "workspace", "folderId", "createdAt"] as const;

export function listInstallations(context: Context, call: Call<"listInstallations">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const items = context.store.prepare<InstallationRow>(`${SELECT} WHERE i.workspace = ?`).all(workspace.id).map(shown);
  const by = (field: (typeof FIELDS)[number]) => (item: Installation) =>
    field === "engine" || field === "workspace" ? item[field].name : item[field];
  const { position: asOf } = lastChange(context.store);
  return jsonAnswer(200, pageOfItems(call.query, { items, fields: FIELDS, fallback: "engine", by, asOf }));
}

export function getInstallation(context: Context, call: Call<"getInstallation">): GatewayAnswer {
  return jsonAnswer(200, shown(installationSeen(context, call.caller, call.parameters.installationId)));
}

/** The folder of the installation stays. Running executions go on; waiting ones are cancelled at their turn. */
export function removeInstallation(context: Context, call: Call<"removeInstallation">): GatewayAnswer {
  context.store.transaction(() => {
    const { id } = installationSeen(context, call.caller, call.parameters.installationId);
    context.store.prepare("DELETE FROM installation WHERE id = ?").run(id);
  });
  return { status: 204, headers: {} };
}

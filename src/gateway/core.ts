/**
 * The gateway without sockets: a request in, an answer out. Finds the operation, checks the token,
 * its scopes and what came, and calls the operation. It takes time and chance from a Clock, so the
 * same core serves HTTP and a simulation on a virtual clock.
 */
import { withoutApiKeys } from "../contract/api-keys.ts";
import { INPUTS } from "../contract/inputs.ts";
import { type OpenApiDocument, openApiDocument } from "../contract/openapi.ts";
import { OPERATIONS, type Operation, type OperationName } from "../contract/operations.ts";
import type { Role } from "../contract/roles.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep } from "../lib/runtime.ts";
import type { Connection } from "../lib/sqlite/index.ts";
import { type AccountStore, accountsInMemory } from "./accounts/index.ts";
import { createApiKey, listApiKeys, revokeApiKey } from "./api-keys.ts";
import { thinAttributes } from "./attribute-states.ts";
import { createBirths } from "./births.ts";
import type { Blobs } from "./blobs.ts";
import { getContent } from "./content.ts";
import { type Context, DEFAULT_OPTIONS, type GatewayOptions } from "./context.ts";
import { answerControl, CONTROL_PATH } from "./control.ts";
import { finishCopies, finishPlaced } from "./copies.ts";
import {
  cancelExecution,
  createInstallation,
  createQueue,
  type EngineHost,
  type EngineQueue,
  getEngine,
  getExecution,
  getInstallation,
  isRunning,
  listEngines,
  listExecutions,
  listInstallations,
  readLogs,
  removeInstallation,
  startExecution,
  streamLogs,
} from "./engines/index.ts";
import { type Call, type GatewayAnswer, type GatewayRequest, jsonAnswer } from "./exchange.ts";
import { excessOfRates, faultChanges } from "./fault-options.ts";
import { ConnectionReset, withFaults } from "./faults.ts";
import { getAccount, listGrants, removeGrant, setGrant, workspacesOfAccount } from "./grants.ts";
import { forgetKeys } from "./idempotency.ts";
import { createIds } from "./ids.ts";
import { appendJournal, readJournal } from "./journal.ts";
import { streamJournal } from "./journal-stream.ts";
import { createLag } from "./lag.ts";
import { listNodes } from "./listings.ts";
import { createNode, deleteNode, exchangeNodes, getNode, getNodeByPath, patchNode, restoreNode } from "./nodes.ts";
import {
  check,
  diskFull,
  failed,
  invalid,
  isDiskFull,
  ProblemError,
  tooLarge,
  unsettled,
  withoutNode,
} from "./problems.ts";
import { checkQuotaNames } from "./quota.ts";
import { restoreTree } from "./restore-tree.ts";
import { findRoute, type Route } from "./routes.ts";
import { checkScopes, mayRead } from "./scopes.ts";
import { createSignal } from "./signal.ts";
import { createSortedLists } from "./sorted-lists.ts";
import { FRAMING_BYTES } from "./staging.ts";
import { createStore } from "./store.ts";
import { type Caller, createTokenCheck, type OwnToken, readOwnToken, signToken, type TokenClaims } from "./tokens.ts";
import {
  createDispatcher,
  createTrigger,
  getTrigger,
  listTriggers,
  removeTrigger,
  updateTrigger,
} from "./triggers/index.ts";
import { upload, writeContent, writeReference } from "./uploads.ts";
import { listVersions } from "./versions.ts";
import { callWorkspace, createWorkspace, ensureWorkspace, listWorkspaces, type WorkspaceRow } from "./workspaces.ts";

type Handler<N extends OperationName> = (context: Context, call: Call<N>) => GatewayAnswer | Promise<GatewayAnswer>;

const HANDLERS: { readonly [N in OperationName]: Handler<N> } = {
  listWorkspaces,
  listNodes,
  getNode,
  getNodeByPath,
  getContent,
  upload,
  writeContent,
  writeReference,
  createNode,
  patchNode,
  exchangeNodes,
  deleteNode,
  restoreNode,
  restoreTree,
  listVersions,
  appendJournal,
  readJournal,
  streamJournal,
  getAccount,
  listGrants,
  setGrant,
  removeGrant,
  createWorkspace,
  listEngines,
  getEngine,
  createInstallation,
  listInstallations,
  getInstallation,
  removeInstallation,
  startExecution,
  listExecutions,
  getExecution,
  cancelExecution,
  readLogs,
  streamLogs,
  createApiKey,
  listApiKeys,
  revokeApiKey,
  createTrigger,
  listTriggers,
  getTrigger,
  updateTrigger,
  removeTrigger,
};

/** What a mount calls itself. */
const MOUNT_HEADER = "wsfs-mount";
const MOUNT_NAME = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/;
/** A key that was replaced is known for so long: longer than any access token of a sign-in lives. */
const KEY_OVERLAP_MS = 3600_000;

const OPEN_API = "/openapi.json";
/** On a disk that is full one that keeps what it shows may fail, and the next one shows what is kept. */
const READ_TRIES = 3;

export interface GatewayNeeds {
  readonly clock: Clock;
  /** Opened by the caller (`openDatabase`), who also closes it; in memory for a simulation. */
  readonly database: Connection;
  readonly blobs: Blobs;
  /** Secret that signs the access tokens of the command line, 32 bytes. */
  readonly signingKey: Uint8Array;
  /** Opened by the caller, who also closes it; in memory when absent. */
  readonly accounts?: AccountStore;
  /** The address that people sign in at, once it is known: tokens of a sign-in are good where it is their issuer. */
  readonly issuer?: () => string | undefined;
  readonly options?: Partial<GatewayOptions>;
  readonly log: Logger;
  /** Runs engines; without it none can be run. */
  readonly engines?: EngineHost;
  /** Calls back at the end of the event loop's turn, whose changes then share a commit; without it each has its own. */
  readonly turn?: (callback: () => void) => void;
  /** Whether there is a control endpoint (control.ts). */
  readonly control?: boolean;
}

export interface Gateway {
  /**
   * Never rejects but with ConnectionReset: then the caller's connection is to break without an answer.
   * `reword`: the answer in other words, before it is slowed or cut off on purpose.
   */
  handle(request: GatewayRequest, reword?: (answer: GatewayAnswer) => GatewayAnswer): Promise<GatewayAnswer>;
  /** Throws when they are not what fault-options.ts says, or name a workspace that is not there. */
  setOptions(options: Partial<GatewayOptions>): void;
  /** Answers that would go on for ever end, at what they have said so far. Before the gateway closes. */
  endStreams(): void;
  /** Makes it when there is none of this name. */
  ensureWorkspace(name: string): WorkspaceRow;
  issueToken(claims: TokenClaims): string;
  /** What a token that was issued so says. Undefined: it is none. */
  readOwnToken(token: string): OwnToken | undefined;
  /** Absent where no engines can be run. */
  readonly engines: EngineQueue | undefined;
  /** What an account may use, by name. */
  workspacesOf(account: string): readonly { readonly id: string; readonly name: string; readonly role: Role }[];
  /** Drops what has expired of sign-ins, and has a new key sign where it is time. */
  tidyAccounts(): void;
  /** Absent where another language is spoken than the contract's. */
  readonly openApi?: () => OpenApiDocument;
  /** Removes blobs no version refers to, but for those of uploads under way. Answers how many. */
  collectBlobs(): Promise<number>;
  /** Removes keys that have lived long enough, and old states of attributes, a few at a time. */
  forget(): Promise<void>;
  /** Commits what waits, and resolves when nothing goes on any more for callers that were let go. */
  settle(): Promise<void>;
}

export function createGateway(needs: GatewayNeeds): Gateway {
  const { blobs, signingKey, log } = needs;
  const news = createSignal();
  const store = createStore(needs.database, needs.turn, log);
  const options: GatewayOptions = { ...DEFAULT_OPTIONS, ...checkedOptions(needs.options ?? {}, DEFAULT_OPTIONS) };
  const clock: Clock = { ...needs.clock, wallClock: () => needs.clock.wallClock() + options.clockSkewMs };
  const accountStore = needs.accounts ?? accountsInMemory(needs.clock);
  const lists = createSortedLists();
  store.beforeCommit(() => clock.step("gateway: about to commit"));
  store.afterCommit(() => clock.step("gateway: committed"));
  const told = new Set<string>();
  store.afterCommit(() => {
    news.fire(told);
    told.clear();
  });
  store.afterRollback(() => told.clear());
  store.afterRollback(lists.forget);
  let engines: EngineQueue | undefined;
  const context: Context = {
    clock,
    newId: createIds(clock),
    store,
    accounts: accountStore.accounts,
    apiKeys: accountStore.apiKeys,
    registered: accountStore.engines,
    get engines() {
      return engines;
    },
    triggers: { look: (workspace) => triggers.look(workspace) },
    blobs,
    options,
    pathLag: createLag(store, clock, "path", () => ({
      lagMs: options.pathLagMs,
      jitterMs: options.pathLagJitterMs,
    })),
    journalLag: createLag(store, clock, "journal", () => ({
      lagMs: options.journalLagMs,
      jitterMs: options.journalLagJitterMs,
    })),
    births: createBirths(store, clock, options),
    staged: new Set(),
    lists,
    news,
    told,
  };
  const issueToken = (claims: TokenClaims) => signToken(signingKey, clock, claims, accountStore.revokedUntil());
  const triggers = createDispatcher(context, log);
  if (needs.engines !== undefined) engines = createQueue(context, needs.engines, issueToken, log);
  finishCopies(context);
  triggers.begin();
  const checkToken = createTokenCheck({
    key: signingKey,
    clock,
    store: accountStore,
    issuer: () => needs.issuer?.(),
    isRunning: (execution) => isRunning(store, execution),
    lifeSeconds: () => options.tokenSeconds,
  });
  const background = new Set<Promise<unknown>>();

  function inBackground(work: Promise<unknown>): void {
    const settled = work.catch(() => {}).finally(() => background.delete(settled));
    background.add(settled);
  }

  function setOptions(changes: Partial<GatewayOptions>): void {
    const checked = checkedOptions(changes, options);
    if (checked.quota !== undefined) checkQuotaNames(store, checked.quota);
    // What was to be seen under the old ones stays so.
    context.pathLag.shown();
    context.journalLag.shown();
    context.births.settle();
    Object.assign(options, checked);
    news.fireAll();
  }

  async function callOf(route: Route, request: GatewayRequest): Promise<Call<OperationName>> {
    const operation: Operation = OPERATIONS[route.operation];
    const token = checkToken(request.headers.authorization);
    checkScopes(token, operation);
    const bearer = { ...token, needs: operation.role, mount: mountOf(request) };
    const input: { query: (typeof INPUTS)[OperationName]["query"]; body?: object } = INPUTS[route.operation];
    // Some are of no workspace and take none.
    const query: { workspace?: string | undefined; pageNo?: number } = check(input.query, request.query, "query");
    const caller = route.operation === "listWorkspaces" ? bearer : within(context, bearer, query.workspace);
    checkLength(request, options);
    const call = {
      parameters: route.parameters,
      query,
      headers: request.headers,
      caller,
      json: await jsonOf(route.operation, request, options),
      parts: request.body?.kind === "upload" ? request.body.parts : undefined,
    };
    // Paired with the operation by the tables; the compiler cannot follow that.
    return call as unknown as Call<OperationName>;
  }

  let document: OpenApiDocument | undefined;
  const openApi = () => {
    document ??= openApiDocument();
    return document;
  };
  /**
   * Every answer waits for the commit of what it tells; refusals too, for they tell of what is there. A
   * read during which changes were undone looks again: what it tells of may never have been. Where that
   * never ends, it tells nothing.
   */
  async function answer(route: Route, request: GatewayRequest): Promise<GatewayAnswer> {
    const call = await callOf(route, request);
    const handler = HANDLERS[route.operation] as Handler<OperationName>;
    for (let tries = 1; ; tries += 1) {
      const rollbacks = store.rollbacks();
      const told = await toldBy(() => handler(context, call));
      clock.step("gateway: about to answer");
      if (request.method === "GET" && rollbacks !== store.rollbacks()) {
        if (tries < READ_TRIES) continue;
        throw unsettled();
      }
      if ("error" in told) throw mayRead(call.caller) ? told.error : withoutNode(told.error);
      return told.answer;
    }
  }

  type Told = { readonly answer: GatewayAnswer } | { readonly error: unknown };

  async function toldBy(handle: () => GatewayAnswer | Promise<GatewayAnswer>): Promise<Told> {
    let told: Told;
    try {
      const given = handle();
      told = { answer: given instanceof Promise ? await given : given };
    } catch (error) {
      told = { error };
    }
    const details = "answer" in told ? told.answer : told.error instanceof ProblemError ? told.error.details : {};
    if (details.isCommitted === true) return told;
    // Asked for in the turn of the handler's end: a later one's commit is not its concern.
    const pending = store.committed();
    return pending === undefined
      ? told
      : pending.then(
          () => told,
          (error: unknown) => ({ error }),
        );
  }

  type Reword = (answer: GatewayAnswer) => GatewayAnswer;

  async function route(request: GatewayRequest, reword: Reword): Promise<GatewayAnswer> {
    if (needs.control === true && request.path === CONTROL_PATH) return answerControl(request, options, setOptions);
    const found = routeOf(request);
    return withFaults(options, clock, {
      operation: found.operation,
      request,
      answer: async (given) => reword(await answer(found, given)),
      inBackground,
    });
  }

  /** Refusals too are answers. */
  async function tell(request: GatewayRequest, reword: Reword): Promise<GatewayAnswer> {
    try {
      if (request.method === "GET" && request.path === OPEN_API) return jsonAnswer(200, openApi());
      return await route(request, reword);
    } catch (error) {
      if (error instanceof ConnectionReset) throw error;
      if (error instanceof ProblemError) return reword(jsonAnswer(error.status, error.document, error.details.headers));
      const { method } = request;
      const path = withoutApiKeys(request.path);
      if (isDiskFull(error)) {
        log.error({ err: error, method, path }, "no room left for what a request brought");
        return reword(jsonAnswer(507, diskFull().document));
      }
      log.error({ err: error, method, path }, "request failed unexpectedly");
      return reword(jsonAnswer(500, failed().document));
    }
  }

  return {
    async handle(request, reword = (told) => told) {
      const told = await tell(request, reword);
      if (options.clockSkewMs === 0) return told;
      return { ...told, headers: { ...told.headers, date: new Date(clock.wallClock()).toUTCString() } };
    },
    openApi,
    setOptions,
    endStreams: () => news.end(),
    ensureWorkspace(name) {
      const row = ensureWorkspace(context, name);
      store.flush();
      return row;
    },
    issueToken,
    readOwnToken: (token) => readOwnToken({ key: signingKey, clock, store: accountStore }, token),
    engines,
    workspacesOf: (account) => workspacesOfAccount(context, account),
    tidyAccounts() {
      accountStore.records.tidy();
      accountStore.keys.rotate(KEY_OVERLAP_MS);
    },
    async forget() {
      for (const forgetSome of [forgetKeys, thinAttributes]) {
        const some = (after: number) => store.transaction(() => forgetSome(context, after));
        // Requests come in between.
        for (let after = some(0); after !== undefined; after = some(after)) await sleep(clock, 0);
      }
      await finishPlaced(context);
      await engines?.forget();
    },
    async settle() {
      store.flush();
      await Promise.all(background);
      store.flush();
    },
    async collectBlobs() {
      const found: string[] = [];
      for await (const blob of blobs.list()) found.push(blob);
      const isUsed = store.prepare("SELECT 1 FROM content WHERE blob = ?");
      let removed = 0;
      for (const blob of found) {
        if (context.staged.has(blob) || isUsed.get(blob) !== undefined) continue;
        await blobs.remove(blob);
        clock.step("gateway: blob collected");
        removed += 1;
      }
      return removed;
    },
  };
}

/**
 * JSON in the place of content is a version by reference, as clients sent it before that had a path of its own. Who takes
 * events only is answered with events.
 */
function routeOf({ method, path, headers, body }: GatewayRequest): Route {
  const route = findRoute(method, path);
  if (route.operation === "writeContent" && body?.kind === "json") return { ...route, operation: "writeReference" };
  const takesEvents = headers.accept?.trim().toLowerCase().startsWith("text/event-stream") === true;
  return route.operation === "readLogs" && takesEvents ? { ...route, operation: "streamLogs" } : route;
}

/** Who names a workspace is, for this call, bound to it: the nodes it is about are there, or it is refused. */
function within(context: Context, caller: Caller, workspace: string | undefined): Caller {
  if (workspace === undefined) return caller;
  return { ...caller, workspace: callWorkspace(context, caller, workspace).id };
}

function mountOf({ headers }: GatewayRequest): string | undefined {
  const name = headers[MOUNT_HEADER];
  if (name === undefined || MOUNT_NAME.test(name)) return name;
  throw invalid("Wsfs-Mount", "Wsfs-Mount: expected 1 to 128 visible ASCII characters");
}

/** An upload that says itself that it is too large is refused before any of it is received. */
function checkLength({ body, headers }: GatewayRequest, { maxFileBytes, maxJsonBytes }: GatewayOptions): void {
  const length = Number(headers["content-length"] ?? 0);
  if (body?.kind !== "upload" || length <= maxFileBytes + maxJsonBytes + FRAMING_BYTES) return;
  throw tooLarge(`file: more than ${maxFileBytes} bytes`, "file");
}

/** `before`: what stays where nothing is said. */
function checkedOptions(
  { maxFileBytes, maxJsonBytes, ...faults }: Partial<GatewayOptions>,
  before: Readonly<GatewayOptions>,
): Partial<GatewayOptions> {
  const checked = check(faultChanges, faults, "options");
  const { failRate = before.failRate, faults: rates = before.faults } = checked;
  const excess = excessOfRates({ failRate, faults: rates });
  if (excess !== undefined) {
    const field = checked.faults === undefined ? "failRate" : `faults.${excess.target}`;
    throw invalid(field, `${field}: ${excess.problem}`);
  }
  const all = { ...checked, maxFileBytes, maxJsonBytes };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** The JSON body, checked. Operations that take one say themselves when it is missing. */
async function jsonOf(
  name: OperationName,
  request: GatewayRequest,
  { maxJsonBytes }: GatewayOptions,
): Promise<unknown> {
  const input = INPUTS[name];
  if (request.body === undefined) return undefined;
  if (!("body" in input)) {
    // Of GET it means nothing (RFC 9110 §9.3.1); a deletion's key would be taken for one.
    if (!("metadata" in input) && request.method !== "GET") throw invalid("body", "body: this call takes none");
    return undefined;
  }
  if (request.body.kind === "json") return check(input.body, await request.body.read(maxJsonBytes), "body");
  if ("metadata" in input) return undefined;
  throw invalid("body", "body: expected a JSON object (content-type application/json)");
}

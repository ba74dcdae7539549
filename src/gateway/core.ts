/**
 * The gateway without sockets: a request in, an answer out. It finds the operation, checks the token, its scopes and
 * the input, and calls the operation. Time and randomness come from a Clock, so that the same core serves HTTP and a
 * simulation on a virtual clock.
 */
import { withoutApiKeys } from "../contract/api-keys.ts";
import { NODE_LINES } from "../contract/http.ts";
import { INPUTS } from "../contract/inputs.ts";
import { type OpenApiDocument, openApiDocument } from "../contract/openapi.ts";
import { OPERATIONS, type Operation, type OperationName } from "../contract/operations.ts";
import type { Role } from "../contract/roles.ts";
import { wallTime } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep } from "../lib/runtime.ts";
import type { Connection } from "../lib/sqlite/index.ts";
import { HOUR_MS } from "../lib/time.ts";
import { type AccountStore, accountsInMemory } from "./accounts/index.ts";
import { createApiKey, listApiKeys, revokeApiKey } from "./api-keys.ts";
import { thinAttributes } from "./attribute-states.ts";
import { createBirths } from "./births.ts";
import type { Blobs } from "./blobs.ts";
import { collectBlobs } from "./collect-blobs.ts";
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
import { listNodes, streamNodes } from "./listings.ts";
import { createNode, deleteNode, exchangeNodes, getNode, getNodeByPath, patchNode, restoreNode } from "./nodes.ts";
import {
  check,
  diskFull,
  failed,
  invalid,
  isDiskFull,
  ProblemError,
  tooLarge,
  tryAgain,
  withoutNode,
} from "./problems.ts";
import { checkQuotaNames } from "./quota.ts";
import { restoreTree } from "./restore-tree.ts";
import { createRetention, type Retention } from "./retention/index.ts";
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
  streamNodes,
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

/** The name of the mount that sends the request. */
const MOUNT_HEADER = "wsfs-mount";
const MOUNT_NAME = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/;
/** The time for which a replaced key is known: longer than the life of any access token of a sign-in. */
const KEY_OVERLAP_MS = HOUR_MS;

const OPEN_API = "/openapi.json";
/**
 * The number of tries of a read. On a full disk, a read that stores the position it shows may fail; the next one shows
 * the stored position.
 */
const READ_TRIES = 3;

interface GatewayNeeds {
  readonly clock: Clock;
  /** Opened (`openDatabase`) and closed by the caller. In memory for a simulation. */
  readonly database: Connection;
  readonly blobs: Blobs;
  /** The secret that signs the access tokens of the command line, 32 bytes. */
  readonly signingKey: Uint8Array;
  /** Opened and closed by the caller. Absent: in memory. */
  readonly accounts?: AccountStore;
  /** The address at which people sign in, once it is known. A token of a sign-in is valid if this is its issuer. */
  readonly issuer?: () => string | undefined;
  readonly options?: Partial<GatewayOptions>;
  readonly log: Logger;
  /** Runs engines. Absent: none can run. */
  readonly engines?: EngineHost;
  /**
   * Calls back at the end of the event loop's turn, so that the changes of a turn share a commit. Absent: each change
   * has its own.
   */
  readonly turn?: (callback: () => void) => void;
  /** True if there is a control endpoint (control.ts). */
  readonly control?: boolean;
}

export interface Gateway {
  /**
   * Rejects only with ConnectionReset, for which the caller must break the connection without an answer. `reword`
   * translates the answer before a fault slows it or cuts it off.
   */
  handle(request: GatewayRequest, reword?: (answer: GatewayAnswer) => GatewayAnswer): Promise<GatewayAnswer>;
  /** Throws a ProblemError (400) if the options do not fit fault-options.ts, or name an unknown workspace. */
  setOptions(options: Partial<GatewayOptions>): void;
  /** Ends all streams; a stream of nodes may be unfinished then. Must be called before the gateway closes. */
  endStreams(): void;
  /** Makes the workspace if there is none of this name. Throws an Error if the name is invalid. */
  ensureWorkspace(name: string): WorkspaceRow;
  issueToken(claims: TokenClaims): string;
  /** The claims of a token that `issueToken` made. Undefined: `issueToken` did not make it. */
  readOwnToken(token: string): OwnToken | undefined;
  /** Absent where no engines can run. */
  readonly engines: EngineQueue | undefined;
  /** The workspaces that an account may use, ordered by id. */
  workspacesOf(account: string): readonly { readonly id: string; readonly name: string; readonly role: Role }[];
  /** Removes expired records of sign-ins, and rotates the signing key when it is time. */
  tidyAccounts(): void;
  /** Absent if the gateway speaks another language than the contract's (bare.ts). */
  readonly openApi?: () => OpenApiDocument;
  /** Removes blobs that no version refers to, except those of uploads under way. Returns their number. */
  collectBlobs(): Promise<number>;
  /** Removes expired idempotency keys and old states of attributes, a few at a time. */
  forget(): Promise<void>;
  readonly retention: Retention;
  /** Commits pending changes. Resolves when the requests whose connection a fault broke are carried out. */
  finishRequests(): Promise<void>;
}

export function createGateway(needs: GatewayNeeds): Gateway {
  const { blobs, signingKey, log } = needs;
  const news = createSignal();
  const store = createStore(needs.database, needs.turn, log);
  const options: GatewayOptions = { ...DEFAULT_OPTIONS, ...checkedOptions(needs.options ?? {}, DEFAULT_OPTIONS) };
  const clock: Clock = { ...needs.clock, wallClock: () => wallTime(needs.clock.wallClock() + options.clockSkewMs) };
  const accountStore = needs.accounts ?? accountsInMemory(needs.clock);
  const lists = createSortedLists();
  store.beforeCommit(() => clock.step("gateway: about to commit"));
  store.afterCommit(() => clock.step("gateway: committed"));
  const withNews = new Set<string>();
  store.afterCommit(() => {
    news.fire(withNews);
    withNews.clear();
  });
  store.afterRollback(() => withNews.clear());
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
    copying: new Set(),
    lists,
    news,
    withNews,
  };
  const issueToken = (claims: TokenClaims) => signToken(signingKey, clock, claims, accountStore.revokedUntil());
  const triggers = createDispatcher(context, log);
  const retention = createRetention(context);
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
    const ended = work.catch(() => {}).finally(() => background.delete(ended));
    background.add(ended);
  }

  function setOptions(changes: Partial<GatewayOptions>): void {
    const checked = checkedOptions(changes, options);
    if (checked.quota !== undefined) checkQuotaNames(store, checked.quota);
    // Changes that were visible under the old options stay visible.
    context.pathLag.shown();
    context.journalLag.shown();
    context.births.keepFound();
    Object.assign(options, checked);
    news.fireAll();
  }

  async function callOf(route: Route, request: GatewayRequest): Promise<Call<OperationName>> {
    const operation: Operation = OPERATIONS[route.operation];
    const token = checkToken(request.headers.authorization);
    checkScopes(token, operation);
    const bearer = { ...token, needs: operation.role, mount: mountOf(request) };
    const input: { query: (typeof INPUTS)[OperationName]["query"]; body?: object } = INPUTS[route.operation];
    // Some operations belong to no workspace and take none.
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
    // The tables pair the input with the operation, which the compiler cannot follow.
    return call as unknown as Call<OperationName>;
  }

  let document: OpenApiDocument | undefined;
  const openApi = () => {
    document ??= openApiDocument();
    return document;
  };
  /**
   * Every answer waits for the commit of the changes it reports. Refusals wait too, because they reveal changes. A read
   * during which changes were undone is repeated: the answer may show changes that never happened. After READ_TRIES the
   * read fails.
   */
  async function answer(route: Route, request: GatewayRequest): Promise<GatewayAnswer> {
    const call = await callOf(route, request);
    const handler = HANDLERS[route.operation] as Handler<OperationName>;
    for (let tries = 1; ; tries += 1) {
      const rollbacks = store.rollbacks();
      const outcome = await outcomeOf(() => handler(context, call));
      clock.step("gateway: about to answer");
      if (request.method === "GET" && rollbacks !== store.rollbacks()) {
        if (tries < READ_TRIES) continue;
        throw tryAgain();
      }
      if ("error" in outcome) throw mayRead(call.caller) ? outcome.error : withoutNode(outcome.error);
      return outcome.answer;
    }
  }

  type Outcome = { readonly answer: GatewayAnswer } | { readonly error: unknown };

  async function outcomeOf(handle: () => GatewayAnswer | Promise<GatewayAnswer>): Promise<Outcome> {
    let outcome: Outcome;
    try {
      const given = handle();
      outcome = { answer: given instanceof Promise ? await given : given };
    } catch (error) {
      outcome = { error };
    }
    const details =
      "answer" in outcome ? outcome.answer : outcome.error instanceof ProblemError ? outcome.error.details : {};
    if (details.isCommitted === true) return outcome;
    // This is asked in the turn in which the handler ends: the commit of a later turn does not concern the answer.
    const pending = store.committed();
    return pending === undefined
      ? outcome
      : pending.then(
          () => outcome,
          (error: unknown) => ({ error }),
        );
  }

  type Reword = (answer: GatewayAnswer) => GatewayAnswer;

  async function route(request: GatewayRequest, reword: Reword): Promise<GatewayAnswer> {
    if (needs.control === true && request.path === CONTROL_PATH) return answerControl(request, options, setOptions);
    const { found, request: asked } = routed(request);
    return withFaults(options, clock, {
      operation: found.operation,
      request: asked,
      answer: async (given) => reword(await answer(found, given)),
      inBackground,
    });
  }

  /** Refusals are answers too. */
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
        log.error({ err: error, method, path }, "the disk has no room for a request");
        return reword(jsonAnswer(507, diskFull().document));
      }
      log.error({ err: error, method, path }, "request failed unexpectedly");
      return reword(jsonAnswer(500, failed().document));
    }
  }

  return {
    async handle(request, reword = (answered) => answered) {
      const answered = await tell(request, reword);
      return { ...answered, headers: { ...answered.headers, date: new Date(clock.wallClock()).toUTCString() } };
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
    retention,
    workspacesOf: (account) => workspacesOfAccount(context, account),
    tidyAccounts() {
      accountStore.records.tidy();
      accountStore.keys.rotate(KEY_OVERLAP_MS);
    },
    async forget() {
      for (const forgetSome of [forgetKeys, thinAttributes]) {
        const some = (after: number) => store.transaction(() => forgetSome(context, after));
        // Other requests are answered in between.
        for (let after = some(0); after !== undefined; after = some(after)) await sleep(clock, 0);
      }
      await finishPlaced(context);
      await engines?.forget();
    },
    async finishRequests() {
      store.flush();
      await Promise.all(background);
      store.flush();
    },
    collectBlobs: () => collectBlobs(context),
  };
}

/**
 * Finds the operation of a request, which its body or its Accept header may change. JSON in the place of content means
 * a version by reference: clients sent it so before that had its own path. A client that accepts events gets the stream
 * of a log. A client that accepts lines gets the stream of nodes, if it asks for everything below a folder, in no given
 * order. Parameters of pages are ignored then.
 */
function routed(request: GatewayRequest): { readonly found: Route; readonly request: GatewayRequest } {
  const { method, path, headers, query, body } = request;
  const found = findRoute(method, path);
  const as = (operation: OperationName, asked = request) => ({ found: { ...found, operation }, request: asked });
  if (found.operation === "writeContent" && body?.kind === "json") return as("writeReference");
  const accept = headers.accept?.trim().toLowerCase() ?? "";
  if (found.operation === "readLogs" && accept.startsWith("text/event-stream")) return as("streamLogs");
  const { recursive, deleted, pageNo: _, pageSize: __, ...rest } = query;
  const isWhole = recursive === "true" && deleted !== "true" && rest.name === undefined && rest.orderBy === undefined;
  if (found.operation === "listNodes" && isWhole && accept.startsWith(NODE_LINES)) {
    return as("streamNodes", { ...request, query: rest });
  }
  return { found, request };
}

/** A call that names a workspace is bound to it: its nodes must be in that workspace, or it is refused. */
function within(context: Context, caller: Caller, workspace: string | undefined): Caller {
  if (workspace === undefined) return caller;
  return { ...caller, workspace: callWorkspace(context, caller, workspace).id };
}

function mountOf({ headers }: GatewayRequest): string | undefined {
  const name = headers[MOUNT_HEADER];
  if (name === undefined || MOUNT_NAME.test(name)) return name;
  throw invalid("Wsfs-Mount", "Wsfs-Mount: expected 1 to 128 visible ASCII characters");
}

/** An upload that announces itself as too large is refused before it is received. */
function checkLength({ body, headers }: GatewayRequest, { maxFileBytes, maxJsonBytes }: GatewayOptions): void {
  const length = Number(headers["content-length"] ?? 0);
  if (body?.kind !== "upload" || length <= maxFileBytes + maxJsonBytes + FRAMING_BYTES) return;
  throw tooLarge(`file: more than ${maxFileBytes} bytes`, "file");
}

/** `before`: the options in force; they stay if no others are given. */
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

/** The checked JSON body. Operations that need one refuse a missing body themselves. */
async function jsonOf(
  name: OperationName,
  request: GatewayRequest,
  { maxJsonBytes }: GatewayOptions,
): Promise<unknown> {
  const input = INPUTS[name];
  if (request.body === undefined) return undefined;
  if (!("body" in input)) {
    // A body of GET means nothing (RFC 9110 §9.3.1). The sender of a DELETE may expect the key in its body to be used.
    if (!("metadata" in input) && request.method !== "GET") throw invalid("body", "body: this call takes none");
    return undefined;
  }
  if (request.body.kind === "json") return check(input.body, await request.body.read(maxJsonBytes), "body");
  if ("metadata" in input) return undefined;
  throw invalid("body", "body: expected a JSON object (content-type application/json)");
}

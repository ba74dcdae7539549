/**
 * The gateway without sockets: a request in, an answer out. Finds the operation, checks the token,
 * its scopes and what came, and calls the operation. It takes time and chance from a Clock, so the
 * same core serves HTTP and a simulation on a virtual clock.
 */
import type { Database } from "better-sqlite3";
import { INPUTS } from "../contract/inputs.ts";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";
import type { Logger } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import type { Blobs } from "./blobs.ts";
import { getContent } from "./content.ts";
import { type Context, DEFAULT_OPTIONS, type GatewayOptions } from "./context.ts";
import { type Call, type GatewayAnswer, type GatewayRequest, jsonAnswer } from "./exchange.ts";
import { ConnectionReset, withFaults } from "./faults.ts";
import { appendJournal, readJournal } from "./journal.ts";
import { streamJournal } from "./journal-stream.ts";
import { createLag } from "./lag.ts";
import { listNodes } from "./listings.ts";
import { createNode, deleteNode, exchangeNodes, getNode, getNodeByPath, patchNode, restoreNode } from "./nodes.ts";
import { check, invalid, ProblemError } from "./problems.ts";
import { findRoute } from "./routes.ts";
import { checkScopes } from "./scopes.ts";
import { createSignal } from "./signal.ts";
import { createSortedLists } from "./sorted-lists.ts";
import { createStore } from "./store.ts";
import { createTokenCheck, signToken, type TokenClaims } from "./tokens.ts";
import { upload, writeContent } from "./uploads.ts";
import { listVersions } from "./versions.ts";
import { ensureWorkspace, listWorkspaces, type WorkspaceRow } from "./workspaces.ts";

type Handler<N extends OperationName> = (context: Context, call: Call<N>) => GatewayAnswer | Promise<GatewayAnswer>;

const HANDLERS: { readonly [N in OperationName]: Handler<N> } = {
  listWorkspaces,
  listNodes,
  getNode,
  getNodeByPath,
  getContent,
  upload,
  writeContent,
  createNode,
  patchNode,
  exchangeNodes,
  deleteNode,
  restoreNode,
  listVersions,
  appendJournal,
  readJournal,
  streamJournal,
};

export interface GatewayNeeds {
  readonly clock: Clock;
  /** Opened by the caller (`openDatabase`), who also closes it; in memory for a simulation. */
  readonly database: Database;
  readonly blobs: Blobs;
  /** Secret that signs the access tokens, 32 bytes. */
  readonly signingKey: Uint8Array;
  readonly options?: Partial<GatewayOptions>;
  readonly log: Logger;
}

export interface Gateway {
  /** Never rejects but with ConnectionReset: then the caller's connection is to break without an answer. */
  handle(request: GatewayRequest): Promise<GatewayAnswer>;
  setOptions(options: Partial<GatewayOptions>): void;
  /** Answers that would go on for ever end, at what they have said so far. Before the gateway closes. */
  endStreams(): void;
  /** Makes it when there is none of this name. */
  ensureWorkspace(name: string): WorkspaceRow;
  issueToken(claims: TokenClaims): string;
  /** Removes blobs no version refers to, of those that were there when it began. Answers how many. */
  collectBlobs(): Promise<number>;
}

export function createGateway(needs: GatewayNeeds): Gateway {
  const { clock, blobs, signingKey, log } = needs;
  const news = createSignal();
  const store = createStore(needs.database, news.fire);
  const options: GatewayOptions = { ...DEFAULT_OPTIONS, ...needs.options };
  const context: Context = {
    clock,
    store,
    blobs,
    options,
    pathLag: createLag(store, clock, "path", () => options.pathLagMs),
    journalLag: createLag(store, clock, "journal", () => options.journalLagMs),
    lists: createSortedLists(),
    news,
  };
  const checkToken = createTokenCheck(signingKey, clock);

  async function answer(request: GatewayRequest): Promise<GatewayAnswer> {
    const route = findRoute(request.method, request.path);
    const operation = OPERATIONS[route.operation];
    const caller = checkToken(request.headers.authorization);
    checkScopes(caller, operation);
    const input: { query: (typeof INPUTS)[OperationName]["query"]; body?: object } = INPUTS[route.operation];
    const query = check(input.query, request.query, "query");
    const call = {
      parameters: { nodeId: route.nodeId, path: route.path },
      query,
      headers: request.headers,
      caller,
      json: await jsonOf(route.operation, request),
      parts: request.body?.kind === "upload" ? request.body.parts : undefined,
    };
    // The table pairs each operation with its own input and handler; the compiler cannot follow that.
    const handler = HANDLERS[route.operation] as unknown as (context: Context, call: object) => Promise<GatewayAnswer>;
    return handler(context, call);
  }

  return {
    async handle(request) {
      try {
        return await withFaults(options, clock, () => answer(request));
      } catch (error) {
        if (error instanceof ConnectionReset) throw error;
        if (error instanceof ProblemError) return jsonAnswer(error.status, error.document, error.details.headers);
        log.error({ err: error, method: request.method, path: request.path }, "request failed unexpectedly");
        return jsonAnswer(500, new ProblemError(500, "The gateway failed; its log says why.").document);
      }
    },
    setOptions(changes) {
      Object.assign(options, changes);
      news.fire();
    },
    endStreams: () => news.end(),
    ensureWorkspace: (name) => ensureWorkspace(context, name),
    issueToken: (claims) => signToken(signingKey, clock, claims),
    async collectBlobs() {
      const found: string[] = [];
      for await (const blob of blobs.list()) found.push(blob);
      const isUsed = store.prepare("SELECT 1 FROM content WHERE blob = ?");
      let removed = 0;
      for (const blob of found) {
        if (isUsed.get(blob) !== undefined) continue;
        await blobs.remove(blob);
        removed += 1;
      }
      return removed;
    },
  };
}

/** The JSON body, checked. Operations that take one say themselves when it is missing. */
async function jsonOf(name: OperationName, request: GatewayRequest): Promise<unknown> {
  const input = INPUTS[name];
  if (!("body" in input) || request.body === undefined) return undefined;
  if (request.body.kind === "json") return check(input.body, await request.body.read(), "body");
  if ("metadata" in input) return undefined;
  throw invalid("body", "body: expected a JSON object (content-type application/json)");
}

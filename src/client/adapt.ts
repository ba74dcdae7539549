/**
 * Translates between the contract and another gateway: a transport around a transport, controlled by a profile. It
 * rewrites the client's requests for that gateway, and its answers for the client. If several calls of the gateway can
 * replace a missing feature, they are made here. The engine must do without all other missing features.
 */

import { z } from "zod";
import type { HttpAnswer, HttpRequest, Transport } from "../contract/http.ts";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";
import type { WallTime } from "../lib/clocks.ts";
import { discard, readJson } from "./answers.ts";
import { RemoteError } from "./errors.ts";
import { rewordLines } from "./lines.ts";
import type { Profile, ProfileOperation, ResourceName } from "./profile.ts";
import { isRecord, ourNode, ourPage, refuseHistory, refuseLoss, toOurs, toTheirs } from "./reshape.ts";
import { rewordEvents } from "./reword-events.ts";

type Body = NonNullable<HttpRequest["body"]>;
type Parameters = Readonly<Record<string, string>>;

interface Asked {
  readonly operation: OperationName;
  readonly parameters: Parameters;
  readonly request: HttpRequest;
}

/** The resource of the items of a list. */
const PAGES: Readonly<Partial<Record<OperationName, ResourceName>>> = {
  listWorkspaces: "workspace",
  listNodes: "node",
  listVersions: "version",
  readJournal: "journalEntry",
};

const BODIES: Readonly<Partial<Record<OperationName, ResourceName>>> = {
  writeReference: "contentReference",
  createNode: "newNode",
  patchNode: "nodePatch",
  exchangeNodes: "exchange",
  restoreNode: "restoration",
  appendJournal: "newJournalEntry",
};

/** Values for fields that items of another gateway's list may lack. */
const DEFAULTS: Readonly<Partial<Record<ResourceName, Readonly<Record<string, unknown>>>>> = {
  journalEntry: { revision: 0, parentId: null, name: "" },
  version: { branch: "main", contentHash: null, mimeType: "application/octet-stream" },
};

/** The Retry-After for a new node whose id is not found yet. */
const NOT_FOUND_YET_MS = 4_000;
const PAGE = 200;
const PAGES_MAX = 10_000;

/** `now` replaces positions where the gateway has none. */
export function adaptTransport(transport: Transport, profile: Profile, now: () => WallTime): Transport {
  const { features } = profile;

  const operationOf = (name: OperationName): ProfileOperation => {
    const known = profile.operations[name];
    if (known !== null) return known;
    throw new RemoteError("invalid", `the gateway does not have it (profile ${profile.name})`);
  };

  /** One call of the other gateway. */
  async function exchange(asked: Asked): Promise<HttpAnswer> {
    const { operation, request } = asked;
    const { method, path, query } = operationOf(operation);
    const all: Parameters = { ...request.query, ...asked.parameters };
    const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name));
    if (inPath.has("rootPath")) inPath.add("parentId");
    const theirQuery: Record<string, string> = {};
    for (const [name, value] of Object.entries(request.query)) {
      const theirs = name in query ? query[name] : name;
      if (inPath.has(name) || (name === "idempotencyKey" && !takesKey(operation))) continue;
      if (theirs == null) refuseLoss(profile, name);
      else theirQuery[theirs] = value;
    }
    const rootPath = inPath.has("rootPath") ? await pathFromRoot(asked) : "";
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = name === "rootPath" ? rootPath : (all[name] ?? "");
      return name === "path" || name === "rootPath"
        ? value.split("/").map(encodeURIComponent).join("/")
        : encodeURIComponent(value);
    });
    const { body, ...rest } = request;
    return transport.send({
      ...rest,
      method,
      path: filled,
      query: theirQuery,
      headers: theirHeaders(request.headers),
      ...(body === undefined ? {} : { body: theirBody(operation, body) }),
    });
  }

  const takesKey = (operation: OperationName): boolean =>
    features.isFull || operation === "upload" || operation === "writeContent";

  function theirHeaders(headers: HttpRequest["headers"]): Record<string, string> {
    const result: Record<string, string> = {};
    for (const [name, value] of Object.entries(headers)) result[profile.headers[name] ?? name] = value;
    return result;
  }

  function theirBody(operation: OperationName, body: Body): Body {
    const strip = (value: unknown): unknown => {
      if (!isRecord(value) || takesKey(operation)) return value;
      const { idempotencyKey: _, ...rest } = value;
      return rest;
    };
    if (body.kind === "upload") {
      return { ...body, metadata: toTheirs(profile, "uploadMetadata", strip(body.metadata)) };
    }
    const resource = BODIES[operation];
    const value = strip(body.value);
    if (isRecord(value) && value.copyOf !== undefined && !features.isFull) refuseLoss(profile, "copyOf");
    return { kind: "json", value: resource === undefined ? value : toTheirs(profile, resource, value) };
  }

  /** An additional call that is needed to answer `asked`. It has the token of `asked`. */
  function ask(asked: Asked, operation: OperationName, parameters: Parameters, query: Parameters = {}): Asked {
    const { authorization } = asked.request.headers;
    const headers: Record<string, string> = { accept: "application/json", "user-agent": "wsfs" };
    if (authorization !== undefined) headers.authorization = authorization;
    const { signal } = asked.request;
    const request: HttpRequest = { method: "", path: "", query, headers, ...(signal === undefined ? {} : { signal }) };
    return { operation, parameters, request };
  }

  /** Undefined: 404. Any other refusal becomes the answer of the whole call. */
  async function askNode(asked: Asked, nodeId: string): Promise<Record<string, unknown> | undefined> {
    const question = ask(asked, "getNode", { nodeId });
    const answer = await exchange(question);
    if (answer.status === 404) {
      await discard(answer);
      return undefined;
    }
    if (answer.status !== 200) throw new Refusal(await refusal(question, answer));
    return ourNode(profile, await jsonOf(answer, "getNode"), now());
  }

  async function pathFromRoot(asked: Asked): Promise<string> {
    const own = asked.parameters.path ?? "";
    const { parentId } = asked.request.query;
    if (parentId === undefined) return own;
    const parent = await askNode(asked, parentId);
    if (parent === undefined) throw new Refusal(problem(404, { detail: `there is no folder ${parentId}` }));
    const path = String(parent.path).replace(/^\/+|\/+$/g, "");
    return path === "" ? own : `${path}/${own}`;
  }

  /**
   * The node of this name in the folder, as far as the gateway shows it. `asOf`: the position up to which the answer is
   * complete.
   */
  async function findChild(asked: Asked, parentId: string, name: string): Promise<{ node: unknown; asOf: number }> {
    if (features.isFull) {
      const page = await listPage(ask(asked, "listNodes", {}, { parentId, name }));
      return { node: itemsOf(page)[0], asOf: Number(page.asOf) };
    }
    let asOf = Number.POSITIVE_INFINITY;
    let first: unknown;
    for (let pageNo = 1; pageNo <= PAGES_MAX; pageNo += 1) {
      const query = { parentId, pageNo: String(pageNo), pageSize: String(PAGE) };
      const page = await listPage(ask(asked, "listNodes", {}, query));
      const items = itemsOf(page);
      checkMoved(first, items);
      first = items[0]?.id;
      asOf = Math.min(asOf, Number(page.asOf));
      const node = items.find((item) => item.name === name);
      if (node !== undefined || isLast(page, pageNo)) return { node, asOf };
    }
    return { node: undefined, asOf };
  }

  async function listPage(asked: Asked): Promise<Record<string, unknown>> {
    const begun = now();
    const answer = await exchange(asked);
    if (answer.status !== 200) throw new Refusal(await refusal(asked, answer));
    return pageOf(asked, PAGES[asked.operation] ?? "node", await jsonOf(answer, asked.operation), begun);
  }

  function pageOf(asked: Asked, of: ResourceName, value: unknown, begun: WallTime): Record<string, unknown> {
    const { parentId } = asked.request.query;
    const known = parentId === undefined ? {} : { parentId };
    const item = (json: unknown) =>
      of === "node" ? ourNode(profile, json, begun, known) : { ...DEFAULTS[of], ...toOurs(profile, of, json) };
    const { pageNo = "1" } = asked.request.query;
    const comesWhole = operationOf(asked.operation).query.pageNo === null;
    return ourPage(profile, value, begun, comesWhole ? undefined : Number(pageNo), item);
  }

  /** Throws "malformed" when a gateway shows the same page under every number: a walk would never end. */
  function checkMoved(first: unknown, items: readonly Record<string, unknown>[]): void {
    if (first === undefined || items[0]?.id !== first) return;
    const what = "two pages are the same: for lists that come whole, a profile has";
    throw new RemoteError("malformed", `${what} "query": {"pageNo": null} (profile ${profile.name})`);
  }

  /**
   * A list by `after`, from numbered pages. `after` then contains the page's number and the first id of the page
   * before.
   */
  async function listByNumber(asked: Asked): Promise<HttpAnswer> {
    const { after = "", ...query } = asked.request.query;
    const [, number = "1", before] = /^(\d+) (.*)$/.exec(after) ?? [];
    const pageNo = Number(number);
    const request = { ...asked.request, query: { ...query, pageNo: number } };
    const page = await listPage({ ...asked, request });
    const items = itemsOf(page);
    checkMoved(before, items);
    return json(200, { ...page, next: isLast(page, pageNo) ? null : `${pageNo + 1} ${String(items[0]?.id)}` });
  }

  async function listOneName(asked: Asked): Promise<HttpAnswer> {
    const { parentId = "", name = "" } = asked.request.query;
    const { node, asOf } = await findChild(asked, parentId, name);
    const items = node === undefined ? [] : [node];
    return json(200, { items, totalCount: items.length, pageNo: 1, pageSize: 1, asOf });
  }

  /**
   * Checks a condition just before the request, because a plain gateway has no conditions. A change in between is not
   * noticed. Undefined: the condition holds.
   */
  async function brokenCondition(asked: Asked): Promise<HttpAnswer | undefined> {
    const { operation, request, parameters } = asked;
    const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = request.headers;
    if (ifNoneMatch === "*" && request.query.parentId !== undefined && operation === "upload") {
      const { node } = await findChild(asked, request.query.parentId, parameters.path ?? "");
      return node === undefined ? undefined : problem(412, { detail: "the name is taken", node });
    }
    // A plain gateway counts no changes, so a condition on a revision means nothing.
    if (ifMatch === undefined || parameters.nodeId === undefined || !isVersion(operation)) return undefined;
    const node = await askNode(asked, parameters.nodeId);
    if (node === undefined) return problem(404, { detail: "the node is not there" });
    return ifMatch === `"${String(node.head)}"` ? undefined : problem(412, { detail: "the node was changed", node });
  }

  function withoutConditions(asked: Asked): Asked {
    const { "if-match": _, "if-none-match": __, ...headers } = asked.request.headers;
    return { ...asked, request: { ...asked.request, headers } };
  }

  async function change(given: Asked): Promise<HttpAnswer> {
    const broken = features.isFull ? undefined : await brokenCondition(given);
    if (broken !== undefined) return broken;
    const asked = await withAlways(features.isFull ? given : withoutConditions(given));
    const answer = await exchange(asked);
    // Where answers do not contain the node, only the status shows that the change was made. A redirection does not.
    if (answer.status < 200 || answer.status >= 300) return refusal(asked, answer);
    if (operationOf(asked.operation).answer === "full") {
      const value = await jsonOf(answer, asked.operation);
      const node = ourNode(profile, value, now());
      return json(answer.status, asked.operation === "appendJournal" ? toOurs(profile, "journalEntry", value) : node);
    }
    await discard(answer);
    const { nodeId = "" } = asked.parameters;
    if (asked.operation !== "deleteNode") {
      const node = await askNode(asked, nodeId);
      return node === undefined ? problem(404, { detail: "the node is not there" }) : json(200, withPosition(node));
    }
    // The deleted node cannot be read any more, so the answer has only its id.
    const gone = { id: nodeId, kind: "file", name: "", path: "" };
    return json(200, withPosition({ ...ourNode(profile, {}, now()), ...gone }));
  }

  /**
   * Adds the fields that the gateway always requires, with their present values. If another mount moves the node
   * between this look and the change, the change undoes that move.
   */
  async function withAlways(asked: Asked): Promise<Asked> {
    const { always } = operationOf(asked.operation);
    const { body } = asked.request;
    if (body?.kind !== "json" || !isRecord(body.value)) return asked;
    const { value } = body;
    if (always.every((field) => value[field] !== undefined)) return asked;
    const node = await askNode(asked, asked.parameters.nodeId ?? "");
    if (node === undefined) throw new Refusal(problem(404, { detail: "the node is not there" }));
    const known = Object.fromEntries(always.map((field) => [field, node[field]]));
    return { ...asked, request: { ...asked.request, body: { kind: "json", value: { ...known, ...value } } } };
  }

  /** Adds the position where the answer does not contain the node. 0: it is not told. */
  function withPosition(node: Record<string, unknown>): Record<string, unknown> {
    return { position: features.isFull ? 0 : now(), ...node };
  }

  /** The refusal. A 409 or 412 gets the node that is in the way, also when the gateway does not send it. */
  async function refusal(asked: Asked, answer: HttpAnswer): Promise<HttpAnswer> {
    const value = await looseJson(answer, asked.operation);
    const { node: json, ...words } = toOurs(profile, "problem", value);
    let node: unknown = isRecord(json) ? ourNode(profile, json, now()) : undefined;
    const place = placeOf(asked);
    if (node === undefined && (answer.status === 409 || answer.status === 412)) {
      if (place !== undefined) node = (await findChild(asked, place.parentId, place.name)).node;
      else if (isVersion(asked.operation)) node = await askNode(asked, asked.parameters.nodeId ?? "");
    }
    return problem(answer.status, { ...words, ...(node === undefined ? {} : { node }) }, answer.headers);
  }

  /** The place that a request wants for its node. */
  function placeOf({ request, parameters, operation }: Asked): { parentId: string; name: string } | undefined {
    if (operation === "upload") {
      const { parentId } = request.query;
      return parentId === undefined ? undefined : { parentId, name: parameters.path ?? "" };
    }
    const value = request.body?.kind === "json" ? request.body.value : undefined;
    if (!isRecord(value) || typeof value.parentId !== "string" || typeof value.name !== "string") return undefined;
    return { parentId: value.parentId, name: value.name };
  }

  async function content(asked: Asked): Promise<HttpAnswer> {
    const { version, ...query } = asked.request.query;
    const { range: _, ...headers } = asked.request.headers;
    const request = {
      ...asked.request,
      ...(features.isFull ? {} : { query }),
      ...(features.ranges ? {} : { headers }),
    };
    const answer = await exchange({ ...asked, request });
    if (answer.status >= 400 && answer.status !== 416) return refusal(asked, answer);
    if (features.isFull) return answer;
    try {
      return await ofVersion(asked, answer, version);
    } catch (error) {
      await discard(answer);
      throw error;
    }
  }

  /**
   * The bytes of the head, if the head is the requested version after the bytes began to come. It was the head when
   * they began too, because an old head never comes back.
   */
  async function ofVersion(asked: Asked, answer: HttpAnswer, version: string | undefined): Promise<HttpAnswer> {
    const node = await askNode(asked, asked.parameters.nodeId ?? "");
    const head = node?.head;
    if (typeof head === "string" && (version === undefined || version === head)) {
      return { ...answer, headers: { ...answer.headers, etag: `"${head}"` } };
    }
    if (node === undefined) {
      // The node's bytes came, so the node exists. It is so new that its id is not found for a moment. Only this node
      // must wait: the gateway works.
      const details = { status: 503, retryAfterMs: NOT_FOUND_YET_MS, isOfNode: true } as const;
      throw new RemoteError("server", "the node's head is not known yet", details);
    }
    await discard(answer);
    return problem(404, { detail: "the version is no longer the node's head, and the gateway shows no other" });
  }

  async function stream(asked: Asked): Promise<HttpAnswer> {
    const { after } = asked.request.query;
    const isInHeader = after !== undefined && operationOf(asked.operation).query.after === null;
    const headers = isInHeader ? { ...asked.request.headers, "last-event-id": after } : asked.request.headers;
    const answer = await exchange({ ...asked, request: { ...asked.request, headers } });
    if (answer.status >= 400) return refusal(asked, answer);
    const body = rewordEvents(answer.body, (data, id) => {
      const json: unknown = parseEvent(data);
      if (!isRecord(json)) return data;
      const position = id === undefined || !/^\d+$/.test(id) ? {} : { position: Number(id) };
      return JSON.stringify({ ...DEFAULTS.journalEntry, ...position, ...toOurs(profile, "journalEntry", json) });
    });
    return { ...answer, body };
  }

  async function lines(asked: Asked): Promise<HttpAnswer> {
    const begun = now();
    const answer = await exchange(asked);
    if (answer.status >= 400) return refusal(asked, answer);
    const body = rewordLines(answer.body, (line) => {
      const json: unknown = parseEvent(line);
      const isNode = isRecord(json) && json.folder === undefined && json.complete === undefined;
      return isNode ? JSON.stringify(ourNode(profile, json, begun)) : line;
    });
    return { ...answer, body };
  }

  async function read(asked: Asked): Promise<HttpAnswer> {
    const begun = now();
    const answer = await exchange(asked);
    if (answer.status >= 400) return refusal(asked, answer);
    const value = await jsonOf(answer, asked.operation);
    const of = PAGES[asked.operation];
    const ours = of === undefined ? ourNode(profile, value, begun) : pageOf(asked, of, value, begun);
    return json(answer.status, ours, answer.headers);
  }

  async function carryOut(asked: Asked): Promise<HttpAnswer> {
    refuseHistory(profile, asked);
    switch (asked.operation) {
      case "getContent":
        return content(asked);
      case "streamJournal":
        return stream(asked);
      case "streamNodes":
        return lines(asked);
      case "listNodes":
      case "listVersions":
      case "listWorkspaces":
        if (features.isFull) return read(asked);
        if (asked.request.query.name !== undefined) return listOneName(asked);
        return asked.request.query.after === undefined ? read(asked) : listByNumber(asked);
      case "getNode":
      case "getNodeByPath":
      case "readJournal":
        return read(asked);
      case "getAccount":
      case "listGrants":
      case "setGrant":
      case "removeGrant":
      case "restoreTree":
        return exchange(asked);
      default:
        return change(asked);
    }
  }

  return {
    async send(request) {
      try {
        return await carryOut(routeOf(request));
      } catch (error) {
        if (error instanceof Refusal) return error.answer;
        throw error;
      }
    },
    close: () => transport.close(),
  };
}

/** True if the operation makes a version of a node. Its condition is then on the head. */
const isVersion = (operation: OperationName) => operation === "writeContent" || operation === "writeReference";

/** An additional call was refused. Its answer becomes the answer of the whole call. */
class Refusal extends Error {
  readonly answer: HttpAnswer;
  constructor(answer: HttpAnswer) {
    super("refused");
    this.answer = answer;
  }
}

const TABLE = (Object.keys(OPERATIONS) as OperationName[]).map((operation) => ({
  operation,
  method: OPERATIONS[operation].method,
  segments: OPERATIONS[operation].path.split("/"),
}));

/** The operation that a request of our client stands for. */
function routeOf(request: HttpRequest): Asked {
  const given = request.path.split("/");
  for (const { operation, method, segments } of TABLE) {
    if (method !== request.method) continue;
    const rest = segments.at(-1) === "{path}" ? segments.length - 1 : undefined;
    if (rest === undefined ? given.length !== segments.length : given.length <= rest) continue;
    if (!segments.slice(0, rest).every((segment, index) => segment.startsWith("{") || segment === given[index]))
      continue;
    const parameters: Record<string, string> = {};
    segments.forEach((segment, index) => {
      if (segment === "{path}") parameters.path = given.slice(index).map(decodeURIComponent).join("/");
      else if (segment.startsWith("{")) parameters[segment.slice(1, -1)] = decodeURIComponent(given[index] ?? "");
    });
    return { operation, parameters, request };
  }
  throw new RemoteError("invalid", `no operation of the contract: ${request.method} ${request.path}`);
}

function isLast(page: Record<string, unknown>, pageNo: number): boolean {
  return itemsOf(page).length === 0 || pageNo * Number(page.pageSize) >= Number(page.totalCount);
}

/** Undefined: not JSON. The schema then refuses the data. */
function parseEvent(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function itemsOf(page: Record<string, unknown>): Record<string, unknown>[] {
  return Array.isArray(page.items) ? page.items.filter(isRecord) : [];
}

function jsonOf(answer: HttpAnswer, operation: string): Promise<unknown> {
  return readJson(answer, z.unknown(), operation);
}

/** The JSON of a refusal. Undefined: it has none. */
async function looseJson(answer: HttpAnswer, operation: string): Promise<unknown> {
  return jsonOf(answer, operation).catch((error: unknown) => {
    if (error instanceof RemoteError && error.code === "malformed") return undefined;
    throw error;
  });
}

function problem(status: number, words: Record<string, unknown>, headers: HttpAnswer["headers"] = {}): HttpAnswer {
  const value = { status, title: "refused", ...words };
  return json(status, value, headers);
}

function json(status: number, value: unknown, headers: HttpAnswer["headers"] = {}): HttpAnswer {
  const { "content-length": _, "content-encoding": __, ...rest } = headers;
  const bytes = Buffer.from(JSON.stringify(value));
  return {
    status,
    headers: { ...rest, "content-type": "application/json" },
    body: (async function* () {
      yield bytes;
    })(),
  };
}

/**
 * The plainest gateway: a layer around the core that allows only what gateway-spec.md shows (workspaces, upload by
 * path, content by id, pages) and the plainest list, node, folder, update, move and delete, under other paths and names
 * than ours. Conditions, ranges, revisions, versions, attributes, positions and the journal pass in neither direction.
 * This gateway shows which features clients can do without.
 */
import { z } from "zod";
import { type Node, node, receipt } from "../contract/resources.ts";
import { CONTROL_PATH } from "./control.ts";
import type { Gateway } from "./core.ts";
import { type GatewayAnswer, type GatewayRequest, jsonAnswer, jsonBody, type Part } from "./exchange.ts";
import { parseJson } from "./json.ts";
import { check, invalid, notFound, ProblemError, tooLarge } from "./problems.ts";
import { decodeId } from "./routes.ts";

interface Found {
  readonly request: GatewayRequest;
  /** One segment or several, still encoded. */
  readonly id: string;
}

interface BareRoute {
  readonly method: string;
  /** `{id}` is one segment, `{path}` the rest. */
  readonly path: string;
  /** Names that the query may have. */
  readonly query: readonly string[];
  /** The request to the core. */
  readonly ask: (found: Found) => GatewayRequest | Promise<GatewayRequest>;
  readonly answer: (value: unknown) => unknown;
}

const PAGING = ["pageNo", "pageSize", "orderBy"];
/** Fields by which a list can be ordered, with our names for them. */
const ORDERS: Readonly<Record<string, string>> = { id: "id", title: "name", bytes: "size", changed: "modifiedAt" };

const place = z.strictObject({ in: z.string().min(1), title: z.string() });
const uploadMetadata = z.strictObject({
  branch: z.string().optional(),
  idempotencyKey: z.string().nullish(),
  contentHash: z.string().nullish(),
});
const workspacePage = z.object({
  items: z.array(z.object({ id: z.string(), name: z.string(), rootId: z.string() })),
  totalCount: z.number(),
  pageNo: z.number(),
  pageSize: z.number(),
});
const nodePage = workspacePage.extend({ items: z.array(node) });

const ROUTES: readonly BareRoute[] = [
  {
    method: "GET",
    path: "/v1/workspaces",
    query: PAGING,
    ask: ({ request }) => plain(request, "GET", "/v1/workspaces", request.query),
    answer(value) {
      const { items, ...paging } = workspacePage.parse(value);
      return { data: items.map(({ id, name, rootId }) => ({ id, name, top: rootId })), paging: pagingOf(paging) };
    },
  },
  {
    method: "GET",
    path: "/v1/folders/{id}/entries",
    query: PAGING,
    ask: ({ request, id }) =>
      plain(request, "GET", "/v1/nodes", { ...ordered(request.query), parentId: decodeId(id, "id") }),
    answer(value) {
      const { items, ...paging } = nodePage.parse(value);
      return { data: items.map(entryOf), paging: pagingOf(paging) };
    },
  },
  {
    method: "GET",
    path: "/v1/entries/{id}",
    query: [],
    ask: ({ request, id }) => plain(request, "GET", `/v1/nodes/${id}`),
    answer: entry,
  },
  {
    method: "GET",
    path: "/v1/nodes/{id}/content",
    query: [],
    ask: ({ request, id }) => plain(request, "GET", `/v1/nodes/${id}/content`),
    answer: (value) => value,
  },
  {
    method: "POST",
    path: "/v1/files/{path}",
    query: [],
    ask: ({ request, id }) => withUpload(request, "POST", `/v1/files/${id}`),
    answer: entry,
  },
  {
    method: "POST",
    path: "/v1/entries/{id}/content",
    query: [],
    ask: ({ request, id }) => withUpload(request, "PUT", `/v1/nodes/${id}/content`),
    answer: entry,
  },
  {
    method: "POST",
    path: "/v1/folders",
    query: [],
    async ask({ request }) {
      const { in: parentId, title: name } = await bodyOf(request);
      return { ...plain(request, "POST", "/v1/nodes"), body: jsonBody({ parentId, name, kind: "folder" }) };
    },
    answer: entry,
  },
  {
    method: "POST",
    path: "/v1/entries/{id}/move",
    query: [],
    async ask({ request, id }) {
      const { in: parentId, title: name } = await bodyOf(request);
      return { ...plain(request, "PATCH", `/v1/nodes/${id}`), body: jsonBody({ parentId, name }) };
    },
    answer: entry,
  },
  {
    method: "DELETE",
    path: "/v1/entries/{id}",
    query: [],
    ask: ({ request, id }) => plain(request, "DELETE", `/v1/nodes/${id}`),
    answer: () => undefined,
  },
  // Faults are not part of this language.
  { method: "GET", path: CONTROL_PATH, query: [], ask: ({ request }) => request, answer: (value) => value },
  {
    method: "PATCH",
    path: CONTROL_PATH,
    query: [],
    ask: ({ request }) => refusingQuota(request),
    answer: (value) => value,
  },
];

/** The language has no word for "over quota", so quotas are refused. */
function refusingQuota(request: GatewayRequest): GatewayRequest {
  const { body } = request;
  if (body?.kind !== "json") return request;
  const read = async (limit: number) => {
    const value = await body.read(limit);
    const asked = z.looseObject({ quota: z.unknown().optional() }).safeParse(value);
    if (asked.data?.quota !== undefined) throw invalid("quota", "quota: a bare gateway has no word for it");
    return value;
  };
  return { ...request, body: { kind: "json", read } };
}

/** The given gateway, but only in the bare language. */
export function createBareGateway({ openApi: _, ...gateway }: Gateway): Gateway {
  return {
    ...gateway,
    async handle(request) {
      try {
        const { route, id } = findRoute(request);
        return await gateway.handle(await route.ask({ request, id }), (answer) => translate(route, answer));
      } catch (error) {
        if (error instanceof ProblemError) return refusal(error.status, error.document, error.details.headers);
        throw error;
      }
    },
  };
}

function findRoute(request: GatewayRequest): { route: BareRoute; id: string } {
  const given = request.path.split("/");
  for (const route of ROUTES) {
    const segments = route.path.split("/");
    const rest = segments.at(-1) === "{path}";
    if (route.method !== request.method || (rest ? given.length < segments.length : given.length !== segments.length)) {
      continue;
    }
    if (!segments.every((segment, index) => segment.startsWith("{") || segment === given[index])) continue;
    const at = segments.findIndex((segment) => segment.startsWith("{"));
    const unknown = Object.keys(request.query).find((name) => !route.query.includes(name));
    if (unknown !== undefined) throw invalid(unknown, `${unknown}: no parameter of this call`);
    return { route, id: at === -1 ? "" : given.slice(at, rest ? undefined : at + 1).join("/") };
  }
  throw notFound(`There is no ${request.method} ${request.path}.`);
}

/** A request with no header but the token. */
function plain(
  { headers: { authorization } }: GatewayRequest,
  method: string,
  path: string,
  query: GatewayRequest["query"] = {},
): GatewayRequest {
  return { method, path, query, headers: { authorization } };
}

function withUpload(request: GatewayRequest, method: string, path: string): GatewayRequest {
  const { body } = request;
  const parts = body?.kind === "upload" ? { kind: "upload" as const, parts: checkedParts(body.parts) } : body;
  // New content must come with its bytes.
  const sent = parts?.kind === "json" ? { kind: "other" as const, contentType: "application/json" } : parts;
  // Content that is too large is refused before it is read.
  const { authorization, "content-length": length } = request.headers;
  return { ...plain(request, method, path), headers: { authorization, "content-length": length }, body: sent };
}

async function* checkedParts(parts: AsyncIterable<Part>): AsyncGenerator<Part> {
  for await (const part of parts) yield part.name === "metadata" ? await checkedMetadata(part) : part;
}

const METADATA_BYTES = 64 * 1024;
const JSON_BYTES = 64 * 1024;

/** Refuses fields of the metadata part that gateway-spec.md does not show. */
async function checkedMetadata(part: Part): Promise<Part> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of part.data) {
    size += chunk.length;
    if (size > METADATA_BYTES) throw tooLarge(`metadata: more than ${METADATA_BYTES} bytes`, "metadata");
    chunks.push(chunk);
  }
  check(uploadMetadata, parseJson(chunks, "metadata"), "metadata");
  return {
    ...part,
    data: (async function* () {
      yield* chunks;
    })(),
  };
}

async function bodyOf(request: GatewayRequest): Promise<z.output<typeof place>> {
  if (request.body?.kind !== "json") throw invalid("body", "body: expected a JSON object");
  return check(place, await request.body.read(JSON_BYTES), "body");
}

function ordered({ orderBy, ...query }: GatewayRequest["query"]): Record<string, string> {
  if (orderBy === undefined) return query;
  const isDescending = orderBy.startsWith("-");
  const field = ORDERS[isDescending ? orderBy.slice(1) : orderBy];
  if (field === undefined) throw invalid("orderBy", `orderBy: expected one of ${Object.keys(ORDERS).join(", ")}`);
  return { ...query, orderBy: `${isDescending ? "-" : ""}${field}` };
}

function pagingOf({ totalCount, pageNo, pageSize }: { totalCount: number; pageNo: number; pageSize: number }) {
  return { total: totalCount, number: pageNo, size: pageSize };
}

function entry(value: unknown): unknown {
  const { data } = node.safeParse(value);
  // A caller that may not read the node learns only that the request is done.
  return data === undefined ? { id: receipt.parse(value).id } : entryOf(data);
}

function entryOf(shown: Node) {
  const isFile = shown.kind === "file";
  return {
    id: shown.id,
    type: isFile ? "FILE" : "FOLDER",
    path: shown.path,
    title: shown.name,
    in: shown.parentId,
    changed: Date.parse(shown.modifiedAt),
    ...(isFile ? { media: shown.mimeType, bytes: shown.size, head: { id: shown.head } } : {}),
  };
}

const problem = z.object({
  detail: z.string().optional(),
  title: z.string().optional(),
  field: z.string().optional(),
  scope: z.string().optional(),
});

function translate(route: BareRoute, { status, headers, body }: GatewayAnswer): GatewayAnswer {
  if (body?.kind === "json") {
    const value: unknown = JSON.parse(body.text);
    if (status >= 400) return refusal(status, value, headers);
    const reworded = route.answer(value);
    return reworded === undefined ? { status: 204, headers: {} } : jsonAnswer(status, reworded);
  }
  const { etag: _, "accept-ranges": __, ...kept } = headers;
  return { status, headers: kept, ...(body === undefined ? {} : { body }) };
}

/** Headers that HTTP itself needs: the way to sign in of a 401, the time of the next try of a 429 or 503. */
const REFUSAL_HEADERS = ["www-authenticate", "retry-after"];

function refusal(status: number, value: unknown, headers: GatewayAnswer["headers"] = {}): GatewayAnswer {
  const { detail, title, field, scope } = problem.parse(value);
  const error = { message: detail ?? title ?? "", field, scope };
  return jsonAnswer(
    status,
    { error },
    {
      ...Object.fromEntries(Object.entries(headers).filter(([name]) => REFUSAL_HEADERS.includes(name))),
      "content-type": "application/json",
    },
  );
}

/**
 * Translates records between the contract and another gateway, field by field, by a profile. Fields that the gateway
 * does not have get neutral values. Pure; it knows no request.
 */
import { SETTLE_MS } from "../contract/features.ts";
import type { HttpRequest } from "../contract/http.ts";
import type { OperationName } from "../contract/operations.ts";
import type { WallTime } from "../lib/clocks.ts";
import { RemoteError } from "./errors.ts";
import type { FieldPlace, Profile, ResourceName } from "./profile.ts";

type Json = Readonly<Record<string, unknown>>;

const TIMES = new Set(["createdAt", "modifiedAt", "deletedAt", "time"]);
const EPOCH = "1970-01-01T00:00:00.000Z";

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fields without which a request would mean something else. */
const MEANINGS = new Set([
  ...["at", "branch", "copyOf", "deleted", "parentId", "path", "recursive", "version", "with"],
  ...["before", "by", "mount", "nodeId", "since"],
]);

/** Throws "invalid" when the gateway has no place for a field without which the request would mean something else. */
export function refuseLoss(profile: Profile, field: string): void {
  if (MEANINGS.has(field)) throw lacks(profile, field);
}

/** Fields that only a full gateway has. */
const HISTORY: Readonly<Partial<Record<OperationName, readonly string[]>>> = {
  listNodes: ["deleted"],
  readJournal: ["nodeId", "since", "by", "mount", "before"],
  restoreNode: ["parentId", "name"],
  restoreTree: ["at"],
};

/** Throws "invalid" for these fields: a plain gateway does not know them and would answer something else. */
export function refuseHistory(
  profile: Profile,
  { operation, request }: { readonly operation: OperationName; readonly request: HttpRequest },
): void {
  if (profile.features.isFull) return;
  const body = request.body?.kind === "json" && isRecord(request.body.value) ? request.body.value : {};
  const said = { ...body, ...request.query };
  const field = HISTORY[operation]?.find((name) => said[name] !== undefined);
  if (field !== undefined) throw lacks(profile, field);
}

function lacks(profile: Profile, field: string): RemoteError {
  const message = `the gateway does not have "${field}" (profile ${profile.name})`;
  return new RemoteError("invalid", message, { field, isUnsent: true });
}

/**
 * Translates to the gateway's fields. A field without a place there is left out, or refused if the request would mean
 * something else without it.
 */
export function toTheirs(profile: Profile, resource: ResourceName, value: unknown): unknown {
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  for (const [field, content] of Object.entries(value)) {
    const place = profile.fields[resource][field];
    if (content === undefined || isLacking(profile, resource, field)) continue;
    if (place == null) {
      refuseLoss(profile, field);
      continue;
    }
    put(result, place.at, place.values?.[String(content)] ?? content);
  }
  return result;
}

/** The record of the contract, with the fields that the other gateway has. */
export function toOurs(profile: Profile, resource: ResourceName, value: unknown): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [field, place] of Object.entries(profile.fields[resource])) {
    if (place === null || isLacking(profile, resource, field)) continue;
    if (field === "contentHash" && !profile.features.hashes) continue;
    const found = get(value, place.at);
    if (found !== undefined) result[field] = readField(place, field, found);
  }
  return result;
}

/** Fields of nodes and pages that only a full gateway has. */
const OF_FULL = new Set(["revision", "lastKey", "position", "asOf"]);

/** True if the field belongs to a feature that the gateway lacks. */
function isLacking({ features }: Profile, resource: ResourceName, field: string): boolean {
  if (field === "attributes") return !features.attributes;
  return !features.isFull && resource !== "journalEntry" && OF_FULL.has(field);
}

/** A node with all fields of the contract. `known`: the fields in the request. */
export function ourNode(profile: Profile, value: unknown, now: WallTime, known: Json = {}): Record<string, unknown> {
  const ours = toOurs(profile, "node", value);
  const path = typeof ours.path === "string" ? ours.path : undefined;
  const name = ours.name ?? path?.slice(path.lastIndexOf("/") + 1);
  const modifiedAt = ours.modifiedAt ?? ours.createdAt ?? EPOCH;
  return {
    path: path ?? name,
    parentId: null,
    mimeType: null,
    size: 0,
    head: null,
    contentHash: null,
    lastKey: null,
    revision: 0,
    createdAt: modifiedAt,
    attributes: {},
    ...(profile.features.isFull ? {} : { position: now }),
    ...known,
    ...ours,
    name,
    modifiedAt,
  };
}

/**
 * A list with all fields of the contract. Without positions, it counts as being as old as a list can be. Without a
 * total, it counts as having at least one more item until a page is short or empty. `asked`: the page's number;
 * undefined where the list comes whole.
 */
export function ourPage(
  profile: Profile,
  value: unknown,
  now: WallTime,
  asked: number | undefined,
  item: (item: unknown) => unknown,
): Record<string, unknown> {
  const ours = toOurs(profile, "page", value);
  const items = Array.isArray(ours.items) ? ours.items.map(item) : ours.items;
  const length = Array.isArray(items) ? items.length : 0;
  const pageNo = asked ?? 1;
  const pageSize = typeof ours.pageSize === "number" ? ours.pageSize : Math.max(1, length);
  const mayGoOn = asked !== undefined && length >= pageSize && ours.next == null;
  return {
    totalCount: (pageNo - 1) * pageSize + length + (mayGoOn ? 1 : 0),
    pageNo,
    pageSize,
    asOf: profile.features.isFull ? 0 : Math.max(0, now - SETTLE_MS),
    ...ours,
    items,
  };
}

function get(value: unknown, at: readonly string[]): unknown {
  let current = value;
  for (const name of at) {
    if (!isRecord(current)) return undefined;
    current = current[name];
  }
  return current;
}

function put(target: Record<string, unknown>, at: readonly string[], value: unknown): void {
  const [name, ...rest] = at;
  if (name === undefined) return;
  if (rest.length === 0) {
    target[name] = value;
    return;
  }
  const inner = target[name];
  const next: Record<string, unknown> = isRecord(inner) ? { ...inner } : {};
  put(next, rest, value);
  target[name] = next;
}

function readField(place: FieldPlace, field: string, found: unknown): unknown {
  if (place.values !== undefined) {
    const own = Object.entries(place.values).find(([, theirs]) => theirs === found);
    if (own !== undefined) return own[0];
  }
  return TIMES.has(field) ? momentOf(place, found) : found;
}

/** A moment in the contract's form. A value that is no moment stays as it is, and the schema refuses it. */
function momentOf({ format }: FieldPlace, found: unknown): unknown {
  if (found === null) return undefined;
  const milliseconds = format === "iso" ? Date.parse(String(found)) : Number(found) * (format === "seconds" ? 1000 : 1);
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? found : date.toISOString();
}

/**
 * All refusals of the gateway, as RFC 9457 problem documents. They are thrown anywhere below the core, which turns them
 * into answers. Any other thrown error is a 500, and is logged with its cause.
 */
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { withoutApiKeys } from "../contract/api-keys.ts";
import { type Node, OVER_QUOTA, THINNED } from "../contract/resources.ts";
import type { Role } from "../contract/roles.ts";

interface ProblemDetails {
  readonly field?: string;
  readonly scope?: string;
  /** The required role in a workspace. */
  readonly grant?: { readonly workspace: string; readonly role: Role };
  readonly node?: Node | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if everything the answer reports is already committed. */
  readonly isCommitted?: boolean;
  readonly excess?: Excess;
  /** The requested content was removed by a retention policy. */
  readonly isThinned?: boolean;
}

/** The excess over the quota of a workspace. */
interface Excess {
  readonly quota: number;
  readonly used: number;
  /** The bytes that would be added, at least. */
  readonly growth: number;
}

export class ProblemError extends Error {
  readonly status: number;
  readonly details: ProblemDetails;

  constructor(status: number, detail: string, details: ProblemDetails = {}) {
    super(detail);
    this.name = "ProblemError";
    this.status = status;
    this.details = details;
  }

  get document(): Record<string, unknown> {
    const { field, scope, grant, node, excess, isThinned } = this.details;
    return {
      type: isThinned === true ? THINNED : excess === undefined ? "about:blank" : OVER_QUOTA,
      status: this.status,
      title: excess === undefined ? (STATUS_CODES[this.status] ?? "Error") : "Over Quota",
      detail: withoutApiKeys(this.message),
      ...(field === undefined ? {} : { field }),
      ...(scope === undefined ? {} : { scope }),
      ...(grant === undefined ? {} : { grant }),
      ...(node === undefined ? {} : { node }),
      ...excess,
    };
  }
}

/** The problem without its node, for a caller that may not read the node. */
export function withoutNode(error: unknown): unknown {
  if (!(error instanceof ProblemError)) return error;
  const { node: _, ...details } = error.details;
  return new ProblemError(error.status, error.message, details);
}

export const invalid = (field: string, detail: string) => new ProblemError(400, detail, { field });

export const unauthorized = (detail: string) =>
  new ProblemError(401, detail, { headers: { "www-authenticate": "Bearer" } });

export const missingScope = (scope: string) => new ProblemError(403, `The token lacks the scope ${scope}.`, { scope });

/** 403: the account would need `role` in the workspace, or the token would have to be bound to it. */
export const lacksGrant = (detail: string, workspace: string, role: Role) =>
  new ProblemError(403, detail, { grant: { workspace, role } });

export const notFound = (detail: string) => new ProblemError(404, detail);

/** 410: the content existed, and was removed for good. */
export const thinned = (detail: string) => new ProblemError(410, detail, { isThinned: true });

/** 409: `node` is in the way. */
export const conflict = (detail: string, node?: Node) => new ProblemError(409, detail, { node });

/** 412: `node` does not meet the condition. */
export const changed = (detail: string, node?: Node) => new ProblemError(412, detail, { node });

export const tooLarge = (detail: string, field?: string) =>
  new ProblemError(413, detail, field === undefined ? {} : { field });

/** 429: nothing was done. There is room again once some of the waiting work is done. */
export const tooMany = (detail: string, retryAfterSeconds: number) =>
  new ProblemError(429, detail, { headers: { "retry-after": String(retryAfterSeconds) } });

/** 507: nothing was done. The same request may succeed when there is room again. */
export const diskFull = () => new ProblemError(507, "The gateway has no room left; nothing was done.");

/** Another kind of 507: the gateway has room, the workspace has not. */
export function overQuota(workspace: string, excess: Excess): ProblemError {
  const { quota, used, growth } = excess;
  const detail = `The workspace ${JSON.stringify(workspace)} may hold ${quota} bytes: it holds ${used}, and ${growth} more are over its quota by ${used + growth - quota}; nothing was done.`;
  return new ProblemError(507, detail, { excess });
}

/** 503: most likely a disk without room. The changes that were read may never have existed. */
export const tryAgain = () =>
  new ProblemError(503, "Changes were rolled back repeatedly while this was read; try again.", {
    headers: { "retry-after": "1" },
  });

/** 500: the caller does not learn the cause. */
export const failed = () => new ProblemError(500, "The gateway failed; its log says why.");

/** Errors of the system or the store for a full disk or a quota. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOSPC" || code === "EDQUOT" || code === "SQLITE_FULL";
}

/**
 * Returns the checked value. Throws a 400 that names the field when the value does not match the schema. `whole` names
 * the value itself.
 */
export function check<T extends z.ZodType>(schema: T, value: unknown, whole: string): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  if (issue === undefined) throw invalid(whole, "is not valid");
  const path = issue.path.map(String);
  if (issue.code !== "unrecognized_keys") {
    const field = path.length === 0 ? whole : path.join(".");
    throw invalid(field, `${field}: ${issue.message}`);
  }
  const field = [...path, issue.keys[0]].join(".");
  const known = fieldsAt(schema, path);
  const expected = known.length === 0 ? "" : `, expected ${known.length === 1 ? "" : "one of "}${known.join(", ")}`;
  throw invalid(field, `${field}: unknown field${expected}`);
}

/** Returns the fields an object may have at a place of the schema; none when the schema has no object there. */
function fieldsAt(schema: unknown, path: readonly string[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return fieldsAt(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodPipe) return fieldsAt(schema.in, path);
  const [first, ...rest] = path;
  if (schema instanceof z.ZodRecord) return first === undefined ? [] : fieldsAt(schema.valueType, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return first === undefined ? Object.keys(schema.shape) : fieldsAt(schema.shape[first], rest);
}

/** Reads an answer: its JSON, checked against a schema, or its problem document as a RemoteError. */
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import type { HttpAnswer } from "../contract/http.ts";
import type { OperationName } from "../contract/operations.ts";
import { journalReceipt, node, OVER_QUOTA, problem, receipt } from "../contract/resources.ts";
import type { WallTime } from "../lib/clocks.ts";
import { DAY_MS } from "../lib/time.ts";
import { RemoteError, type RemoteErrorCode, type RemoteErrorDetails } from "./errors.ts";
import { JSON_BYTES_MAX, joined, readWhole } from "./whole-body.ts";

const PROBLEM_BYTES_MAX = 1024 * 1024;
const PROBLEM_TEXT_MAX = 500;
const RETRY_AFTER_MAX_MS = DAY_MS;

const CODES: Readonly<Record<number, RemoteErrorCode>> = {
  400: "invalid",
  401: "unauthorized",
  403: "forbidden",
  404: "notFound",
  409: "conflict",
  410: "notFound",
  412: "changed",
  413: "tooLarge",
  429: "throttled",
};

/** Problem documents of other gateways may lack fields or have wrong ones. Only the fields that fit are used. */
const text = z.string().optional().catch(undefined);
const tolerantProblem = z
  .object({ title: text, detail: text, field: text, scope: text })
  .extend({ grant: problem.shape.grant.catch(undefined), node: node.optional().catch(undefined) })
  .catch({});

/** A 507 without these fields means that the gateway itself has no room for now. */
const size = z.number().int().min(0);
const quotaProblem = z.object({ type: z.literal(OVER_QUOTA), quota: size, used: size, growth: size });

/**
 * The answer to a write when the token may not read the node. A token that may read it gets the full answer to the
 * request.
 */
const bareReceipt = z.union([receipt.strict(), journalReceipt.strict()]);

/** The head of an answer, which comes before its body. */
export type Head = Pick<HttpAnswer, "status" | "headers">;

/**
 * The answer's JSON, checked. Rejects with "malformed" when it does not fit, and with the transport's error when it
 * breaks off.
 */
export async function readJson<T extends z.ZodType>(
  answer: HttpAnswer,
  schema: T,
  operation: string,
): Promise<z.infer<T>> {
  return checkedJson(await readAll(answer, JSON_BYTES_MAX, operation), schema, operation, answer);
}

/** The JSON of an answer, or of a part that is JSON by itself, checked. Throws "malformed". */
export function checkedJson<T extends z.ZodType>(
  json: Uint8Array | string,
  schema: T,
  operation: string,
  answer: Head,
): z.infer<T> {
  const value = parseJson(json);
  if (value === undefined) throw malformed(operation, answer, "the answer is not JSON");
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  if (bareReceipt.safeParse(value).success) {
    throw malformed(
      operation,
      answer,
      "the write is done, but the token lacks the scope node.file.read to see the result",
    );
  }
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  throw malformed(operation, answer, `the answer does not fit the contract: ${where}${issue?.message ?? ""}`);
}

/**
 * The error for an answer that is not a success. Rejects when the connection breaks while it is read. `conceal` removes
 * secrets from a whole text.
 */
export async function readProblem(
  answer: HttpAnswer,
  operation: OperationName,
  now: () => WallTime,
  conceal: (text: string) => string,
): Promise<RemoteError> {
  const { status } = answer;
  const bytes = await readAll(answer, PROBLEM_BYTES_MAX, operation);
  const json = parseJson(bytes);
  const { grant, node, ...words } = tolerantProblem.parse(json);
  const texts = [words.title, words.detail, words.field, words.scope];
  const [title, detail, field, scope] = texts.map((one) => (one === undefined ? undefined : conceal(one)));
  const { data: excess } = status === 507 ? quotaProblem.safeParse(json) : {};
  const retryAfterMs = parseRetryAfter(answer.headers, now);
  const details: RemoteErrorDetails = {
    ...detailsOf(answer),
    operation,
    ...(field === undefined ? undefined : { field }),
    ...(scope === undefined ? undefined : { scope }),
    ...(grant === undefined ? undefined : { grant: { ...grant, workspace: conceal(grant.workspace) } }),
    ...(node === undefined ? undefined : { node }),
    ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
    ...(excess === undefined
      ? undefined
      : { excess: { quota: excess.quota, used: excess.used, growth: excess.growth } }),
  };
  const reason = detail ?? title ?? "";
  const said = [`${status} ${STATUS_CODES[status] ?? ""}`.trim(), reason];
  if (field !== undefined && !reason.includes(field)) said.push(`field ${field}`);
  if (scope !== undefined && !reason.includes(scope)) said.push(`scope ${scope}`);
  const message = said
    .filter((part) => part !== "")
    .map((part) => oneLine(part))
    .join(": ");
  return new RemoteError(excess === undefined ? codeOf(status) : "overQuota", `${operation}: ${message}`, details);
}

/** Gives an unread body up. */
export async function discard(answer: HttpAnswer): Promise<void> {
  await answer.body[Symbol.asyncIterator]().return?.();
}

export function malformed(operation: string, answer: Head, message: string): RemoteError {
  return new RemoteError("malformed", `${operation}: ${message}`, detailsOf(answer));
}

/**
 * The error of a transport, with `doing` before its message; "offline" unless it is a RemoteError. `answer`: the answer
 * that broke off.
 */
export function transportFailure(error: unknown, doing: string, answer?: Head): RemoteError {
  const { requestId } = answer === undefined ? {} : detailsOf(answer);
  const ofAnswer = requestId === undefined ? undefined : { requestId };
  if (error instanceof RemoteError) {
    return new RemoteError(error.code, `${doing}: ${error.message}`, { ...error.details, ...ofAnswer });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new RemoteError("offline", `${doing}: ${reason}`, { cause: error, ...ofAnswer });
}

/** The details of an answer for an error. */
function detailsOf({ status, headers }: Head): Pick<RemoteErrorDetails, "status" | "requestId"> {
  const requestId = headers["x-request-id"] ?? headers["request-id"];
  return requestId === undefined ? { status } : { status, requestId: oneLine(requestId) };
}

function codeOf(status: number): RemoteErrorCode {
  return CODES[status] ?? (status >= 500 ? "server" : "malformed");
}

/**
 * Seconds or an HTTP date (RFC 9110 §10.2.3), as milliseconds from now, at most a day. A date is on the gateway's
 * clock, so it is compared with the answer's Date. With a machine clock that is set differently, every wait would be
 * wrong by the difference.
 */
function parseRetryAfter(headers: HttpAnswer["headers"], now: () => WallTime): number | undefined {
  const { "retry-after": value, date = "" } = headers;
  if (value === undefined) return undefined;
  const sentAt = Date.parse(date);
  const milliseconds = /^\d+$/.test(value.trim())
    ? Number(value) * 1000
    : Date.parse(value) - (Number.isNaN(sentAt) ? now() : sentAt);
  if (Number.isNaN(milliseconds)) return undefined;
  return Math.min(Math.max(milliseconds, 0), RETRY_AFTER_MAX_MS);
}

/** Made once, because making one costs more than decoding an answer. It keeps no state between answers. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseJson(json: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof json === "string" ? json : utf8.decode(json)) as unknown;
  } catch {
    return undefined;
  }
}

async function readAll(answer: HttpAnswer, limit: number, operation: string): Promise<Uint8Array> {
  const { chunks, failure } = await readWhole(answer.body, limit);
  if (failure !== undefined) throw transportFailure(failure.error, operation, answer);
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : joined(chunks);
}

function oneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ").slice(0, PROBLEM_TEXT_MAX);
}

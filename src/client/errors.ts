/**
 * How a call to the gateway can fail: one class. The code says what to do, and whether the call may
 * have had an effect; status, field, scope and node are the gateway's words.
 */
import type { OperationName } from "../contract/operations.ts";
import type { Node, Problem } from "../contract/resources.ts";

export const REMOTE_ERROR_CODES = [
  /** No connection, or it broke before the end of the answer. */
  "offline",
  /** Connected, but silent for longer than the limit. */
  "silent",
  /** The caller gave up (AbortSignal), or the content to send could not be read. */
  "aborted",
  /** 401: the token is missing, wrong or expired, also after asking for a new one. */
  "unauthorized",
  /** 403: the token lacks `scope`, or the account the role of `grant`. */
  "forbidden",
  /** 404: not there, or not visible; 410: a content of the past that the gateway has given up. */
  "notFound",
  /** 409: `node` has the name, or a folder is not empty. */
  "conflict",
  /** 412: `node` is not (any more) what the condition said. */
  "changed",
  /** 400: `field` says which. */
  "invalid",
  /** 413. */
  "tooLarge",
  /** 507 of the workspace, not of the gateway: `excess` says by how much. Nothing was done. */
  "overQuota",
  /** 429: `retryAfterMs`. */
  "throttled",
  /** 5xx. */
  "server",
  /** An answer that is not what the contract says. */
  "malformed",
] as const;

export type RemoteErrorCode = (typeof REMOTE_ERROR_CODES)[number];

/** What is too much for a workspace, in bytes. */
export interface Excess {
  readonly quota: number;
  readonly used: number;
  /** What would have been added, at least. */
  readonly growth: number;
}

export interface RemoteErrorDetails {
  readonly status?: number;
  /** What was refused. */
  readonly operation?: OperationName;
  readonly requestId?: string;
  readonly field?: string;
  readonly scope?: string;
  readonly grant?: NonNullable<Problem["grant"]>;
  readonly node?: Node;
  readonly retryAfterMs?: number;
  readonly excess?: Excess;
  /** The request never left: it certainly had no effect. */
  readonly isUnsent?: true;
  /** It is about the node that was asked for: of the gateway's state it tells nothing. */
  readonly isOfNode?: true;
  readonly cause?: unknown;
}

export class RemoteError extends Error {
  readonly code: RemoteErrorCode;
  readonly details: RemoteErrorDetails;

  constructor(code: RemoteErrorCode, message: string, details: RemoteErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "RemoteError";
    this.code = code;
    this.details = details;
  }

  /** HTTP status of the answer; undefined when none came. */
  get status(): number | undefined {
    return this.details.status;
  }

  /** What the gateway calls this request, for whoever runs it (X-Request-Id of the answer); undefined when it does not say. */
  get requestId(): string | undefined {
    return this.details.requestId;
  }

  /** The field of the request that is wrong (400). */
  get field(): string | undefined {
    return this.details.field;
  }

  /** The scope the token lacks (403). */
  get scope(): string | undefined {
    return this.details.scope;
  }

  /** What the account would have to be where (403). */
  get grant(): RemoteErrorDetails["grant"] {
    return this.details.grant;
  }

  /** The node that stands in the way (409, 412), as it is at the gateway. */
  get node(): Node | undefined {
    return this.details.node;
  }

  /** By how much the workspace would be over its quota ("overQuota"). */
  get excess(): Excess | undefined {
    return this.details.excess;
  }

  /** How long the gateway asks to wait, milliseconds (Retry-After of 429 and 503). */
  get retryAfterMs(): number | undefined {
    return this.details.retryAfterMs;
  }

  /** It lies with the network or the gateway's state, neither with the request nor with the caller, who may have given up: the same may go well later. */
  get isTransient(): boolean {
    return this.code === "offline" || this.code === "silent" || this.code === "server" || this.code === "malformed";
  }

  /** The request may have taken effect although no answer says so. */
  get isAmbiguous(): boolean {
    return (this.isTransient || this.code === "aborted") && this.details.isUnsent !== true;
  }
}

/** Statuses of a gateway that has no such operation. */
const NO_STREAM_STATUSES: readonly (number | undefined)[] = [404, 405, 406, 501];

/** Why the stream of the journal failed says that the gateway has none. */
export function hasNoStream(error: unknown): boolean {
  if (!(error instanceof RemoteError)) return false;
  // Without a status it is our own refusal: the gateway's profile has no such operation.
  return error.code === "invalid" ? error.status === undefined : NO_STREAM_STATUSES.includes(error.status);
}

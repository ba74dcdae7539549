/**
 * All failures of calls to the gateway, in one class. The code tells a program what to do; `isAmbiguous` tells whether
 * the call may have taken effect. Status, field, scope and node come from the gateway's answer.
 */
import type { OperationName } from "../contract/operations.ts";
import type { Node, Problem } from "../contract/resources.ts";

export const REMOTE_ERROR_CODES = [
  /** No connection, or it broke before the answer ended. */
  "offline",
  /** Connected, but silent for longer than the limit. */
  "silent",
  /** The caller gave up (AbortSignal), or the content to send could not be read. */
  "aborted",
  /** 401: the token is missing, wrong or expired, and so was a new one. */
  "unauthorized",
  /** 403: the token lacks `scope`, or the account lacks the role of `grant`. */
  "forbidden",
  /** 404: it does not exist or is not visible to the token. 410: the gateway no longer keeps it. */
  "notFound",
  /** 409: the present state forbids the call. Often `node` has the name, or a folder is not empty. */
  "conflict",
  /** 412: `node` does not meet the condition, or no longer does. */
  "changed",
  /** 400, or refused here before anything was sent: the field `field` is wrong, or the gateway lacks the call. */
  "invalid",
  /** 413. */
  "tooLarge",
  /**
   * 507 with the numbers of a workspace: `excess` says by how much it would exceed its quota. Nothing was done. A 507
   * of the gateway's own disk is "server".
   */
  "overQuota",
  /** 429: `retryAfterMs` says how long to wait. */
  "throttled",
  /** 5xx. */
  "server",
  /** An answer that does not fit the contract. */
  "malformed",
] as const;

export type RemoteErrorCode = (typeof REMOTE_ERROR_CODES)[number];

/** The numbers of a workspace that would exceed its quota, in bytes. */
export interface Excess {
  readonly quota: number;
  readonly used: number;
  /** The bytes that would have been added, at least. */
  readonly growth: number;
}

export interface RemoteErrorDetails {
  readonly status?: number;
  /** The operation that was refused. */
  readonly operation?: OperationName;
  readonly requestId?: string;
  readonly field?: string;
  readonly scope?: string;
  readonly grant?: NonNullable<Problem["grant"]>;
  readonly node?: Node;
  readonly retryAfterMs?: number;
  readonly excess?: Excess;
  /** The request was not sent, so it certainly had no effect. */
  readonly isUnsent?: true;
  /** The failure concerns only the requested node and says nothing of the gateway's state. */
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

  /** HTTP status of the answer. Undefined: there was no answer. */
  get status(): number | undefined {
    return this.details.status;
  }

  /**
   * The id that the gateway gave this request (X-Request-Id), for the person who runs the gateway. Undefined when it
   * gave none.
   */
  get requestId(): string | undefined {
    return this.details.requestId;
  }

  /** The wrong field of the request (400). */
  get field(): string | undefined {
    return this.details.field;
  }

  /** The scope that the token lacks (403). */
  get scope(): string | undefined {
    return this.details.scope;
  }

  /** The role that the account lacks, and the workspace in which it lacks it (403). */
  get grant(): RemoteErrorDetails["grant"] {
    return this.details.grant;
  }

  /** The node that is in the way (409, 412), as it is at the gateway. */
  get node(): Node | undefined {
    return this.details.node;
  }

  /** The numbers of a workspace that would exceed its quota ("overQuota"). */
  get excess(): Excess | undefined {
    return this.details.excess;
  }

  /** The wait that the gateway asks for, milliseconds (Retry-After of 429 and 503). */
  get retryAfterMs(): number | undefined {
    return this.details.retryAfterMs;
  }

  /** True if the cause is the network or the state of the gateway. The request may succeed later. */
  get isTransient(): boolean {
    return this.code === "offline" || this.code === "silent" || this.code === "server" || this.code === "malformed";
  }

  /** True if the request may have taken effect although no answer says so. */
  get isAmbiguous(): boolean {
    return (this.isTransient || this.code === "aborted") && this.details.isUnsent !== true;
  }
}

/** Statuses of a gateway that has no such operation. */
const NO_STREAM_STATUSES: readonly (number | undefined)[] = [404, 405, 406, 501];

/** True if the failure of the journal's stream means that the gateway has no stream. */
export function hasNoStream(error: unknown): boolean {
  if (!(error instanceof RemoteError)) return false;
  // An "invalid" without a status is our own refusal: the gateway's profile lacks the operation.
  return error.code === "invalid" ? error.status === undefined : NO_STREAM_STATUSES.includes(error.status);
}

/**
 * True if the failure of the stream of nodes, before its first part, means that the gateway has no such stream: it does
 * not know the call, or answers something else.
 */
export function hasNoNodeStream(error: unknown): boolean {
  return hasNoStream(error) || (error instanceof RemoteError && error.code === "malformed");
}

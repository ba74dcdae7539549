/** How a call to the gateway can fail. The code says what to do; status, field and scope are the gateway's words. */
import type { Node } from "../contract/resources.ts";

export const REMOTE_ERROR_CODES = [
  /** No connection, or it broke before an answer. The effect, if any, is unknown. */
  "offline",
  /** Connected, but silent for longer than the limit. The effect is unknown. */
  "silent",
  /** The caller gave up (AbortSignal). The effect is unknown. */
  "aborted",
  /** 401: the token is missing, wrong or expired, also after asking for a new one. */
  "unauthorized",
  /** 403: the token lacks `scope`, or there is no grant. */
  "forbidden",
  /** 404: not there, or not visible. */
  "notFound",
  /** 409: `node` has the name, or a folder is not empty. */
  "conflict",
  /** 412: `node` is not (any more) what the condition said. */
  "changed",
  /** 400: `field` says which. */
  "invalid",
  /** 413. */
  "tooLarge",
  /** 429: `retryAfterMs`. */
  "throttled",
  /** 5xx. The effect is unknown. */
  "server",
  /** An answer that is not what the contract says. The effect is unknown. */
  "malformed",
] as const;

export type RemoteErrorCode = (typeof REMOTE_ERROR_CODES)[number];

export interface RemoteErrorDetails {
  readonly status?: number;
  readonly field?: string;
  readonly scope?: string;
  readonly node?: Node;
  readonly retryAfterMs?: number;
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

  /** The request may have taken effect although no answer says so. */
  get isAmbiguous(): boolean {
    return (
      this.code === "offline" ||
      this.code === "silent" ||
      this.code === "aborted" ||
      this.code === "server" ||
      this.code === "malformed"
    );
  }
}

/**
 * What is known of the gateway right now: whether it answers, what the token may do, and what has
 * been paused for that. Every answer and failure is reported here; flows ask before they wait.
 */
import { RemoteError } from "../client/errors.ts";
import type { Scope } from "../contract/scopes.ts";
import type { Runtime } from "../lib/runtime.ts";
import { FsError } from "./errors.ts";

/** Once known to be offline, a program waits no longer than this for an answer. */
const OFFLINE_PATIENCE_MS = 1000;

export interface Network {
  readonly isOnline: boolean;
  /** The token was refused; nothing is sent until a new one works. */
  readonly loginNeeded: string | undefined;
  may(scope: Scope): boolean;
  /** Something was answered, whatever it was. */
  answered(): void;
  /** Takes note of a failed call. */
  failed(error: unknown): void;
  /**
   * Runs a call on behalf of a program: known offline, it gives up after a second. Rejects with an
   * FsError.
   */
  ask<T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** `scopes`: what the token says it has; undefined: opaque, counts as having every one until a 403 says otherwise. */
export function createNetwork(
  runtime: Runtime,
  options: { scopes: ReadonlySet<string> | undefined; isOnline: boolean; onChange: () => void },
): Network {
  const refused = new Set<string>();
  let isOnline = options.isOnline;
  let loginNeeded: string | undefined;

  function setState(online: boolean, login: string | undefined): void {
    if (online === isOnline && login === loginNeeded) return;
    isOnline = online;
    loginNeeded = login;
    options.onChange();
  }

  const network: Network = {
    get isOnline() {
      return isOnline;
    },
    get loginNeeded() {
      return loginNeeded;
    },
    may: (scope) => !refused.has(scope) && (options.scopes === undefined || options.scopes.has(scope)),
    answered: () => setState(true, undefined),
    failed(error) {
      if (!(error instanceof RemoteError)) return;
      if (error.code === "offline" || error.code === "silent") setState(false, loginNeeded);
      else if (error.code === "unauthorized") setState(true, error.message);
      else if (error.code !== "aborted") setState(true, loginNeeded);
      if (error.code === "forbidden" && error.details.scope !== undefined) {
        refused.add(error.details.scope);
        options.onChange();
      }
    },
    async ask(signal, call) {
      const limit = new AbortController();
      const stop = () => limit.abort();
      signal.addEventListener("abort", stop, { once: true });
      const timer = isOnline ? undefined : runtime.setTimer(OFFLINE_PATIENCE_MS, stop);
      try {
        if (signal.aborted) limit.abort();
        const answer = await call(limit.signal);
        network.answered();
        return answer;
      } catch (error) {
        network.failed(error);
        throw toFsError(error, signal);
      } finally {
        timer?.cancel();
        signal.removeEventListener("abort", stop);
      }
    },
  };
  return network;
}

/** What a program gets to hear of a failed call. */
export function toFsError(error: unknown, signal?: AbortSignal): FsError {
  if (error instanceof FsError) return error;
  if (signal?.aborted === true) return new FsError("EINTR", "interrupted", { cause: error });
  if (!(error instanceof RemoteError)) return new FsError("EIO", "unexpected failure", { cause: error });
  const code =
    error.code === "notFound"
      ? "ENOENT"
      : error.code === "forbidden" || error.code === "unauthorized"
        ? "EACCES"
        : error.code === "tooLarge"
          ? "EFBIG"
          : "EIO";
  return new FsError(code, error.message, { cause: error });
}

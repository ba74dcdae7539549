/**
 * Decides which failed calls are sent again, when and how often. A call is repeated only if it cannot take effect
 * twice: reads, writes with an idempotency key, and calls that certainly had no effect. This file knows no operation.
 */
import { backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/runtime.ts";
import { fields, optional, wholeNumber } from "../checks.ts";
import { RemoteError } from "../errors.ts";

export interface RetryOptions {
  /** The largest number of times that a call is sent. Default 5. */
  readonly tries?: number;
  /** The wait before the second try, milliseconds. It doubles with each try, with jitter. Default 200. */
  readonly firstDelayMs?: number;
  /** The longest wait, milliseconds. Default 20,000. */
  readonly maxDelayMs?: number;
  /**
   * The longest Retry-After that is waited for, milliseconds. With a longer one the call fails, and the caller may
   * wait. Default 60,000.
   */
  readonly maxRetryAfterMs?: number;
}

export const RETRIES = fields<RetryOptions>({
  tries: optional(wholeNumber(1)),
  firstDelayMs: optional(wholeNumber(0)),
  maxDelayMs: optional(wholeNumber(0)),
  maxRetryAfterMs: optional(wholeNumber(0)),
});

/** read: changes nothing. keyed: the gateway recognises the repeated request. unkeyed: it does not. */
export type Safety = "read" | "keyed" | "unkeyed";

export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
  /** False: the call is sent once. */
  readonly retries?: false | undefined;
  /** True if the content to send was read and cannot be read again. */
  readonly isSpent?: (() => boolean) | undefined;
}

export interface Retrier {
  /** Calls until it succeeds or fails for good. Rejects with the last error. */
  run<T>(safety: Safety, call: () => Promise<T>, options?: RunOptions): Promise<T>;
  /**
   * Waits before try number `tried` + 1. Rejects with `error` instead when a call of this `safety` must not be repeated
   * after it, when the tries are used up, or when its Retry-After is too long.
   */
  wait(error: unknown, safety: Safety, tried: number, options?: RunOptions): Promise<void>;
  /** Like `wait`, without a limit of tries: for streams, which have no end. */
  waitForever(error: unknown, tried: number, options?: RunOptions): Promise<void>;
  /** Waits. An abort or `close` ends it at once, with "aborted". */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Ends every wait. */
  close(): void;
}

export function createRetrier(clock: Pick<Clock, "setTimer" | "random">, given: RetryOptions | false = {}): Retrier {
  const { firstDelayMs = 200, maxDelayMs = 20_000, maxRetryAfterMs = 60_000 } = given === false ? {} : given;
  const tries = given === false ? 1 : (given.tries ?? 5);
  const closing = new Set<() => void>();
  let isClosed = false;

  const pause = (milliseconds: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal?.removeEventListener("abort", onAbort);
        closing.delete(onClose);
        settle();
      };
      const aborted = (message: string, cause?: unknown) =>
        new RemoteError("aborted", message, { isUnsent: true, cause });
      const onAbort = () => end(() => reject(aborted("the call was aborted", signal?.reason)));
      const onClose = () => end(() => reject(aborted("the client was closed")));
      const timer = clock.setTimer(milliseconds, () => end(resolve));
      if (isClosed) onClose();
      else if (signal?.aborted === true) onAbort();
      else {
        closing.add(onClose);
        signal?.addEventListener("abort", onAbort, { once: true });
      }
    });

  const delay = (tried: number, retryAfterMs = 0) =>
    retryAfterMs + backoff({ firstMs: firstDelayMs, maxMs: maxDelayMs }, tried, clock);

  const waitAtMost = async (error: unknown, safety: Safety, tried: number, limit: number, options: RunOptions) => {
    const { signal, retries, isSpent } = options;
    const isOver = retries === false || tried >= limit || isClosed || signal?.aborted === true || isSpent?.() === true;
    if (isOver || !(error instanceof RemoteError) || !isRepeatable(error, safety)) throw error;
    const { retryAfterMs } = error;
    if (retryAfterMs !== undefined && retryAfterMs > maxRetryAfterMs) throw error;
    await pause(delay(tried, retryAfterMs), signal);
  };

  return {
    async run(safety, call, options = {}) {
      for (let tried = 1; ; tried += 1) {
        try {
          return await call();
        } catch (error) {
          await waitAtMost(error, safety, tried, tries, options);
        }
      }
    },
    wait: (error, safety, tried, options = {}) => waitAtMost(error, safety, tried, tries, options),
    waitForever: (error, tried, options = {}) =>
      waitAtMost(error, "read", tried, given === false ? 1 : Number.POSITIVE_INFINITY, options),
    pause,
    close() {
      isClosed = true;
      for (const end of [...closing]) end();
    },
  };
}

const NOT_IMPLEMENTED = 501;

function isRepeatable(error: RemoteError, safety: Safety): boolean {
  switch (error.code) {
    // The gateway refused it before it did anything.
    case "throttled":
      return true;
    case "offline":
    case "silent":
    case "server":
      return error.status !== NOT_IMPLEMENTED && (safety !== "unkeyed" || !error.isAmbiguous);
    default:
      return false;
  }
}

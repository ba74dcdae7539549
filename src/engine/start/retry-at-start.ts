/**
 * Asking a gateway that fails at a start: again for a while, because a gateway that starts itself,
 * or breaks a connection, is no reason not to start. What it refuses is refused at once.
 */
import { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/runtime.ts";

export interface RetryBudget {
  /** How long to ask again; less than a moment counts as one. */
  readonly limitMs: number;
  /** Where no connection was taken it is not asked again: that may last for hours. */
  readonly givesUpUnheard?: true;
  /** Called before the first wait that somebody would notice. */
  readonly onWait?: (error: RemoteError) => void;
}

/** For a start that can do without the gateway: only one broken connection is bridged. */
export const ONE_TRY: RetryBudget = { limitMs: 0, givesUpUnheard: true };

/** What it takes to wait; what time it is nobody asks. */
export type Waits = Pick<Clock, "elapsed" | "setTimer">;

/** A start that can do without an answer waits for one no longer than this. */
const ANSWER_MS = 250;

/** The answer, or, where it is long in coming, undefined. Rejects as `asked` does, if that is at once. */
export async function atOnce<T>(clock: Waits, asked: Promise<T>): Promise<{ readonly value: T } | undefined> {
  const over = new AbortController();
  const answer = asked.then((value) => ({ value }));
  const limit = sleep(clock, ANSWER_MS, over.signal).then(() => undefined);
  try {
    return await Promise.race([answer, limit]);
  } finally {
    over.abort();
  }
}

const PAUSES = { firstMs: 50, maxMs: 1000 };
const MOMENT_MS = 350;

export async function retryAtStart<T>(clock: Waits, patience: RetryBudget, ask: () => Promise<T>): Promise<T> {
  const limit = Math.max(patience.limitMs, MOMENT_MS);
  const start = clock.elapsed();
  let waited = 0;
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RemoteError) || !isPassing(error)) throw error;
      if (patience.givesUpUnheard && error.code === "offline" && error.details.isUnsent) throw error;
      // To wait in silence was patience too.
      const spent = error.code === "silent" ? Math.max(waited, clock.elapsed() - start) : waited;
      if (spent >= limit) throw error;
      if (waited === 0 && patience.limitMs > MOMENT_MS) patience.onWait?.(error);
      const pause = Math.max(backoff(PAUSES, tries), Math.min(error.details.retryAfterMs ?? 0, limit - spent));
      await sleep(clock, pause);
      waited += pause;
    }
  }
}

function isPassing(error: RemoteError): boolean {
  return error.code === "offline" || error.code === "server" || error.code === "silent" || error.code === "throttled";
}

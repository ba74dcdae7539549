/**
 * Repeats a failed question to the gateway for a while during a start: a gateway that is itself starting, or a broken
 * connection, must not prevent the start. A refusal by the gateway fails at once.
 */
import { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { minus } from "../../lib/clocks.ts";
import { type Clock, sleep } from "../../lib/runtime.ts";

export interface RetryBudget {
  /** The time for repetitions, in milliseconds. It is never less than a moment (350 ms). */
  readonly limitMs: number;
  /** Gives up at once when no connection was accepted, because that may last for hours. */
  readonly givesUpUnheard?: true;
  /** Called before the first wait that a person would notice. */
  readonly onWait?: (error: RemoteError) => void;
}

/** For a start that can do without the gateway: bridges only one broken connection. */
export const ONE_TRY: RetryBudget = { limitMs: 0, givesUpUnheard: true };

/** The parts of the clock that waiting needs. The time of day is not one of them. */
export type Waits = Pick<Clock, "elapsed" | "setTimer">;

/** Milliseconds. A start that can do without an answer waits no longer for one. */
const ANSWER_MS = 250;

/** The answer, or undefined if it takes longer than 250 ms. Rejects as `asked` does within that time. */
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

/** Rejects with the error of `ask`: at once if it does not pass by itself, else when the budget is spent. */
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
      // Waiting for a gateway that stayed silent has used up time too.
      const spent = error.code === "silent" ? Math.max(waited, minus(clock.elapsed(), start)) : waited;
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

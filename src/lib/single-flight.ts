/**
 * One piece of work per key at a time: callers that ask while it runs wait for the same one. The work goes on only
 * while a caller waits, because it may have no end. When all callers have left, it stops where it is. A caller that
 * asks again soon lets it go on from there. Otherwise it fails after a while.
 */
import { type Clock, sleep } from "./runtime.ts";

/**
 * The work calls this before each of its steps. Undefined: a caller waits. Otherwise the work must await the promise:
 * it resolves when a caller waits again, and rejects when no caller has come for a while.
 */
export type NextCaller = () => Promise<void> | undefined;

export interface SingleFlight<Key> {
  /** The number of pieces of work that have not ended. */
  readonly size: number;
  isRunning(key: Key): boolean;
  /** Resolves and rejects as the work does. Rejects with `reason()` as soon as the signal aborts. */
  run(
    key: Key,
    work: (nextCaller: NextCaller) => Promise<void>,
    signal: AbortSignal,
    reason: () => Error,
  ): Promise<void>;
}

interface Flight {
  waiting: number;
  /** Must be called when a caller waits again. */
  resume: () => void;
  done: Promise<void>;
}

/** `standsMs`: the time for which work without a caller stops before it fails, in milliseconds. */
export function createSingleFlight<Key>(clock: Pick<Clock, "setTimer">, standsMs: number): SingleFlight<Key> {
  const flights = new Map<Key, Flight>();

  function begin(key: Key, work: (nextCaller: NextCaller) => Promise<void>): Flight {
    const flight: Flight = { waiting: 1, resume() {}, done: Promise.resolve() };
    let standing: Promise<void> | undefined;
    const end = () => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    async function stand(): Promise<void> {
      const resumed = new AbortController();
      flight.resume = () => resumed.abort();
      await sleep(clock, standsMs, resumed.signal);
      standing = undefined;
      if (flight.waiting > 0) return;
      // A caller that asks from here on begins a new piece of work.
      end();
      throw new Error("no caller waits for it any more");
    }
    flights.set(key, flight);
    const nextCaller = () => {
      if (flight.waiting > 0) return undefined;
      standing ??= stand();
      return standing;
    };
    flight.done = work(nextCaller).finally(end);
    return flight;
  }

  return {
    get size() {
      return flights.size;
    },
    isRunning: (key) => flights.has(key),
    async run(key, work, signal, reason) {
      let flight = flights.get(key);
      if (flight === undefined) flight = begin(key, work);
      else {
        flight.waiting += 1;
        flight.resume();
      }
      const { done } = flight;
      let isWaiting = true;
      const leave = () => {
        if (isWaiting) flight.waiting -= 1;
        isWaiting = false;
      };
      // Leaves in the same turn as the abort, before the work asks whether a caller still waits.
      signal.addEventListener("abort", leave, { once: true });
      try {
        await unlessAborted(done, signal, reason);
      } finally {
        signal.removeEventListener("abort", leave);
        leave();
      }
    },
  };
}

/** The promise's result, or a rejection with `reason()` as soon as the signal aborts. The work itself goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal, reason: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(reason());
    if (signal.aborted) {
      promise.catch(() => undefined);
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

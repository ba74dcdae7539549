/**
 * One piece of work per key at a time: callers that ask while it runs wait for the same one. It goes on only while a
 * caller waits, because it may have no end. When all callers have left, it stops for a while, so that a caller who gave
 * up something long and asks again finds it further on; after that it fails.
 */
import { type Clock, sleep } from "./runtime.ts";

/**
 * The work calls this before each of its steps. Undefined: a caller waits. Otherwise the promise resolves when a caller
 * waits again, and rejects when no caller came for a while.
 */
export type StillAwaited = () => Promise<void> | undefined;

export interface SingleFlight<Key> {
  /** Pieces of work that have not ended. */
  readonly size: number;
  isRunning(key: Key): boolean;
  /** Rejects with `reason()` as soon as the signal aborts. */
  run(
    key: Key,
    work: (awaited: StillAwaited) => Promise<void>,
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

export function createSingleFlight<Key>(clock: Pick<Clock, "setTimer">, standsMs: number): SingleFlight<Key> {
  const flights = new Map<Key, Flight>();

  function begin(key: Key, work: (awaited: StillAwaited) => Promise<void>): Flight {
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
      throw new Error("nobody waits for it any more");
    }
    flights.set(key, flight);
    const awaited = () => {
      if (flight.waiting > 0) return undefined;
      standing ??= stand();
      return standing;
    };
    flight.done = work(awaited).finally(end);
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

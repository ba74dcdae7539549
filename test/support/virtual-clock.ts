/**
 * Time and chance under control: a clock that stands until it is told to move, timers that fire in
 * order as it does, random numbers by seed, uuids in sequence. Same seed, same run.
 */
import { type ElapsedTime, elapsedTime, wallTime } from "../../src/lib/clocks.ts";
import type { Clock } from "../../src/lib/runtime.ts";

export interface VirtualClock extends Clock {
  /** Moves on, firing the timers that fall due one by one in order, each at its own time; lets promises settle in between. */
  advance(milliseconds: number): Promise<void>;
  /** Lets everything run that waits for no timer. */
  settle(): Promise<void>;
  /** When the next timer falls due; undefined when there is none. */
  nextTimer(): ElapsedTime | undefined;
  /** Sets the wall clock forward or back, as an administrator would; timers do not see it. */
  jump(milliseconds: number): void;
  /** The machine sleeps for so long; timers do not see it. */
  sleep(milliseconds: number): void;
}

interface PendingTimer {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/** 2026-01-01T00:00:00Z */
const START = Date.UTC(2026, 0, 1);

/** Timers fired at one moment; more is a loop that would never end. */
const SPIN_MAX = 5_000;

/** Mulberry32: small, fast, good enough for choosing faults. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function createVirtualClock(seed = 1): VirtualClock {
  let elapsed = 0;
  let offset = START;
  let slept = 0;
  let timers: PendingTimer[] = [];
  let order = 0;
  let uuids = 0;
  const prefix = (seed >>> 0).toString(16).padStart(8, "0");

  const next = (): PendingTimer | undefined => {
    let first: PendingTimer | undefined;
    for (const timer of timers) {
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  };
  // setImmediate runs after all promises that are ready have settled, and those they make ready.
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  return {
    wallClock: () => wallTime(Math.floor(offset + elapsed)),
    elapsed: () => elapsedTime(elapsed),
    uptime: () => elapsed + slept,
    // Work takes no time on this clock.
    worked: () => 0,
    setTimer(milliseconds, callback) {
      const timer = { due: elapsed + Math.max(0, milliseconds), order: order++, callback };
      timers.push(timer);
      return {
        cancel() {
          timers = timers.filter((other) => other !== timer);
        },
      };
    },
    soon: (callback) => void Promise.resolve().then(callback),
    random: seededRandom(seed),
    uuid() {
      uuids += 1;
      return `${prefix}-0000-4000-8000-${uuids.toString(16).padStart(12, "0")}`;
    },
    step() {},
    settle,
    async advance(milliseconds) {
      const end = elapsed + milliseconds;
      await settle();
      let fired = 0;
      for (let timer = next(); timer !== undefined && timer.due <= end; timer = next()) {
        const { due, callback, order: own } = timer;
        timers = timers.filter((other) => other.order !== own);
        fired = due > elapsed ? 0 : fired + 1;
        if (fired > SPIN_MAX) throw new Error(`timers fire without end at ${elapsed} ms`);
        elapsed = Math.max(elapsed, due);
        callback();
        await settle();
      }
      elapsed = end;
    },
    nextTimer() {
      const timer = next();
      return timer === undefined ? undefined : elapsedTime(timer.due);
    },
    jump(milliseconds) {
      offset += milliseconds;
    },
    sleep(milliseconds) {
      slept += milliseconds;
      offset += milliseconds;
    },
  };
}

/**
 * All that the engine needs from the machine: clock, timers, randomness and files. It is passed as one argument, so
 * that the whole engine also runs on a virtual clock with files in memory. A lint rule forbids the globals behind it in
 * engine/, metadata/ and content/.
 */
import { type ElapsedTime, millisecondsOf, type WallTime } from "./clocks.ts";
import type { Files } from "./files.ts";

/** The longest time of a timer (24 days). A longer timer would fire at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

export interface Timer {
  cancel(): void;
}

/** The time and the randomness of a program. The gateway's core needs only this part. */
export interface Clock {
  /** The machine's wall clock, milliseconds since the epoch. It may jump. */
  wallClock(): WallTime;
  /** Milliseconds from an arbitrary start, the same for all processes of one boot. Never goes back. */
  elapsed(): ElapsedTime;
  /** Milliseconds since the machine started, including the time it slept. */
  uptime(): number;
  /** Milliseconds for which this thread has worked since the program started. */
  worked(): number;
  /** Calls back once after `milliseconds`; never synchronously. */
  setTimer(milliseconds: number, callback: () => void): Timer;
  /** Calls back once, as soon as all events that have arrived by now are handled; never synchronously. */
  soon(callback: () => void): void;
  /** Uniform in [0, 1). */
  random(): number;
  /** A fresh UUID (version 4). */
  uuid(): string;
  /** A fault point, at which tests may stop or kill the process. In the product it does nothing. */
  step(label: string): void;
}

export interface Runtime extends Clock {
  readonly files: Files;
}

/** Resolves after `milliseconds`, or at once when the signal aborts. Never rejects. */
export function sleep(runtime: Pick<Clock, "setTimer">, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = runtime.setTimer(milliseconds, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/**
 * Milliseconds until a whole multiple of `milliseconds` on the elapsed clock: the first that is at least half an
 * interval away. Regular checks wait this long, so that an idle process wakes once for all of them.
 */
export function inStep(clock: Pick<Clock, "elapsed">, milliseconds: number): number {
  const left = milliseconds - (millisecondsOf(clock.elapsed()) % milliseconds);
  return Math.ceil(left < milliseconds / 2 ? left + milliseconds : left);
}

/** Calls back at this interval, in step with other checks, until it is cancelled. */
export function every(clock: Pick<Clock, "elapsed" | "setTimer">, milliseconds: number, callback: () => void): Timer {
  const next = () =>
    clock.setTimer(inStep(clock, milliseconds), () => {
      timer = next();
      callback();
    });
  let timer = next();
  return { cancel: () => timer.cancel() };
}

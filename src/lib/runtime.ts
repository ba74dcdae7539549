/**
 * Everything the engine needs from the machine that is not a pure function: clock, timers, chance
 * and files. It is passed as one argument, so that the whole engine also runs on a virtual clock
 * with files in memory. A lint rule forbids the globals behind it in vfs, metadata and content.
 */
import type { Files } from "./files.ts";

/** Timers take no more (24 days): a longer one is over at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

export interface Timer {
  cancel(): void;
}

/** What a program needs of time and chance; the gateway's core needs no more than this. */
export interface Clock {
  /** What somebody who looks at the machine's clock sees, milliseconds since the epoch. May jump. */
  wallClock(): number;
  /** Milliseconds from an arbitrary start, the same for all processes of one boot. Never goes back. */
  elapsed(): number;
  /** For how long the machine has been up: what `elapsed` counts, and the time it slept. */
  uptime(): number;
  /** For how many milliseconds since the start of the program its thread was at work. */
  worked(): number;
  /** Calls back once after `milliseconds`; never synchronously. */
  setTimer(milliseconds: number, callback: () => void): Timer;
  /** Calls back once what else has arrived by now was dealt with; never synchronously, without waiting for a time. */
  soon(callback: () => void): void;
  /** Uniform in [0, 1). */
  random(): number;
  /** A fresh UUID (version 4). */
  uuid(): string;
  /** Passed whenever the program comes by: a fault point. Does nothing, but tests may end the process there. */
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
 * How long until the next whole multiple of `milliseconds` on the machine's clock, at least a half of it from now. Whoever
 * looks at something every so often waits so long: a process at rest is woken once for all of them.
 */
export function inStep(clock: Pick<Clock, "elapsed">, milliseconds: number): number {
  const left = milliseconds - (clock.elapsed() % milliseconds);
  return Math.ceil(left < milliseconds / 2 ? left + milliseconds : left);
}

/** Calls back every so often, in step with others, until it is cancelled. */
export function every(clock: Pick<Clock, "elapsed" | "setTimer">, milliseconds: number, callback: () => void): Timer {
  const next = () =>
    clock.setTimer(inStep(clock, milliseconds), () => {
      timer = next();
      callback();
    });
  let timer = next();
  return { cancel: () => timer.cancel() };
}

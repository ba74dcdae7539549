/**
 * A limit on silence: a request fails when it stops moving, not when it takes long. Each request has one watch, and
 * each of its phases sets the awaited event and its limit. This file knows no network.
 */
import { HEARTBEAT_MS } from "../contract/http.ts";

/** Milliseconds, by the awaited event. A stream may miss three heartbeats (contract/http.ts) and a little more. */
export const SILENCE_LIMITS = {
  connect: 10_000,
  metadata: 10_000,
  content: 30_000,
  uploadAnswer: 60_000,
  stream: 3 * HEARTBEAT_MS + 5_000,
} as const;

interface Silence {
  /** From now on `heard` must be called at least every `milliseconds`. Replaces the earlier expectation. */
  expect(milliseconds: number, event: string): void;
  /** Data moved. */
  heard(): void;
  /** Nothing is awaited from the other side now, so it cannot be silent. */
  pause(): void;
}

export function watchSilence(onSilent: (milliseconds: number, event: string) => void): Silence {
  let timer: NodeJS.Timeout | undefined;
  let milliseconds = 0;
  let event = "";
  let moves = 0;

  const pause = () => {
    moves += 1;
    clearTimeout(timer);
    timer = undefined;
  };
  // When this thread was busy, timers run before sockets are read. Data that arrived meanwhile is read in the poll
  // phase, which comes before the immediate.
  const elapsed = () => {
    const before = moves;
    setImmediate(() => {
      if (moves === before) onSilent(milliseconds, event);
    });
  };

  return {
    expect(limit, what) {
      moves += 1;
      event = what;
      if (timer !== undefined && limit === milliseconds) {
        timer.refresh();
        return;
      }
      clearTimeout(timer);
      milliseconds = limit;
      timer = setTimeout(elapsed, limit);
    },
    heard() {
      moves += 1;
      timer?.refresh();
    },
    pause,
  };
}

/**
 * A limit on silence: what fails is not what takes long but what stops moving. One request has one
 * such watch; each of its phases says what is awaited and for how long at most. Knows no network.
 */
import { HEARTBEAT_MS } from "../contract/http.ts";

/** Milliseconds, by what is awaited. A stream has three heartbeats (contract/http.ts) and a little more. */
export const SILENCE_LIMITS = {
  connect: 10_000,
  metadata: 10_000,
  content: 30_000,
  uploadAnswer: 60_000,
  stream: 3 * HEARTBEAT_MS + 5_000,
} as const;

export interface Silence {
  /** From now on `awaited` must be heard of at least every `milliseconds`. Replaces what was awaited before. */
  expect(milliseconds: number, awaited: string): void;
  /** Something moved. */
  heard(): void;
  /** Nothing is awaited: whoever is slow now is not the other side. */
  pause(): void;
}

export function watchSilence(onSilent: (milliseconds: number, awaited: string) => void): Silence {
  let timer: NodeJS.Timeout | undefined;
  let milliseconds = 0;
  let awaited = "";
  let moves = 0;

  const pause = () => {
    moves += 1;
    clearTimeout(timer);
    timer = undefined;
  };
  // After a stretch in which this thread was busy, timers run before the socket is looked at: what
  // arrived meanwhile is heard in the poll phase that comes before the immediate.
  const elapsed = () => {
    const before = moves;
    setImmediate(() => {
      if (moves === before) onSilent(milliseconds, awaited);
    });
  };

  return {
    expect(limit, what) {
      moves += 1;
      awaited = what;
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

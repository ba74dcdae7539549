/** Wakes those who wait for news; ends them all when the gateway closes. */
import type { Clock } from "../lib/runtime.ts";

export interface Signal {
  readonly ended: boolean;
  /** Wakes everybody who waits. */
  fire(): void;
  /** Wakes them for the last time. */
  end(): void;
  /** Until the next fire, at most `milliseconds`. What happened before the call is not waited for. */
  wait(clock: Pick<Clock, "setTimer">, milliseconds: number): Promise<void>;
}

export function createSignal(): Signal {
  const waiting = new Set<() => void>();
  let ended = false;
  const fire = () => {
    for (const wake of [...waiting]) wake();
  };
  return {
    get ended() {
      return ended;
    },
    fire,
    end() {
      ended = true;
      fire();
    },
    wait(clock, milliseconds) {
      return new Promise((resolve) => {
        if (ended) return resolve();
        const wake = () => {
          timer.cancel();
          waiting.delete(wake);
          resolve();
        };
        const timer = clock.setTimer(milliseconds, wake);
        waiting.add(wake);
      });
    },
  };
}

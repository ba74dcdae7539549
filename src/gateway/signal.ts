/** Wakes waiters for news of a workspace, and ends all waiting when the gateway closes. */
import type { Clock } from "../lib/runtime.ts";

export interface Signal {
  readonly ended: boolean;
  /** Wakes all waiters for news of these workspaces. */
  fire(workspaces: Iterable<string>): void;
  /** Wakes all waiters. */
  fireAll(): void;
  /** Wakes all waiters for the last time. */
  end(): void;
  /**
   * Waits until there is news of the workspace, at most `milliseconds`. Events before the call do not count. `waker`
   * receives a function that wakes this one waiter.
   */
  wait(
    clock: Pick<Clock, "setTimer">,
    milliseconds: number,
    workspace: string,
    waker: (wake: () => void) => void,
  ): Promise<void>;
}

export function createSignal(): Signal {
  const waiting = new Map<string, Set<() => void>>();
  let ended = false;
  const fire = (workspaces: Iterable<string>) => {
    for (const workspace of workspaces) for (const wake of [...(waiting.get(workspace) ?? [])]) wake();
  };
  const fireAll = () => fire([...waiting.keys()]);
  return {
    get ended() {
      return ended;
    },
    fire,
    fireAll,
    end() {
      ended = true;
      fireAll();
    },
    wait(clock, milliseconds, workspace, waker) {
      return new Promise((resolve) => {
        if (ended) return resolve();
        const others = waiting.get(workspace) ?? new Set();
        const wake = () => {
          timer.cancel();
          others.delete(wake);
          if (others.size === 0 && waiting.get(workspace) === others) waiting.delete(workspace);
          resolve();
        };
        const timer = clock.setTimer(milliseconds, wake);
        others.add(wake);
        waiting.set(workspace, others);
        waker(wake);
      });
    },
  };
}

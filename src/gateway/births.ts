/**
 * Nodes that are not found by their id yet: for a moment after its creation (`idLagMs`), GET by id answers 404. The
 * time is counted by the clock that never goes back. A node that was found stays so, also when the lag is raised.
 */
import { type ElapsedTime, minus, plus } from "../lib/clocks.ts";
import type { Clock } from "../lib/runtime.ts";
import type { FaultOptions } from "./fault-options.ts";
import type { Store } from "./store.ts";

export interface Births {
  note(nodeId: string): void;
  isFound(nodeId: string): boolean;
  /** Must be called before the lag is changed: nodes that are found by now stay so. */
  keepFound(): void;
}

interface Birth {
  readonly since: ElapsedTime;
  /** The node's part of the jitter, 0..1; drawn when first needed. */
  share: number | undefined;
}

/** The number of old births that each new one checks. More are checked than added, so that the list stays short. */
const LOOK_COUNT = 4;

export function createBirths(store: Store, clock: Clock, options: Readonly<FaultOptions>): Births {
  const births = new Map<string, Birth>();
  const isLate = () => options.idLagMs > 0 || options.idLagJitterMs > 0;

  function isDue(birth: Birth): boolean {
    if (birth.share === undefined && options.idLagJitterMs > 0) birth.share = clock.random();
    return minus(clock.elapsed(), birth.since) >= options.idLagMs + options.idLagJitterMs * (birth.share ?? 0);
  }

  // Births of the gateway that ran before: their age is by the wall clock, and not negative.
  if (isLate()) {
    const now = clock.wallClock();
    const recent = store
      .prepare<{ node: string; time: number }>(
        "SELECT node, time FROM change WHERE kind = 'created' AND activity = 0 ORDER BY position DESC",
      )
      .iterate();
    for (const { node, time } of recent) {
      if (now - time >= options.idLagMs + options.idLagJitterMs) break;
      births.set(node, { since: plus(clock.elapsed(), -Math.max(0, now - time)), share: undefined });
    }
  }

  return {
    note(nodeId) {
      if (!isLate()) return;
      let looked = 0;
      for (const [id, birth] of births) {
        if (looked >= LOOK_COUNT || !isDue(birth)) break;
        births.delete(id);
        looked += 1;
      }
      births.set(nodeId, { since: clock.elapsed(), share: undefined });
    },
    isFound(nodeId) {
      const birth = births.get(nodeId);
      if (birth === undefined) return true;
      if (!isDue(birth)) return false;
      births.delete(nodeId);
      return true;
    },
    keepFound() {
      for (const [id, birth] of births) if (isDue(birth)) births.delete(id);
    },
  };
}

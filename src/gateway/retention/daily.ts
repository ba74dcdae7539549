/** Applies the retention policies once a day. It checks every hour, and at the start, whether a day has passed. */
import type { Logger } from "../../lib/log.ts";
import { type Clock, every, type Timer } from "../../lib/runtime.ts";
import { HOUR_MS } from "../../lib/time.ts";
import type { PruneReport, Retention } from "./index.ts";

const LOOK_MS = HOUR_MS;

export function pruneDaily(
  clock: Pick<Clock, "elapsed" | "setTimer" | "soon">,
  retention: Pick<Retention, "pruneDue">,
  log: Logger,
): Timer {
  let isOver = false;

  async function look(): Promise<void> {
    try {
      tell(await retention.pruneDue(), log);
    } catch (error) {
      // The gateway ends, and the prune with it.
      if (isOver) return;
      log.error({ err: error }, "the retention policies could not be applied; the next try is in an hour");
    }
  }
  clock.soon(() => void look());
  const timer = every(clock, LOOK_MS, () => void look());
  return {
    cancel() {
      isOver = true;
      timer.cancel();
    },
  };
}

function tell({ workspaces, orphans }: PruneReport, log: Logger): void {
  for (const pruned of workspaces) log.info(pruned, "applied the retention policy");
  if (orphans > 0) log.info({ orphans }, "removed blobs that nothing refers to");
}

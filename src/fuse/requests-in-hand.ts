/**
 * The requests that a daemon had in hand when it died, and their treatment by the daemon that takes over.
 *
 * Since Linux 6.9 the kernel resends them. A request that was in hand at two deaths is not tried a third time, because
 * it may have caused the deaths. Only deaths by the daemon's own fault count: after a kill no request is to blame, and
 * kill -9 must not cause an error.
 *
 * Earlier kernels do not resend. The next daemon must answer the waiting programs, so requests are written down before
 * they are begun.
 */
import type { Logger } from "../lib/log.ts";
import type { InFlight } from "./in-flight.ts";

/** Outlives the daemon. Both lists are always replaced as a whole. */
export interface RequestsInHand {
  /** The requests that the earlier daemon had read, answered or not. */
  readonly left: readonly number[];
  /** True if the earlier daemon died of its own fault, as far as is known. */
  readonly wasOwnFault: boolean;
  /** Crash suspects: the earlier daemon had these requests in hand, and so had one before it that died of itself. */
  readonly suspects: ReadonlySet<number>;
  inFlight(ids: readonly number[]): void;
  suspected(ids: readonly number[]): void;
}

export const NOTHING_KEPT: RequestsInHand = {
  left: [],
  wasOwnFault: false,
  suspects: new Set(),
  inFlight: () => {},
  suspected: () => {},
};

interface CrashSuspects {
  /** False: the request was in hand when two daemons died of themselves. Only for a resent request. */
  begin(request: InFlight): boolean;
  end(request: InFlight): void;
  /** Must be called when this daemon ends on purpose: no request is to blame. */
  forgive(): void;
}

export function createCrashSuspects(requestsInHand: RequestsInHand, log: Logger): CrashSuspects {
  const ids = new Set<number>();
  const { wasOwnFault, suspects } = requestsInHand;
  if (suspects.size > 0) requestsInHand.suspected([]);
  return {
    begin(request) {
      const { id, name, nodeid, pid } = request;
      const wasSuspect = suspects.has(id);
      if (wasSuspect && wasOwnFault) {
        log.error({ op: name, id, node: nodeid, pid }, "a request was in hand when two daemons died: it fails");
        return false;
      }
      if (!wasSuspect && !wasOwnFault) return true;
      ids.add(id);
      requestsInHand.suspected([...ids]);
      return true;
    },
    end({ id }) {
      if (ids.delete(id)) requestsInHand.suspected([...ids]);
    },
    forgive() {
      ids.clear();
      requestsInHand.suspected([]);
    },
  };
}

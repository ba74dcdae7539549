/**
 * Which requests a daemon had in hand when it died, and what the daemon that takes over does about them. Where the
 * kernel resends them (Linux 6.9): a request that was in hand at two deaths is not tried a third time, because it may
 * be what the daemons died of. This counts only deaths of the daemon's own making. No request is to blame when somebody
 * killed it, and kill -9 must not cause an error. Where the kernel does not resend: somebody has to tell the programs
 * that wait, so the requests are written down before they are begun.
 */
import type { Logger } from "../lib/log.ts";
import type { InFlight } from "./in-flight.ts";

/** Outlives the daemon. Both lists are always replaced as a whole. */
export interface RequestsInHand {
  /** What the earlier daemon had read, answered or not. */
  readonly left: readonly number[];
  /** The earlier daemon died of something it did itself, as far as is known. */
  readonly wasOwnFault: boolean;
  /** Crash suspects: both the earlier daemon and one before it that died of itself had these requests in hand. */
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

export interface CrashSuspects {
  /** False: the request was in hand when two daemons died of themselves. Only for a resent request. */
  begin(request: InFlight): boolean;
  end(request: InFlight): void;
  /** This daemon ends on purpose: no request is to blame. */
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
        log.error({ op: name, id, node: nodeid, pid }, "a request was at hand when two daemons died: it fails");
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

/**
 * Which requests a daemon had at hand when it died, and what its successor does about them. Where the kernel
 * sends them again (Linux 6.9), one that was at hand at two deaths is not tried a third time: it may be what they died
 * of. Only where a daemon died of itself: of one that somebody killed no request is to blame, and kill -9 is no reason
 * for an error. Where the kernel does not, somebody has to say so to the programs that wait: they are written down
 * before they are begun.
 */
import type { Logger } from "../lib/log.ts";
import type { InFlight } from "./in-flight.ts";

/** Outlives the daemon; both lists are replaced as a whole. */
export interface RequestsInHand {
  /** Of the daemon before: what it had read, answered or not. */
  readonly left: readonly number[];
  /** It died of something it did, so far as is known. */
  readonly wasOwnFault: boolean;
  /** It had these at hand, as had one before that died of itself. */
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
  /** False: it was at hand when two daemons died of themselves. Only of a request that was sent again. */
  begin(request: InFlight): boolean;
  end(request: InFlight): void;
  /** This daemon ends of its own will: that is nobody's fault. */
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

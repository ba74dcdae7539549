/**
 * Which requests a daemon had at hand when it died, and what its successor does about them. Where the kernel
 * sends them again (Linux 6.9), one that was at hand at two deaths is not tried a third time. Where it does not,
 * somebody has to say so to the programs that wait: they are written down before they are begun.
 */
import type { Logger } from "../lib/log.ts";
import type { InFlight } from "./in-flight.ts";

/** Outlives the daemon; both lists are replaced as a whole. */
export interface AtHand {
  /** Of the daemon before: what it had read, answered or not. */
  readonly left: readonly number[];
  /** Of the daemon before: what had come to it again already. */
  readonly tried: ReadonlySet<number>;
  inFlight(ids: readonly number[]): void;
  again(ids: readonly number[]): void;
}

export const NOTHING_KEPT: AtHand = { left: [], tried: new Set(), inFlight: () => {}, again: () => {} };

export interface SecondTries {
  /** False: it was at hand when two daemons died. Only of a request that was sent again. */
  begin(request: InFlight): boolean;
  end(request: InFlight): void;
  /** This daemon ends of its own will: that is nobody's fault. */
  forgive(): void;
}

export function createSecondTries(atHand: AtHand, log: Logger): SecondTries {
  const ids = new Set<number>();
  if (atHand.tried.size > 0) atHand.again([]);
  return {
    begin(request) {
      const { id, name, nodeid, pid } = request;
      if (atHand.tried.has(id)) {
        log.error({ op: name, id, node: nodeid, pid }, "a request was at hand when two daemons died: it fails");
        return false;
      }
      ids.add(id);
      atHand.again([...ids]);
      return true;
    },
    end({ id }) {
      if (ids.delete(id)) atHand.again([...ids]);
    },
    forgive() {
      ids.clear();
      atHand.again([]);
    },
  };
}

/**
 * The gateway's clock, as its answers tell it: Date of RFC 9110 §6.6.1, a whole second. It is behind by less than a
 * second and the way of the answer. This machine's wall clock may be set differently, and may be set anew.
 */

export interface GatewayClock {
  /** Wall time of the gateway, milliseconds. The wall time of this machine until an answer has told it. */
  now(): number;
  /** Takes in the Date header of an answer that has just come. */
  hear(date: string | undefined): void;
}

/** `now`: wall clock of this machine, `elapsed`: a clock that is never set; milliseconds. */
export function createGatewayClock(now: () => number, elapsed: () => number): GatewayClock {
  let offset: number | undefined;
  return {
    now: () => (offset === undefined ? now() : elapsed() + offset),
    hear(date = "") {
      const told = Date.parse(date);
      if (!Number.isNaN(told)) offset = told - elapsed();
    },
  };
}

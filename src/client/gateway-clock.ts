/**
 * The gateway's clock, by the Date header of its answers (RFC 9110 §6.6.1), a whole second. The result is behind by
 * less than a second plus the answer's time in transit. This machine's wall clock may differ, and may be set anew.
 */
import { type GatewayTime, gatewayTime, millisecondsOf } from "../lib/clocks.ts";
import type { Clock } from "../lib/runtime.ts";

export interface GatewayClock {
  /** Until the first answer: the wall time of this machine. */
  now(): GatewayTime;
  /** Takes in the Date header of an answer that has just come. */
  hear(date: string | undefined): void;
}

export function createGatewayClock(now: Clock["wallClock"], elapsed: Clock["elapsed"]): GatewayClock {
  let offset: number | undefined;
  return {
    now: () => gatewayTime(offset === undefined ? now() : millisecondsOf(elapsed()) + offset),
    hear(date = "") {
      const sentAt = Date.parse(date);
      if (!Number.isNaN(sentAt)) offset = sentAt - millisecondsOf(elapsed());
    },
  };
}

/**
 * The gateway's clock, as its answers tell it: Date of RFC 9110 §6.6.1, a whole second. It is behind by less than a
 * second and the way of the answer. This machine's wall clock may be set differently, and may be set anew.
 */
import { type GatewayTime, gatewayTime, millisecondsOf } from "../lib/clocks.ts";
import type { Clock } from "../lib/runtime.ts";

export interface GatewayClock {
  /** The wall time of this machine until an answer has told the gateway's. */
  now(): GatewayTime;
  /** Takes in the Date header of an answer that has just come. */
  hear(date: string | undefined): void;
}

export function createGatewayClock(now: Clock["wallClock"], elapsed: Clock["elapsed"]): GatewayClock {
  let offset: number | undefined;
  return {
    now: () => gatewayTime(offset === undefined ? now() : millisecondsOf(elapsed()) + offset),
    hear(date = "") {
      const told = Date.parse(date);
      if (!Number.isNaN(told)) offset = told - millisecondsOf(elapsed());
    },
  };
}

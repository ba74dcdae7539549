/** Misbehaviour on purpose: answers that wait, requests that fail before or after their effect. */
import { type Clock, sleep } from "../lib/runtime.ts";
import type { GatewayOptions } from "./context.ts";
import type { GatewayAnswer } from "./exchange.ts";
import { ProblemError } from "./problems.ts";

/** There is no answer: the connection breaks. */
export class ConnectionReset extends Error {
  constructor(when: "before" | "after") {
    super(`The connection is reset on purpose, ${when} the effect.`);
    this.name = "ConnectionReset";
  }
}

/** Answers with the faults of the options: half of the latency before the effect, half after it. */
export async function withFaults(
  options: Readonly<GatewayOptions>,
  clock: Clock,
  answer: () => Promise<GatewayAnswer>,
): Promise<GatewayAnswer> {
  const { latencyMs, failRate } = options;
  if (latencyMs > 0) await sleep(clock, latencyMs / 2);
  const fault = failRate > 0 && clock.random() < failRate ? Math.floor(clock.random() * 3) : undefined;
  if (fault === 0) throw new ProblemError(503, "Unavailable on purpose, nothing was done.");
  if (fault === 1) throw new ConnectionReset("before");
  const result = await answer();
  if (latencyMs > 0) await sleep(clock, latencyMs / 2);
  if (fault === 2) throw new ConnectionReset("after");
  return result;
}

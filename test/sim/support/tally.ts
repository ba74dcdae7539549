/** Counts of what the histories of a run consist of. */
import type { Step } from "./steps.ts";
import type { Fault, Refusal } from "./transport.ts";

export interface Tally {
  histories: number;
  readonly steps: Map<Step["do"], number>;
  requests: number;
  /** How many times names were dropped. */
  drops: number;
  /** Requests that met each fault, and those refused, by status; or whose token was too old, or without the scope. */
  readonly faults: Map<Fault | Refusal | "offline" | "expired" | "withdrawn", number>;
  /** Deaths of mounts in the middle of what they do, by the place. */
  readonly deaths: Map<string, number>;
  /** What was looked at of the past, and brought back. */
  readonly past: Map<string, number>;
}

export function createTally(): Tally {
  return {
    histories: 0,
    steps: new Map(),
    requests: 0,
    drops: 0,
    faults: new Map(),
    deaths: new Map(),
    past: new Map(),
  };
}

export function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** The sums, then one line for each kind of thing. */
export function describeTally({ histories, steps, requests, drops, faults, deaths, past }: Tally): string {
  const list = (counts: ReadonlyMap<unknown, number>) =>
    [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([key, number]) => `${key} ${number}`)
      .join(", ");
  const sum = (counts: ReadonlyMap<unknown, number>) => [...counts.values()].reduce((total, one) => total + one, 0);
  const gateways = (steps.get("gateway crash") ?? 0) + (steps.get("restart gateway") ?? 0);
  return [
    `${histories} histories, ${sum(steps)} steps, ${requests} requests, ${sum(faults)} faults, ${drops} drops of names, ` +
      `${(steps.get("crash") ?? 0) + sum(deaths)} crashes of mounts, ${gateways} of gateways`,
    `steps: ${list(steps)}`,
    `faults: ${list(faults)}`,
    `crashes at places: ${list(deaths)}`,
    ...(past.size === 0 ? [] : [`the past: ${list(past)}`]),
  ].join("\n");
}

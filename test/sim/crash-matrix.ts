/** Places to die at, and one run for each; a line when something was not as it must be. */
import { playScript, type Script } from "./crash-run.ts";
import type { Fault } from "./transport.ts";

/** Before, during and after: what the far side does and what this side hears of it. */
export const FAULTS_OF_CHANGES = [
  "lost-before",
  "lost-after",
  "silent-before",
  "silent-after",
  "late",
  "broken-body",
] as const satisfies readonly Fault[];

export async function playKills(
  script: Script,
  labels: readonly string[],
  kills: readonly number[],
  passed?: Set<string>,
): Promise<string | undefined> {
  try {
    const run = await playScript(script, { kills });
    for (const label of run.labels) passed?.add(label);
    if (run.kills > 0) return undefined;
    return `${script.name}: nobody died at ${kills}`;
  } catch (error) {
    return `${script.name}, killed at ${kills.map((place) => `${place} (${labels[place - 1]})`)}: ${messageOf(error)}`;
  }
}

export interface FaultPlace {
  readonly request: number;
  readonly what: Fault;
  /** Dies this many steps after the request was sent; undefined: does not die. */
  readonly after: number | undefined;
  readonly hasKeys: boolean;
}

export async function playFault(script: Script, place: FaultPlace): Promise<string | undefined> {
  const { request, what, after, hasKeys } = place;
  const fault = { request, what };
  try {
    const run = await playScript(script, { fault, hasKeys });
    const sentAt = run.sentAt[request - 1];
    if (sentAt === undefined) return `${script.name}: there is no request ${request}`;
    if (after !== undefined) await playScript(script, { fault, hasKeys, kills: [sentAt + 1 + after] });
    return undefined;
  } catch (error) {
    const death = after === undefined ? "" : `, and a death ${after} steps later`;
    return `${script.name}, ${what} at change ${request}${death}, ${hasKeys ? "with" : "without"} keys: ${messageOf(error)}`;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

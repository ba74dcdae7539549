/** Places at which a daemon dies, and one run for each; a run returns its first problem as a line. */
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
  /** And the mount dies so many steps after the request was sent: a run for each, besides one in which it does not die. */
  readonly deaths: readonly number[];
}

/** One answer a run. */
export async function playFault(script: Script, place: FaultPlace): Promise<(string | undefined)[]> {
  const { request, what, deaths } = place;
  const fault = { request, what };
  const answers: (string | undefined)[] = [];
  let sentAt: number | undefined;
  for (const after of [undefined, ...deaths]) {
    // Where the request was sent is known from a run without a death that went well.
    if (after !== undefined && sentAt === undefined) break;
    try {
      const kills = after === undefined || sentAt === undefined ? [] : [sentAt + 1 + after];
      const run = await playScript(script, { fault, kills });
      sentAt ??= run.sentAt[request - 1];
      answers.push(sentAt === undefined ? `${script.name}: there is no request ${request}` : undefined);
    } catch (error) {
      const death = after === undefined ? "" : `, and a death ${after} steps later`;
      answers.push(`${script.name}, ${what} at change ${request}${death}: ${messageOf(error)}`);
    }
  }
  return answers;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

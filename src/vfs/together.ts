/**
 * Changes of the loop that come at about the same moment (answers of many requests, many files cut
 * with one sync) are one commit: each is still done as a whole or not at all, and none fails with
 * another. After a pause the first is committed at once. What a program waits for is committed not here.
 */
import type { Runtime } from "../lib/runtime.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { Request } from "./request.ts";

/** Rejects with what `change` throws, or with why nothing could be committed. It may run again, as in any transaction. */
export type Together = <T>(change: () => T) => Promise<T>;

type Outcome = () => void;

/** From one commit to the next, for others to come: most of what a commit costs it costs however much is in it. */
export const GATHER_MS = 4;

export function createTogether(
  runtime: Pick<Runtime, "soon" | "setTimer" | "elapsed">,
  metadata: Metadata<Request>,
  gatherMs = GATHER_MS,
): Together {
  let waiting: { attempt: () => Outcome; reject: (error: unknown) => void }[] = [];
  let committedAt = Number.NEGATIVE_INFINITY;

  function commitLater(): void {
    const wait = committedAt + gatherMs - runtime.elapsed();
    if (wait > 0) runtime.setTimer(Math.ceil(wait), commit);
    else runtime.soon(commit);
  }

  function commit(): void {
    const changes = waiting;
    waiting = [];
    let outcomes: Outcome[];
    try {
      outcomes = metadata.transaction(() => changes.map(({ attempt }) => attempt()));
    } catch (error) {
      outcomes = changes.map(
        ({ reject }) =>
          () =>
            reject(error),
      );
    }
    committedAt = runtime.elapsed();
    for (const tell of outcomes) tell();
  }

  return (change) =>
    new Promise((resolve, reject) => {
      const attempt = (): Outcome => {
        const part = metadata.part(change);
        return "error" in part ? () => reject(part.error) : () => resolve(part.value);
      };
      waiting.push({ attempt, reject });
      if (waiting.length === 1) commitLater();
    });
}

/**
 * Changes of the loop that come at about the same moment (answers of many requests, many files cut
 * with one sync) are one commit: each is still done as a whole or not at all, and none fails with
 * another. Where few requests are under way nothing waits for others to come. What a program waits for is
 * committed at once, and not here.
 */
import type { Runtime } from "../lib/runtime.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { Request } from "./request.ts";

/** Rejects with what `change` throws, or with why nothing could be committed. It may run again, as in any transaction. */
export type Together = <T>(change: () => T) => Promise<T>;

type Outcome = () => void;

/** From so many on that are under way, others will come soon … */
export const MANY = 4;
/** … and share a commit: most of what that costs it costs however much is in it. From one to the next, so long. */
export const GATHER_MS = 4;

/** `underWay`: requests that are. */
export function createTogether(
  runtime: Pick<Runtime, "soon" | "setTimer" | "elapsed">,
  metadata: Metadata<Request>,
  underWay: { readonly size: number },
): Together {
  let waiting: { attempt: () => Outcome; reject: (error: unknown) => void }[] = [];
  let committedAt = Number.NEGATIVE_INFINITY;

  function commitLater(): void {
    const wait = committedAt + GATHER_MS - runtime.elapsed();
    if (underWay.size >= MANY && wait > 0) runtime.setTimer(Math.ceil(wait), commit);
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

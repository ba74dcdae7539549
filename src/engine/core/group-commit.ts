/**
 * Changes of the loop that come at about the same moment (answers of many requests, many files cut
 * with one sync) are one commit: each is still done as a whole or not at all, and none fails with
 * another. A look of the loop takes along what waits. Where few requests are under way nothing waits for
 * others to come. What a program waits for is committed at once, and not here.
 */
import type { Runtime } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

export interface GroupCommit {
  /** Soon. Rejects with what `change` throws, or with why nothing could be committed. It may run again, as in any transaction. */
  <T>(change: () => T): Promise<T>;
  /** At once, after what waits, which is committed with it. Throws what `change` throws; what waited is done all the same. */
  now<T>(change: () => T): T;
}

type Outcome = () => void;

interface Waiting {
  readonly attempt: () => Outcome;
  readonly reject: (error: unknown) => void;
}

/** From so many on that are under way, others will come soon … */
export const MANY = 4;
/** … and share a look at the table, which takes along what waits: from one to the next, so long. */
export const TOGETHER_MS = 8;
/** Where no look comes, from one commit to the next. */
export const TOGETHER_MAX_MS = 16;

/** `underWay`: requests that are. */
export function createGroupCommit(
  runtime: Pick<Runtime, "soon" | "setTimer" | "elapsed">,
  metadata: Metadata<Request>,
  underWay: { readonly size: number },
): GroupCommit {
  let waiting: Waiting[] = [];
  let isPlanned = false;
  let committedAt = Number.NEGATIVE_INFINITY;

  function commitLater(): void {
    if (isPlanned) return;
    isPlanned = true;
    const wait = committedAt + TOGETHER_MAX_MS - runtime.elapsed();
    if (underWay.size >= MANY && wait > 0) runtime.setTimer(Math.ceil(wait), commitPlanned);
    else runtime.soon(commitPlanned);
  }

  function commitPlanned(): void {
    isPlanned = false;
    if (waiting.length > 0) commit(take());
  }

  function take(): Waiting[] {
    const changes = waiting;
    waiting = [];
    return changes;
  }

  function commit(changes: readonly Waiting[]): void {
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
    tell(outcomes);
  }

  function tell(outcomes: readonly Outcome[]): void {
    committedAt = runtime.elapsed();
    for (const outcome of outcomes) outcome();
  }

  function now<T>(change: () => T): T {
    const changes = take();
    if (changes.length === 0) return metadata.transaction(change);
    let done: { readonly outcomes: Outcome[]; readonly value: T };
    try {
      done = metadata.transaction(() => ({ outcomes: changes.map(({ attempt }) => attempt()), value: change() }));
    } catch (error) {
      // None of them fails with it.
      commit(changes);
      throw error;
    }
    tell(done.outcomes);
    return done.value;
  }

  const soon = <T>(change: () => T) =>
    new Promise<T>((resolve, reject) => {
      const attempt = (): Outcome => {
        const part = metadata.part(change);
        return "error" in part ? () => reject(part.error) : () => resolve(part.value);
      };
      waiting.push({ attempt, reject });
      commitLater();
    });

  return Object.assign(soon, { now });
}

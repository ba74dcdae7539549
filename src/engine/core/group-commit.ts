/**
 * Group commit: changes of the loop that come at about the same moment (answers of many requests, many files synced at
 * once) share a commit. Each change is still done as a whole or not at all, and none fails because of another. A look
 * of the loop commits the waiting changes. While few requests are under way, no change waits for others. A change that
 * a program waits for does not come here: it is committed at once.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import type { Runtime } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

export interface GroupCommit {
  /**
   * Commits soon. Resolves to the result of `change`. Rejects with the error that `change` throws, or with the error of
   * the commit. As in any transaction, `change` may run again.
   */
  <T>(change: () => T): Promise<T>;
  /**
   * Commits at once, together with the waiting changes, which run first. Throws the error that `change` throws; the
   * waiting changes are committed all the same.
   */
  now<T>(change: () => T): T;
}

type Outcome = () => void;

interface Waiting {
  readonly attempt: () => Outcome;
  readonly reject: (error: unknown) => void;
}

/** With this many requests under way, others will be answered soon, so that they can share a look of the loop. */
export const MANY = 4;
/** The time from one look of the loop to the next while many requests are under way. A look commits waiting changes. */
export const GROUP_COMMIT_MS = 8;
/** Time from one commit to the next, when no look comes in between. */
export const GROUP_COMMIT_MAX_MS = 16;

/** `underWay`: the requests under way. */
export function createGroupCommit(
  runtime: Pick<Runtime, "soon" | "setTimer" | "elapsed">,
  metadata: Metadata<Request>,
  underWay: { readonly size: number },
): GroupCommit {
  let waiting: Waiting[] = [];
  let isPlanned = false;
  let committedAt: ElapsedTime | undefined;

  function commitLater(): void {
    if (isPlanned) return;
    isPlanned = true;
    const wait = committedAt === undefined ? 0 : GROUP_COMMIT_MAX_MS - minus(runtime.elapsed(), committedAt);
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
      // The waiting changes do not fail because of this one.
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

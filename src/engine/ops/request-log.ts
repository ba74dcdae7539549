/**
 * A change that a program asked for: in one transaction with its effect it is written down that its request
 * is done, so that it is not done again where the kernel asks a successor of this daemon (done.ts). A
 * bare WRITE, and what else changes bytes at places the request names, needs none of that: done again before
 * its program goes on, it leaves what it left before.
 */

import type { Caller, KernelNodeId } from "../api/index.ts";
import { byKernelRequest, type Host, type Rows } from "../core/index.ts";

/** Of the change that `commit` writes down. */
export interface CommitOptions<T> {
  /** What the answer shows, by default nothing; undefined: this was no more than a part, and will be tried again. */
  readonly about?: (result: T) => KernelNodeId | "nothing" | undefined;
  /** The lineage whose attributes it changes. */
  readonly by?: KernelNodeId;
}

export function commitRequest<T>(
  context: Pick<Rows & Host, "metadata" | "runtime">,
  caller: Caller,
  change: () => T,
  { about = () => "nothing", by }: CommitOptions<T> = {},
): T {
  const { metadata, runtime } = context;
  runtime.step("commit: about to");
  const noted = () => {
    const result = change();
    const shown = about(result);
    const { mark } = caller;
    if (mark !== undefined && shown !== undefined) {
      metadata.done.put(mark.place, mark.id, shown === "nothing" ? undefined : shown);
    }
    return result;
  };
  return byKernelRequest(context, noted, by);
}

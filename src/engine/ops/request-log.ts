/**
 * A change that a program asked for. The transaction of its effect also stores that its request is done
 * (metadata/request-log.ts), so that it is not done twice when the kernel resends it to a daemon that takes over. A
 * bare WRITE, and other changes of bytes at places that the request names, needs none of that: done again before its
 * program goes on, it leaves the same bytes.
 */

import type { Caller, KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, Rows } from "../core/index.ts";

/** Options of `commitRequest`. */
export interface CommitOptions<T> {
  /**
   * The kernel node id that the answer shows, by default none ("nothing"). Undefined: this was only a part of the
   * change, and the request will be tried again.
   */
  readonly about?: (result: T) => KernelNodeId | "nothing" | undefined;
  /** The kernel node id whose attributes the change is about. */
  readonly by?: KernelNodeId;
}

export function commitRequest<T>(
  context: Pick<Rows & Kernel & Host, "metadata" | "runtime" | "kernel">,
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
  return context.kernel.byRequest(noted, by);
}

/**
 * Commits a change that a program asked for. The same transaction writes the request to the request log
 * (metadata/request-log.ts), so that it is not carried out twice when the kernel resends it to a daemon that takes
 * over. A WRITE, or another change of bytes at a place that the request names, needs no entry there: carried out again
 * before its program goes on, it leaves the same bytes.
 */

import type { Caller, KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, Rows } from "../core/index.ts";

/** Options of `commitRequest`. */
interface CommitOptions<T> {
  /**
   * The kernel node id that the answer shows; by default "nothing". Undefined: the change was not made, and the request
   * will be tried again, so it does not count as carried out.
   */
  readonly about?: (result: T) => KernelNodeId | "nothing" | undefined;
  /** The kernel node id whose attributes the request changes. */
  readonly by?: KernelNodeId;
}

/** Returns the result of `change`, and throws its error. */
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

/** Asks the gateway whether it still has a version of a node. */
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { PAGE_SIZE_MAX } from "../../contract/resources.ts";
import { limitList } from "../host/index.ts";
import type { Remote } from "./context.ts";

/** Besides transient failures, these say nothing about the node either. */
const SAY_NOTHING: readonly RemoteErrorCode[] = ["unauthorized", "throttled", "aborted"];

/**
 * True: the node still has the version. False: it has not. Undefined: that cannot be found out. Rejects with a
 * RemoteError when the question failed for a reason that says nothing about the node.
 */
export async function hasVersion(
  { client, network }: Pick<Remote, "client" | "network">,
  nodeId: string,
  version: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const check = limitList(`versions of node ${nodeId}`);
  try {
    for (let after: string | undefined, count = 0; ; ) {
      const page = await client.listVersions(nodeId, { pageSize: PAGE_SIZE_MAX, after, signal });
      network.answered();
      check(page);
      count += page.items.length;
      if (page.items.some(({ id }) => id === version)) return true;
      // A gateway may have more versions than it lists, and no way to ask for the rest.
      if (page.next == null) return count < page.totalCount ? undefined : false;
      after = page.next;
    }
  } catch (error) {
    if (!(error instanceof RemoteError) || error.isTransient || SAY_NOTHING.includes(error.code)) throw error;
    return error.code === "notFound" ? false : undefined;
  }
}

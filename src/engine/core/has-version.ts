/** Asks the gateway whether it still has a version of a node. */
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { PAGE_SIZE_MAX } from "../../contract/resources.ts";
import { limitList } from "../host/index.ts";
import type { Remote } from "./context.ts";

/** Say nothing of what was asked for. */
const HELD_UP: readonly RemoteErrorCode[] = ["unauthorized", "throttled", "aborted"];

/** Whether the version is one of the node's. Undefined: that cannot be found out. */
export async function hasVersion(
  { client, network }: Pick<Remote, "client" | "network">,
  nodeId: string,
  version: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const check = limitList(`versions of node ${nodeId}`);
  try {
    for (let after: string | undefined, seen = 0; ; ) {
      const page = await client.listVersions(nodeId, { pageSize: PAGE_SIZE_MAX, after, signal });
      network.answered();
      check(page);
      seen += page.items.length;
      if (page.items.some(({ id }) => id === version)) return true;
      // A gateway may have more, and no way to ask for them.
      if (page.next == null) return seen < page.totalCount ? undefined : false;
      after = page.next;
    }
  } catch (error) {
    if (!(error instanceof RemoteError) || error.isTransient || HELD_UP.includes(error.code)) throw error;
    return error.code === "notFound" ? false : undefined;
  }
}

/** Finds out the hash of a node's content where the gateway tells no hashes. */
import { createHash } from "node:crypto";
import type { Node } from "../../contract/resources.ts";
import type { Remote } from "../core/index.ts";

/** The node with the hash of its content. Reads the whole content. Rejects with the RemoteError of the read. */
export async function withHash({ client }: Pick<Remote, "client">, node: Node, signal: AbortSignal): Promise<Node> {
  const content = await client.getContent(node.id, { signal });
  const hash = createHash("sha256");
  for await (const chunk of content.bytes) hash.update(chunk);
  return { ...node, head: content.version, contentHash: hash.digest("hex") };
}

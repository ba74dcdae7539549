/** Where the gateway tells no hashes: what a node's content hashes to. */
import { createHash } from "node:crypto";
import type { Node } from "../../contract/resources.ts";
import type { Remote } from "../core/index.ts";

/** The node with the hash of its content, which is read for that. */
export async function withHash({ client }: Pick<Remote, "client">, node: Node, signal: AbortSignal): Promise<Node> {
  const content = await client.getContent(node.id, { signal });
  const hash = createHash("sha256");
  for await (const chunk of content.bytes) hash.update(chunk);
  return { ...node, head: content.version, contentHash: hash.digest("hex") };
}

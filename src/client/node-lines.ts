/**
 * The call for all nodes below a folder, as lines of JSON at one position. A stream without its last line is cut off.
 */
import { z } from "zod";
import { type HttpAnswer, NODE_LINES } from "../contract/http.ts";
import { type Node, node, nodesBegin, nodesEnd } from "../contract/resources.ts";
import { checkedJson, discard, malformed, transportFailure } from "./answers.ts";
import type { Send } from "./call.ts";
import type { NodeStreamOptions, NodesPart } from "./client.ts";
import { RemoteError } from "./errors.ts";
import { createLines } from "./lines.ts";

const operation = "streamNodes";
const line = z.union([nodesBegin, nodesEnd, node]);

export async function* streamNodes(
  send: Send,
  options: NodeStreamOptions = {},
): AsyncGenerator<NodesPart, void, undefined> {
  const { path, parentId, workspace, at, branch, after, signal } = options;
  const query = { path, parentId, workspace, at, branch, after };
  const answer = await send({ operation, query, headers: { accept: NODE_LINES }, signal });
  const type = answer.headers["content-type"] ?? "";
  if (!type.toLowerCase().startsWith(NODE_LINES)) {
    await discard(answer);
    throw malformed(operation, answer, `expected ${NODE_LINES}, got ${type === "" ? "no type" : type}`);
  }
  let begun: z.infer<typeof nodesBegin> | undefined;
  let items: Node[] = [];
  let count = 0;
  for await (const text of linesOf(answer)) {
    const parsed = checkedJson(text, line, operation, answer);
    if ("id" in parsed) {
      if (parsed.parentId !== begun?.folder) throw malformed(operation, answer, "a node comes without its folder");
      items.push(parsed);
      continue;
    }
    if (begun !== undefined) yield { ...begun, items };
    count += items.length;
    if ("complete" in parsed) {
      if (parsed.count === count) return;
      throw malformed(operation, answer, `expected ${parsed.count} nodes, got ${count}`);
    }
    begun = parsed;
    items = [];
  }
  throw new RemoteError("server", `${operation}: the stream was cut off`);
}

async function* linesOf(answer: HttpAnswer): AsyncGenerator<string, void> {
  const chunks = answer.body[Symbol.asyncIterator]();
  const linesIn = createLines();
  try {
    for (;;) {
      const chunk = await chunks.next().catch((error: unknown) => {
        throw transportFailure(error, operation, answer);
      });
      if (chunk.done === true) return;
      yield* linesIn(chunk.value);
    }
  } finally {
    await chunks.return?.();
  }
}

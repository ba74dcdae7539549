/** All nodes below a folder, as a stream that goes on where it was cut off. */
import type { Node } from "../../contract/resources.ts";
import type { NodeStreamOptions } from "../client.ts";
import { hasNoNodeStream } from "../errors.ts";
import type { Context, RequestOptions } from "./context.ts";

/** `otherwise`: the same nodes in pages, for a gateway without such a stream. */
export async function* streamNodes(
  context: Context,
  which: NodeStreamOptions,
  options: RequestOptions,
  otherwise: AsyncIterable<Node>,
): AsyncGenerator<Node, void, undefined> {
  const client = await context.load();
  if (!client.features.isFull) return yield* otherwise;
  let after: string | undefined;
  /** The number of nodes of the part at `after` that were passed on. They come again when the stream is resumed. */
  let passed = 0;
  for (let tried = 1; ; tried += 1) {
    let repeated = passed;
    try {
      for await (const part of client.streamNodes({ ...which, after, signal: options.signal })) {
        const fresh = part.items.slice(repeated);
        repeated -= part.items.length - fresh.length;
        if (part.after === after && fresh.length === 0) continue;
        tried = 1;
        [after, passed] = [part.after, part.items.length];
        yield* fresh;
      }
      return;
    } catch (error) {
      if (after === undefined && hasNoNodeStream(error)) return yield* otherwise;
      await context.retrier.wait(error, "read", tried, options);
    }
  }
}

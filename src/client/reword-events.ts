/**
 * The journal's events in another gateway's words as ours (server-sent events, WHATWG HTML §9.2):
 * read, handed to whoever knows the words, and written again. Heartbeats are passed on. Knows no
 * profile.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { RemoteError } from "./errors.ts";

/** Characters of one event; a gateway that sends more is none of ours. */
export const EVENT_SIZE_MAX = 1024 * 1024;

/** `reword`: data of an event, and its id, as the data ours has. */
export function rewordEvents(
  body: AsyncIterable<Uint8Array>,
  reword: (data: string, id: string | undefined) => string,
): AsyncIterable<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  let came: EventSourceMessage[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: EVENT_SIZE_MAX,
    onEvent: (event) => came.push(event),
    onError: (error) => {
      isTooLong ||= error.type === "max-buffer-size-exceeded";
    },
  });
  const decoder = new TextDecoder();
  // Not a generator: return() must reach the connection also when next() was never called.
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      if (isTooLong) throw new RemoteError("malformed", `an event is longer than ${EVENT_SIZE_MAX} characters`);
      const result = await chunks.next();
      if (result.done === true) return result;
      parser.feed(decoder.decode(result.value, { stream: true }));
      const events = came;
      came = [];
      // Whatever came is a sign of life.
      const text =
        events.length === 0 ? ":\n\n" : events.map(({ data, id }) => `data: ${reword(data, id)}\n\n`).join("");
      return { done: false, value: Buffer.from(text) };
    },
    async return() {
      await chunks.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Translates the journal's events of another gateway (server-sent events, WHATWG HTML §9.2): reads them, calls
 * `reword`, and writes them again. Heartbeats are passed on. It knows no profile.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { RemoteError } from "./errors.ts";

/** The largest number of characters in an event. A gateway that sends more does not follow the contract. */
export const EVENT_SIZE_MAX = 1024 * 1024;

/** `reword`: turns an event's data and id into data of the contract. */
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
  // Not a generator, because return() must reach the connection even if next() was never called.
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      if (isTooLong) throw new RemoteError("malformed", `an event is longer than ${EVENT_SIZE_MAX} characters`);
      const result = await chunks.next();
      if (result.done === true) return result;
      parser.feed(decoder.decode(result.value, { stream: true }));
      const events = came;
      came = [];
      // Bytes without a whole event are a sign of life too, so they become a heartbeat.
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

/** Server-sent events (WHATWG HTML §9.2) of one connection. Comments are heartbeats. */
import { createParser } from "eventsource-parser";
import type { HttpAnswer } from "../contract/http.ts";
import { discard, malformed, transportFailure } from "./answers.ts";
import type { Call, Send } from "./call.ts";
import { EVENT_SIZE_MAX } from "./reword-events.ts";

interface RemoteEvent {
  /** "message" when the gateway gives no name. */
  readonly name: string;
  readonly data: string;
  /** The answer that it came in, for messages about a fault. */
  readonly answer: HttpAnswer;
}

/**
 * Ends when the gateway ends the stream. Fails with a RemoteError. `onHeard` is called with everything that arrives,
 * also heartbeats.
 */
export async function* readEvents(send: Send, call: Call, onHeard?: () => void): AsyncGenerator<RemoteEvent, void> {
  const { operation } = call;
  const answer = await send({ ...call, headers: { ...call.headers, accept: "text/event-stream" } });
  const type = answer.headers["content-type"] ?? "";
  if (!/^text\/event-stream\b/i.test(type)) {
    await discard(answer);
    throw malformed(operation, answer, `expected text/event-stream, got ${type === "" ? "no type" : type}`);
  }
  let came: RemoteEvent[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: EVENT_SIZE_MAX,
    onEvent: ({ event = "message", data }) => came.push({ name: event, data, answer }),
    onError: (error) => {
      isTooLong ||= error.type === "max-buffer-size-exceeded";
    },
  });
  const decoder = new TextDecoder();
  const chunks = answer.body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const chunk = await chunks.next().catch((error: unknown) => {
        throw transportFailure(error, operation, answer);
      });
      if (chunk.done === true) return;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      onHeard?.();
      const events = came;
      came = [];
      yield* events;
      if (isTooLong) throw malformed(operation, answer, `an event is longer than ${EVENT_SIZE_MAX} characters`);
    }
  } finally {
    await chunks.return?.();
  }
}

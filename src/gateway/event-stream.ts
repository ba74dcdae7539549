/** Server-sent events: what the streams of the journal and of logs have in common. */
import type { GatewayAnswer } from "./exchange.ts";
import { invalid } from "./problems.ts";

export const HEARTBEAT = Buffer.from(": heartbeat\n\n");

export interface EventReader {
  gone: boolean;
  /** Has the stream look whether it is gone. */
  wake(): void;
}

export function eventAnswer(events: (reader: EventReader) => AsyncGenerator<Uint8Array>): GatewayAnswer {
  return {
    status: 200,
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    body: { kind: "bytes", stream: readBy(events) },
  };
}

/** A generator's own return() would wait for its next event. */
function readBy(events: (reader: EventReader) => AsyncGenerator<Uint8Array>): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const reader: EventReader = { gone: false, wake() {} };
      const inner = events(reader);
      return {
        next: () => inner.next(),
        return() {
          reader.gone = true;
          reader.wake();
          return inner.return(undefined);
        },
      };
    },
  };
}

/** What the reader saw last is later than the after= of the address it keeps asking with. `kind`: what ids of events are. */
export function lastEventId(headers: Readonly<Record<string, string | undefined>>, kind: string): number | undefined {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return undefined;
  if (!/^\d{1,15}$/.test(value)) {
    throw invalid("Last-Event-ID", `Last-Event-ID: expected the id of an event (a ${kind}), got ${value}`);
  }
  return Number(value);
}

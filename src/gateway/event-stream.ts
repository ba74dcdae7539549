/** Server-sent events: the common part of the streams of the journal and of logs. */
import type { GatewayAnswer } from "./exchange.ts";
import { invalid } from "./problems.ts";

export const HEARTBEAT = Buffer.from(": heartbeat\n\n");

export interface EventReader {
  gone: boolean;
  /** Makes the stream check whether its reader is gone. */
  wake(): void;
}

export function eventAnswer(events: (reader: EventReader) => AsyncGenerator<Uint8Array>): GatewayAnswer {
  return {
    status: 200,
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    body: { kind: "bytes", stream: readBy(events) },
  };
}

/** Ends the stream as soon as its reader goes: return() of the generator itself would wait for its next event. */
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

/**
 * The event of Last-Event-ID. It counts more than after=, which a browser keeps from its first request. `kind` names
 * the ids of the events. Throws a 400.
 */
export function lastEventId(headers: Readonly<Record<string, string | undefined>>, kind: string): number | undefined {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return undefined;
  if (!/^\d{1,15}$/.test(value)) {
    throw invalid("Last-Event-ID", `Last-Event-ID: expected the id of an event (a ${kind}), got ${value}`);
  }
  return Number(value);
}

/** Reads server-sent events of a gateway's core without sockets. */
import { expect } from "vitest";
import type { GatewayRequest } from "../../../src/gateway/exchange.ts";
import type { TestCore } from "../../support/gateway-core.ts";

export interface EventReader {
  isEnded(): boolean;
  /** As a broken connection: nothing more is taken. */
  close(): Promise<void>;
}

/** Asks for the stream, and passes on its text as it comes. */
export async function openEvents(
  core: TestCore,
  request: Pick<GatewayRequest, "path" | "query" | "headers">,
  onText: (text: string) => void,
): Promise<EventReader> {
  const answer = await core.gateway.handle({ method: "GET", ...request });
  expect([answer.status, answer.headers["content-type"]]).toEqual([200, "text/event-stream"]);
  if (answer.body?.kind !== "bytes") throw new Error("expected a stream");
  const stream = answer.body.stream[Symbol.asyncIterator]();
  let [isEnded, isClosed] = [false, false];
  void (async () => {
    while (!isClosed) {
      const { done, value } = await stream.next();
      if (done === true) break;
      onText(Buffer.from(value).toString());
    }
    isEnded = true;
  })();
  await core.clock.settle();
  return {
    isEnded: () => isEnded,
    async close() {
      isClosed = true;
      await stream.return?.();
    },
  };
}

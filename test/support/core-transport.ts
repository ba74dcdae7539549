/** A gateway's core as a client's transport: one is handed to the other, without sockets. */
import type { HttpRequest, Transport } from "../../src/contract/http.ts";
import type { Gateway } from "../../src/gateway/core.ts";
import { type GatewayAnswer, jsonBody, type Part, type RequestBody } from "../../src/gateway/exchange.ts";

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

async function* partsOf(body: Extract<HttpRequest["body"], { kind: "upload" }>): AsyncGenerator<Part> {
  if (body.metadata !== undefined) {
    const data = once(Buffer.from(JSON.stringify(body.metadata)));
    yield { name: "metadata", contentType: "application/json", filename: undefined, data };
  }
  yield { name: "file", contentType: body.contentType, filename: "file", data: body.content.read() };
}

function bodyOf(body: HttpRequest["body"]): RequestBody | undefined {
  if (body === undefined) return undefined;
  return body.kind === "json" ? jsonBody(body.value) : { kind: "upload", parts: partsOf(body) };
}

function bytesOf(answer: GatewayAnswer): AsyncIterable<Uint8Array> {
  if (answer.body?.kind === "bytes") return answer.body.stream;
  return once(answer.body === undefined ? new Uint8Array() : Buffer.from(answer.body.text));
}

/** `gateway` is asked for at each request, so that it can be another one after a restart. Rejects as a broken connection does. */
export function createCoreTransport(gateway: () => Gateway): Transport {
  return {
    async send({ method, path, query, headers, body, signal }) {
      signal?.throwIfAborted();
      const answer = await gateway().handle({ method, path, query, headers, body: bodyOf(body) });
      signal?.throwIfAborted();
      return { status: answer.status, headers: answer.headers, body: bytesOf(answer) };
    },
    async close() {},
  };
}

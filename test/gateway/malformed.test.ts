/** What is no HTTP is answered all the same, by what the parser says of it, and the connection ends. */
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { problem } from "../../src/contract/resources.ts";
import { answerMalformed } from "../../src/gateway/malformed.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { sendRaw, serveCore } from "./support/gateway-http.ts";

function answered(text: string) {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [line, ...headers] = head.split("\r\n");
  return { line, headers, document: problem.parse(JSON.parse(body)), bytes: Buffer.byteLength(body) };
}

test.each([
  ["ERR_HTTP_REQUEST_TIMEOUT", 408, "Request Timeout"],
  ["HPE_HEADER_OVERFLOW", 431, "Request Header Fields Too Large"],
  ["HPE_INVALID_METHOD", 400, "Bad Request"],
  ["HPE_INVALID_CHUNK_SIZE", 400, "Bad Request"],
  [undefined, 400, "Bad Request"],
])("%s: %i", (code, status, reason) => {
  let text = "";
  let isDestroyed = false;
  const socket = {
    destroyed: false,
    writable: true,
    end(written: string, then: () => void) {
      text = written;
      then();
    },
    destroy() {
      isDestroyed = true;
    },
  };
  answerMalformed(Object.assign(new Error("on purpose"), { code }), socket as unknown as Socket);
  const { line, headers, document, bytes } = answered(text);
  expect([line, document.status, isDestroyed]).toEqual([`HTTP/1.1 ${status} ${reason}`, status, true]);
  expect(headers).toEqual(
    expect.arrayContaining(["Connection: close", `Content-Length: ${bytes}`, "Content-Type: application/problem+json"]),
  );
});

test("who has gone is told nothing; who cannot be told is let go", () => {
  const told: string[] = [];
  const socket = (state: { destroyed: boolean; writable: boolean }) =>
    ({ ...state, end: () => told.push("end"), destroy: () => told.push("destroy") }) as unknown as Socket;
  const error = (code: string) => Object.assign(new Error("on purpose"), { code });
  answerMalformed(error("ECONNRESET"), socket({ destroyed: false, writable: true }));
  answerMalformed(error("HPE_INVALID_METHOD"), socket({ destroyed: true, writable: false }));
  expect(told).toEqual([]);
  answerMalformed(error("HPE_INVALID_METHOD"), socket({ destroyed: false, writable: false }));
  expect(told).toEqual(["destroy"]);
});

test.each([
  ["no method at all", "nonsense\r\n\r\n", 400],
  ["headers without an end", `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(200_000)}\r\n\r\n`, 431],
  ["a length that is none", "POST /v1/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n", 400],
  [
    "two lengths",
    "POST /v1/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
])("by the parser itself: %s", async (_, text, status) => {
  const { port } = await serveCore(createTestCore());
  const { line, document } = answered(await sendRaw(port, text));
  expect([line?.slice(0, 12), document.status]).toEqual([`HTTP/1.1 ${status}`, status]);
});

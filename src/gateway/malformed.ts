/** Input that cannot be read as HTTP. It is answered with a problem document on the bare socket, which then ends. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ProblemError } from "./problems.ts";

const PROBLEMS: Readonly<Record<string, ProblemError>> = {
  ERR_HTTP_REQUEST_TIMEOUT: new ProblemError(408, "The headers of the request did not come in time."),
  HPE_HEADER_OVERFLOW: new ProblemError(
    431,
    "The headers, path and query included, are longer than this gateway takes.",
  ),
};
const OTHER = new ProblemError(400, "The request is not HTTP/1.1.");

export function answerMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  const problem = PROBLEMS[error.code ?? ""] ?? OTHER;
  const text = JSON.stringify(problem.document);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close",
  ];
  if (!socket.writable) return void socket.destroy();
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`, () => socket.destroy());
}

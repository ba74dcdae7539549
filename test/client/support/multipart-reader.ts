/** Reads a multipart body with a parser that is not ours: Node's. */
import type { IncomingMessage } from "node:http";
import { readBody } from "./server.ts";

export interface ReadPart {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

export async function readMultipart(request: IncomingMessage): Promise<ReadPart[]> {
  return parseMultipart(await readBody(request), request.headers["content-type"] ?? "");
}

export async function parseMultipart(body: Buffer, contentType: string): Promise<ReadPart[]> {
  const response = new Response(withFilenames(body, contentType), { headers: { "content-type": contentType } });
  const parts = [...(await response.formData())].map(async ([name, file]) => {
    if (typeof file === "string") throw new Error(`expected a filename in part ${name}`);
    return { name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()) };
  });
  return Promise.all(parts);
}

/** The parser keeps the type and the bytes of a part only if that has a filename. */
function withFilenames(body: Buffer, contentType: string): Buffer {
  const boundary = contentType.split("boundary=")[1] ?? "";
  const head = new RegExp(`(--${boundary}\r\nContent-Disposition: form-data; name="[^"]*")(?=\r\n)`, "g");
  return Buffer.from(body.toString("latin1").replace(head, '$1; filename="none"'), "latin1");
}

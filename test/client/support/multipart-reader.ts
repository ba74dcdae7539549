/** Reads a multipart body with a parser that is not ours. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";

export interface ReadPart {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

export function readMultipart(request: IncomingMessage): Promise<ReadPart[]> {
  return parseMultipart(request, request.headers["content-type"] ?? "");
}

export async function parseMultipart(body: Readable, contentType: string): Promise<ReadPart[]> {
  const headers: BusboyHeaders = { "content-type": contentType };
  const parser = new Busboy({ headers });
  const parts: Promise<ReadPart>[] = [];
  parser.on("field", (name, value, _nameTruncated, _valueTruncated, _encoding, type) => {
    parts.push(Promise.resolve({ name, type, bytes: Buffer.from(value) }));
  });
  parser.on("file", (name, stream, _filename, _encoding, type) => {
    const chunks: Buffer[] = [];
    parts.push(
      new Promise((resolve, reject) => {
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => resolve({ name, type, bytes: Buffer.concat(chunks) }));
        stream.on("error", reject);
      }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    parser.on("finish", resolve);
    parser.on("error", reject);
    body.on("error", reject);
    body.pipe(parser);
  });
  return Promise.all(parts);
}

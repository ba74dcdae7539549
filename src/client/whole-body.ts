/** A body of which nothing is of use before all of it is there. */
import { RemoteError } from "./errors.ts";

/** Of JSON. A longer answer would be of a gateway that has gone mad. */
export const JSON_BYTES_MAX = 64 * 1024 * 1024;

/** Rejects as the body does, and with "malformed" when it is longer than `limit` bytes. */
export async function readChunks(body: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) throw new RemoteError("malformed", `the answer is longer than ${limit} bytes`);
    chunks.push(chunk);
  }
  return chunks;
}

/** In memory that nothing else shares. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let position = 0;
  for (const chunk of chunks) {
    whole.set(chunk, position);
    position += chunk.length;
  }
  return whole;
}

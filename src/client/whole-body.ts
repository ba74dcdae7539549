/** A body of which nothing is of use before all of it is there. */
import { RemoteError } from "./errors.ts";

/** Of JSON. A longer answer would be of a gateway that has gone mad. */
export const JSON_BYTES_MAX = 64 * 1024 * 1024;
/** The same of an answer to a change, which shows a node or two; many come at a time. */
export const CHANGE_BYTES_MAX = 4 * 1024 * 1024;

export interface Read {
  readonly chunks: readonly Uint8Array[];
  /** Why there are no more of them; absent: it is whole. */
  readonly failure?: { readonly error: unknown };
}

/** Fails as the body does, and with "malformed" when it is longer than `limit` bytes. Never rejects. */
export async function readWhole(body: AsyncIterable<Uint8Array>, limit: number): Promise<Read> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.length;
      if (size > limit) {
        const error = new RemoteError("malformed", `the answer is longer than ${limit} bytes`);
        return { chunks: [], failure: { error } };
      }
      chunks.push(chunk);
    }
    return { chunks };
  } catch (error) {
    return { chunks, failure: { error } };
  }
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

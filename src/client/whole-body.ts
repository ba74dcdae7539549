/** Reads a body to its end before it is used. */
import { RemoteError } from "./errors.ts";

/** The limit for JSON. A longer answer comes from a broken gateway. */
export const JSON_BYTES_MAX = 64 * 1024 * 1024;
/**
 * The limit for the answer to a change, which has a node or two. It is lower because many such answers come at once.
 */
export const CHANGE_BYTES_MAX = 4 * 1024 * 1024;

interface Read {
  readonly chunks: readonly Uint8Array[];
  /** The error that broke the body off. Absent: the body is whole. */
  readonly failure?: { readonly error: unknown };
}

/**
 * Reads the body. `failure` is the body's error, or "malformed" when the body is longer than `limit` bytes. Never
 * rejects.
 */
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

/** Copies the chunks into memory that nothing else shares. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let position = 0;
  for (const chunk of chunks) {
    whole.set(chunk, position);
    position += chunk.length;
  }
  return whole;
}

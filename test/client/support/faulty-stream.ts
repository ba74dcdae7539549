/** Streams of events that break anywhere, as the answers of a scripted gateway. */
import fc from "fast-check";
import { RemoteError } from "../../../src/client/errors.ts";

export interface StreamFault {
  /** Bytes of this stream that arrive. */
  readonly bytes: number;
  /** How it ends then: an error, or as if all were said. */
  readonly end: "broken" | "ended";
  /** Bytes of a chunk: events and characters are cut anywhere. */
  readonly chunk: number;
  /** How many events before the one asked for it begins. */
  readonly early: number;
}

export const STEADY: StreamFault = { bytes: Number.POSITIVE_INFINITY, end: "ended", chunk: 64, early: 0 };

export const streamFaults = (most: number) =>
  fc.array(
    fc.record({
      bytes: fc.integer({ min: 0, max: most }),
      end: fc.constantFrom("broken" as const, "ended" as const),
      chunk: fc.integer({ min: 1, max: 700 }),
      early: fc.integer({ min: 0, max: 3 }),
    }),
    { maxLength: 12 },
  );

export async function* bytesOfStream(text: string, { bytes, end, chunk }: StreamFault): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text);
  const part = all.subarray(0, Math.min(bytes, all.length));
  for (let start = 0; start < part.length; start += chunk) yield part.subarray(start, start + chunk);
  if (end === "broken") throw new RemoteError("offline", "broken on purpose");
}

/**
 * Where contents too large for the store's own table are kept: named by random ids, written once,
 * never changed. `disk-blobs.ts` is the real one.
 */
export interface Blobs {
  /**
   * Keeps the whole stream under a random id that was never used; nothing is left when it fails.
   * Once this resolves the blob survives the death of this process.
   */
  write(blob: string, data: AsyncIterable<Uint8Array>): Promise<void>;
  /** Bytes [start, end) of a blob. A chunk holds until the next one is asked for: its memory is used again. */
  read(blob: string, start: number, end: number): AsyncIterable<Uint8Array>;
  /** Answers false where it has to stay for now: a later collection removes it. No error when it is not there. */
  remove(blob: string): Promise<boolean>;
  list(): AsyncIterable<string>;
}

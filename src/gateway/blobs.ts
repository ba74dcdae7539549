/**
 * Stores contents that are too large for a row of the store. Blobs have random ids, are written once and never change.
 * `disk-blobs.ts` is the real implementation.
 */
export interface Blobs {
  /**
   * Stores the whole stream under a random id that was never used. After a failure nothing is left. When it resolves,
   * the blob survives the death of this process.
   */
  write(blob: string, data: AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * Bytes [start, end) of a blob. A chunk is valid until the next one is requested, because its memory is used again.
   */
  read(blob: string, start: number, end: number): AsyncIterable<Uint8Array>;
  /** False: it must stay for now, and a later collection removes it. No error when it is missing. */
  remove(blob: string): Promise<boolean>;
  list(): AsyncIterable<string>;
}

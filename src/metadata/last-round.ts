/** Whether the thread that answers programs is to make the last round of a checkpoint, for which it waits for the disk. Pure. */

/** Of a shorter log nothing is to be gained. */
const LONG_BYTES = 32 * 1024 * 1024;
/** Programs that are at work make about so much of it in a hundred milliseconds: a round may cost them a hundredth of their time. */
const BYTES_PER_MS = 2 * 1024 * 1024;
/** Moved within about a millisecond. */
const SHORT_BYTES = 2 * 1024 * 1024;

export interface Round {
  /** All of the log that is in use. */
  readonly logBytes: number;
  /** What came during the round before, and so about what came during this one. */
  readonly leftBytes: number;
  /** How long this round took, most of it for two syncs of the disk. */
  readonly tookMs: number;
}

export const isLong = (logBytes: number): boolean => logBytes >= LONG_BYTES;

export function isForWriter({ logBytes, leftBytes, tookMs }: Round): boolean {
  return isLong(logBytes) && leftBytes <= SHORT_BYTES && logBytes >= tookMs * BYTES_PER_MS;
}

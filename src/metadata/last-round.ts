/**
 * Whether the thread that answers programs makes the last round of a checkpoint, for which it waits for the disk. Pure.
 */

/** With a shorter log nothing is gained. */
const LONG_BYTES = 32 * 1024 * 1024;
/**
 * Busy programs write about this much log in a hundred milliseconds, so a round may cost them a hundredth of their
 * time.
 */
const BYTES_PER_MS = 2 * 1024 * 1024;
/** This much is moved within about a millisecond. */
const SHORT_BYTES = 2 * 1024 * 1024;

export interface Round {
  /** The part of the log that is in use, in bytes. */
  readonly logBytes: number;
  /** What came during the round before, and so about what came during this one, in bytes. */
  readonly leftBytes: number;
  /** How long this round took, in milliseconds. Most of it went into two syncs of the disk. */
  readonly tookMs: number;
}

export const isLong = (logBytes: number): boolean => logBytes >= LONG_BYTES;

export function isForWriter({ logBytes, leftBytes, tookMs }: Round): boolean {
  return isLong(logBytes) && leftBytes <= SHORT_BYTES && logBytes >= tookMs * BYTES_PER_MS;
}

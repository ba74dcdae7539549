/**
 * Decides whether the thread that answers programs makes the last round of a checkpoint, for which it waits for the
 * disk. Pure.
 */

/** A shorter log gains nothing from a last round. */
const LONG_BYTES = 32 * 1024 * 1024;
/**
 * Busy programs write about this much log in a hundred milliseconds, so a round may cost them a hundredth of their
 * time.
 */
const BYTES_PER_MS = 2 * 1024 * 1024;
/** This much is moved within a millisecond or so. */
const SHORT_BYTES = 2 * 1024 * 1024;

interface Round {
  /** The part of the log that is in use, in bytes. */
  readonly logBytes: number;
  /** Bytes that were added to the log during the round before. About as many are added during each round. */
  readonly leftBytes: number;
  /** Duration of this round, in milliseconds. Two syncs of the disk took most of it. */
  readonly tookMs: number;
}

export const isLong = (logBytes: number): boolean => logBytes >= LONG_BYTES;

export function isForWriter({ logBytes, leftBytes, tookMs }: Round): boolean {
  return isLong(logBytes) && leftBytes <= SHORT_BYTES && logBytes >= tookMs * BYTES_PER_MS;
}

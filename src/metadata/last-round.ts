/** Whether the thread that answers programs is to make the last round of a checkpoint, for which it waits for the disk. Pure. */

/** Of a shorter log nothing is to be gained. */
const LONG_BYTES = 32 * 1024 * 1024;
/** Programs that are at work make about so much of it in a hundred milliseconds: a round may cost them a hundredth of their time. */
const BYTES_PER_MS = 2 * 1024 * 1024;

export interface Round {
  /** All of the log that is in use. */
  readonly logBytes: number;
  /** How long this round took, to move what came during the one before and for two syncs of the disk: one more takes about as long. */
  readonly tookMs: number;
}

export const isLong = (logBytes: number): boolean => logBytes >= LONG_BYTES;

export function isForWriter({ logBytes, tookMs }: Round): boolean {
  return isLong(logBytes) && logBytes >= tookMs * BYTES_PER_MS;
}

/**
 * Hashes a download while it arrives, so that its check is done soon after the last byte. That works as long as the
 * bytes arrive from the beginning of the file on, about in order. A file that was read out of order is hashed as a
 * whole once all of it is here.
 */
import type { RunningHash } from "../../lib/files.ts";

/**
 * Bytes by which the hash may be behind the bytes that are here without a gap. It is more than the windows of one
 * reader, which arrive in any order.
 */
const BEHIND_MAX = 64 * 1024 * 1024;

export class DownloadHash {
  /** The hash, and how many bytes from the beginning of the file it covers. */
  #running: { readonly hash: RunningHash; reached: number } | undefined;

  /** All bytes up to `here` have arrived. They do not change. `begin`: begins the hash of the file. */
  reach(here: number, begin: () => RunningHash): void {
    const reached = this.#running?.reached ?? 0;
    if (here - reached > BEHIND_MAX) {
      this.stop();
    } else if (here !== reached) {
      this.#running ??= { hash: begin(), reached: 0 };
      this.#running.hash.reach(here);
      this.#running.reached = here;
    }
  }

  /** Takes the hash, to finish it; undefined: there is none. */
  take(): RunningHash | undefined {
    const running = this.#running;
    this.#running = undefined;
    return running?.hash;
  }

  stop(): void {
    this.take()?.cancel();
  }
}

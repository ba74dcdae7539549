/**
 * Keeps a daemon visible to commands for as long as it lives. The folder they look in may go before the daemon: with
 * the login session of its user, or in a clean-up. This file knows when to look, not the files of the folder.
 */
import type { Logger } from "../lib/log.ts";
import { type Clock, every } from "../lib/runtime.ts";

const LOOK_MS = 1000;

interface Place {
  isThere(): boolean;
  /** May fail for as long as the parent folder cannot be made, as for a user without a session. */
  makeAgain(): Promise<void>;
}

/** The returned function stops it, and resolves when no work is under way. */
export function keepRegistered(
  place: Place,
  clock: Pick<Clock, "elapsed" | "setTimer">,
  log: Logger,
): () => Promise<void> {
  let making: Promise<void> | undefined;
  let couldNot = false;
  const look = async () => {
    try {
      await place.makeAgain();
      couldNot = false;
      log.warn({}, "the runtime folder was removed, and is made again");
    } catch (error) {
      if (!couldNot) log.warn({ err: error }, "the runtime folder was removed; no command finds this daemon");
      couldNot = true;
    }
    making = undefined;
  };
  const timer = every(clock, LOOK_MS, () => {
    if (making === undefined && !place.isThere()) making = look();
  });
  return async () => {
    timer.cancel();
    await making;
  };
}

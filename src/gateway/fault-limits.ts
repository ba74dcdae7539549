/** Limits of fault options, for the flags too. It does not load zod, because every command line needs this file. */
import { DAY_MS } from "../lib/time.ts";

/**
 * The difference between fully behind and fully ahead is a day: idempotency keys live that much longer than promised.
 */
export const SKEW_MS_MAX = DAY_MS / 2;
export const RETRY_AFTER_SECONDS_MAX = DAY_MS / 1000;

/**
 * Chance in tests: what a run draws is drawn again by the next one. Another seed is given by hand
 * (`WSFS_SEED=7 npm test`); what the seed does not decide, such as which program comes first, stays open.
 */
import { seededRandom } from "./virtual-clock.ts";

export const SEED = Number(process.env.WSFS_SEED ?? 1);

export const createChance = (): (() => number) => seededRandom(SEED);

/** A seed for another program. */
export const drawSeed = (chance: () => number): number => Math.floor(chance() * 2 ** 32);

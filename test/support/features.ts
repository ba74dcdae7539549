/** Gateways that can do less, for tests of the client and the engine. */
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";

/** All features but these. */
export const without = (...lacks: readonly Exclude<keyof Features, "isFull">[]): Features => ({
  ...ALL_FEATURES,
  ...Object.fromEntries(lacks.map((feature) => [feature, false])),
});

export const PLAIN: Features = { ...ALL_FEATURES, isFull: false };

/** As little as a gateway can be mounted with. */
export const PLAINEST: Features = { isFull: false, ranges: false, hashes: false, attributes: false };

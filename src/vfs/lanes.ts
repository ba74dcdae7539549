/**
 * Who goes next: small things and bulk (contents that take long to send) have lanes of their own, so
 * that neither waits for the other. Pure: knows no row.
 */

/** As stored with a row: 1 is bulk. */
export const SMALL = 0;
export const BULK = 1;
export type Lane = typeof SMALL | typeof BULK;

/** Contents from this size on are bulk. */
export const BULK_BYTES = 1024 * 1024;

export function laneOf(bytes: number): Lane {
  return bytes >= BULK_BYTES ? BULK : SMALL;
}

export interface Lanes {
  enter(lane: Lane): void;
  leave(lane: Lane): void;
  readonly inFlight: number;
  /** How many more may go on this lane, of `limit` on both; bulk never takes more than half. Each lane has at least one place. */
  room(lane: Lane, limit: number): number;
}

export function createLanes(): Lanes {
  const inFlight: [number, number] = [0, 0];
  const all = () => inFlight[SMALL] + inFlight[BULK];
  return {
    enter(lane) {
      inFlight[lane] += 1;
    },
    leave(lane) {
      inFlight[lane] -= 1;
    },
    get inFlight() {
      return all();
    },
    room(lane, limit) {
      const places = Math.max(1, lane === BULK ? Math.floor(limit / 2) : limit - inFlight[BULK]);
      const own = Math.max(0, places - inFlight[lane]);
      if (lane === SMALL) return own;
      return Math.max(inFlight[BULK] === 0 ? 1 : 0, Math.min(own, limit - all()));
    },
  };
}

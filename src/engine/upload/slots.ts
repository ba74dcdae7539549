/**
 * Who goes next: small things and bulk (contents that take long to send) have slots of their own, so
 * that neither waits for the other. Pure: knows no row.
 */

/** As stored with a row: 1 is bulk. */
export const SMALL = 0;
export const BULK = 1;
export type PriorityClass = typeof SMALL | typeof BULK;

/** Contents from this size on are bulk. */
export const BULK_BYTES = 1024 * 1024;
/** So many of them fill any line: more would share it, and each would take longer. */
const BULK_MOST = 8;

export function priorityOf(bytes: number): PriorityClass {
  return bytes >= BULK_BYTES ? BULK : SMALL;
}

/** What is on its way to the gateway: made safe in the rows first, and then, when a place is free, sent. */
export interface Slot {
  /** Resolves when the request may go out; to false when that is stopped before. */
  turn(): Promise<boolean>;
  /** It is not to go out any more. One that is out stays so. */
  stop(): void;
  /** It is answered, or never goes out. Again: nothing. */
  leave(): void;
}

export interface Slots {
  enter(priority: PriorityClass): Slot;
  /** Requests that are out. */
  readonly out: number;
  /** Whether no more may be out. */
  readonly isFull: boolean;
  /** How many more may enter. Of small ones twice as many as may be out are made ready ahead of them: a sync may take long. */
  room(priority: PriorityClass): number;
}

/** `limit`: as many may be out in both classes at a time; bulk never takes more than half, or eight. Each priority has at least one. */
export function createSlots(limit: () => number): Slots {
  const entered: [number, number] = [0, 0];
  const out: [number, number] = [0, 0];
  /** In the order in which they came; each takes its place when it is called. */
  const waiting: [Set<() => void>, Set<() => void>] = [new Set(), new Set()];
  const share = (priority: PriorityClass) =>
    Math.max(1, priority === BULK ? Math.min(BULK_MOST, Math.floor(limit() / 2)) : limit());
  const isFull = () => out[SMALL] + out[BULK] >= limit();
  const mayGo = (priority: PriorityClass) => out[priority] === 0 || (!isFull() && out[priority] < share(priority));

  function letOut(): void {
    for (const priority of [BULK, SMALL] as const) {
      for (const next of waiting[priority]) {
        if (!mayGo(priority)) break;
        next();
      }
    }
  }

  return {
    enter(priority) {
      let isIn = true;
      let isOut = false;
      let isStopped = false;
      /** Called when it is out, or stopped, while it waits. */
      let end: ((isTurn: boolean) => void) | undefined;
      entered[priority] += 1;
      const go = () => {
        waiting[priority].delete(go);
        isOut = true;
        out[priority] += 1;
        end?.(true);
      };
      return {
        turn() {
          if (isStopped) return Promise.resolve(false);
          if (waiting[priority].size === 0 && mayGo(priority)) {
            go();
            return Promise.resolve(true);
          }
          return new Promise((resolve) => {
            end = resolve;
            waiting[priority].add(go);
          });
        },
        stop() {
          isStopped = true;
          if (waiting[priority].delete(go)) end?.(false);
        },
        leave() {
          if (!isIn) return;
          isIn = false;
          entered[priority] -= 1;
          if (isOut) out[priority] -= 1;
          letOut();
        },
      };
    },
    get out() {
      return out[SMALL] + out[BULK];
    },
    get isFull() {
      return isFull();
    },
    room: (priority) => Math.max(0, (priority === BULK ? 1 : 3) * share(priority) - entered[priority]),
  };
}

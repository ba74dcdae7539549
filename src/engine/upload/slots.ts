/**
 * Decides which request goes next. Small requests and bulk requests (contents that take long to send) have slots of
 * their own, so that neither waits for the other. Pure: knows no row.
 */
import type { Priority } from "../../metadata/priority.ts";

/** In bytes. Contents of this size and more are bulk. */
export const BULK_BYTES = 1024 * 1024;
/** The most bulk requests at a time. They fill any network line: with more, each would only take longer. */
const BULK_MOST = 8;

/** The priority class of a request that sends so many bytes. */
export function priorityOf(bytes: number): Priority {
  return bytes >= BULK_BYTES ? "bulk" : "small";
}

/** One request on its way to the gateway. Its attempt is made durable first; then it is sent when a slot is free. */
export interface Slot {
  /** Resolves to true when the request may go out; to false if the slot is stopped before that. */
  turn(): Promise<boolean>;
  /** The request must not go out any more. If it is out already, this changes nothing. */
  stop(): void;
  /** The request was answered, or never goes out. A second call does nothing. */
  leave(): void;
}

export interface Slots {
  enter(priority: Priority): Slot;
  /** The number of requests in flight. */
  readonly out: number;
  /** No more requests may be in flight. */
  readonly isFull: boolean;
  /**
   * The number of further requests that may enter. Beside the small requests that may be in flight, twice as many are
   * made ready ahead, because the sync of their attempts may take long.
   */
  room(priority: Priority): number;
}

/**
 * `limit`: the number of requests of both classes that may be in flight. Bulk never takes more than half of that, and
 * never more than eight. Each class may always have one.
 */
export function createSlots(limit: () => number): Slots {
  const entered: Record<Priority, number> = { small: 0, bulk: 0 };
  const out: Record<Priority, number> = { small: 0, bulk: 0 };
  /** The waiting requests, in the order in which they came. A call of one takes its slot. */
  const waiting: Readonly<Record<Priority, Set<() => void>>> = { small: new Set(), bulk: new Set() };
  const share = (priority: Priority) =>
    Math.max(1, priority === "bulk" ? Math.min(BULK_MOST, Math.floor(limit() / 2)) : limit());
  const isFull = () => out.small + out.bulk >= limit();
  const mayGo = (priority: Priority) => out[priority] === 0 || (!isFull() && out[priority] < share(priority));

  function letOut(): void {
    for (const priority of ["bulk", "small"] as const) {
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
      /** Set while the request waits. Called when it goes out or is stopped. */
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
      return out.small + out.bulk;
    },
    get isFull() {
      return isFull();
    },
    room: (priority) => Math.max(0, (priority === "bulk" ? 1 : 3) * share(priority) - entered[priority]),
  };
}

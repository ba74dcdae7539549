/**
 * The bytes that wait to be sent, summed over the rows one slice at a time. A short queue is summed at each question.
 * For a long queue the answer is the last sum, and a new one is begun.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { Pending, QueuePlace } from "../../metadata/nodes.ts";
import type { Host } from "../core/index.ts";

const SLICE = 500;
/** For this time the sum of a long queue is not renewed. */
const FRESH_MS = 2_000;

export interface Backlog {
  /** The sum, as of now or of a moment ago. */
  bytes(): number;
  /** Resolves when `bytes` is exact. Rejects when the rows cannot be read. */
  measure(): Promise<void>;
}

/** Lists rows that wait, the oldest first, from the one after `after` on. */
type List = (limit: number, after?: QueuePlace) => Pending[];

export async function addUp({ runtime }: Pick<Host, "runtime">, list: List): Promise<number> {
  let sum = 0;
  for (let after: QueuePlace | undefined; ; ) {
    const rows = list(SLICE, after);
    for (const { bytes } of rows) sum += bytes;
    after = rows.at(-1);
    if (rows.length < SLICE) return sum;
    await sleep(runtime, 0);
  }
}

export function createBacklog({ runtime }: Pick<Host, "runtime">, list: List): Backlog {
  let total = 0;
  let measuredAt: ElapsedTime | undefined;
  let measuring: Promise<void> | undefined;

  /** True: the queue is short, and `total` is its sum. */
  function addFirst(): boolean {
    const rows = list(SLICE);
    if (rows.length === SLICE) return false;
    total = rows.reduce((sum, { bytes }) => sum + bytes, 0);
    return true;
  }

  async function addAll(): Promise<void> {
    total = await addUp({ runtime }, list);
    measuredAt = runtime.elapsed();
  }

  function measure(): Promise<void> {
    measuring ??= addAll().finally(() => {
      measuring = undefined;
    });
    return measuring;
  }

  return {
    bytes() {
      const isFresh = measuredAt !== undefined && minus(runtime.elapsed(), measuredAt) < FRESH_MS;
      // If the rows are closed before the sum is done, the sum is not needed any more.
      if (!isFresh && measuring === undefined && !addFirst()) measure().catch(() => {});
      return total;
    },
    measure,
  };
}

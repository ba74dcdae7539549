/**
 * Row time: the clock of the rows. It goes evenly from the first start on, across daemons and boots, however the wall
 * clock is set.
 * - After a boot it goes on where the rows of the last boot end. So nothing counts as older than it is, and a settle
 *   time never ends early.
 * - It stands still while the machine sleeps or is off: nothing could be sent or heard then, and a wait goes on
 *   afterwards.
 * - People count that time too: ages that they see come from `ageOf` (clock-gaps.ts).
 * - All other times that programs and people see, and times compared with those of files, are wall clock.
 * - Row times are written in transactions, and transactions keep the latest row time as a setting.
 */
import { millisecondsOf, minus, type RowTime, rowTime } from "../../lib/clocks.ts";
import type { Runtime } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import { createClockGaps } from "./clock-gaps.ts";

/** A Runtime that also has row time. */
export interface RowClockRuntime extends Runtime {
  /** Row time in whole milliseconds. */
  now(): RowTime;
  /** Milliseconds since this row time, for people: the time that the machine slept or was off is included. */
  ageOf(time: RowTime): number;
}

interface RowClock {
  readonly runtime: RowClockRuntime;
  /** Stores the offset with which the next daemon of this boot goes on. Call it before row times are compared. */
  keep(): void;
}

type Needs = Pick<Metadata<unknown>, "settings" | "times" | "transaction" | "beforeCommit">;

/** A row may be later than the kept "latest" by less than this. The next boot adds it; no boot takes less time. */
const KEPT_MS = 1_000;

/** Row time goes on where the rows of this boot, or of the last one, end. `boot`: the id of this boot. */
export function createRowClock(machine: Runtime, metadata: Needs, boot: string): RowClock {
  const { settings, times, transaction } = metadata;
  const known = parse(settings.get("time"));
  const isKnown = known?.boot === boot;
  const latest = settings.get("latest");
  const begin = latest === undefined ? machine.wallClock() : Number(latest) + KEPT_MS;
  const offset = isKnown ? known.offset : begin - millisecondsOf(machine.elapsed());
  const now = () => rowTime(Math.floor(millisecondsOf(machine.elapsed()) + offset));
  const gaps = createClockGaps(machine, settings, isKnown, now());
  const runtime: RowClockRuntime = {
    ...machine,
    now,
    ageOf: (time) => Math.max(0, minus(now(), time)) + gaps.since(time),
  };
  metadata.beforeCommit(() => {
    const at = now();
    gaps.note(at);
    if (millisecondsOf(at) - settings.getNumber("latest") >= KEPT_MS) settings.set("latest", String(at));
  });
  return {
    runtime,
    keep() {
      if (isKnown) return;
      transaction(() => {
        times.notAfter(runtime.now());
        settings.set("time", JSON.stringify({ boot, offset }));
      });
    },
  };
}

/** `offset`: row time minus the monotonic clock, in that boot. */
function parse(text: string | undefined): { readonly boot: string; readonly offset: number } | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as { boot: string; offset: number });
}

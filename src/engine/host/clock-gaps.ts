/**
 * Clock gaps: the times at which row time stood still, and their lengths. A sleep of the machine is measured by the
 * clock that counts sleep. A time switched off is measured by the wall clock, because no other clock goes on then.
 * Clock gaps are kept in the rows and used only for ages that people see.
 */
import { millisecondsOf, minus, type RowTime, type WallTime } from "../../lib/clocks.ts";
import type { Clock } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";

interface ClockGaps {
  /** Milliseconds that passed since this row time without being counted by row time. */
  since(time: RowTime): number;
  /** Called at the end of each transaction, as a part of it. `now`: row time. */
  note(now: RowTime): void;
}

/** The row time at which a gap was, and its length. */
type Pause = readonly [at: RowTime, milliseconds: number];

interface Kept {
  /** Row time at which this was written. Undefined: it never was. */
  readonly at: RowTime | undefined;
  readonly clock: WallTime;
  /** Milliseconds that the machine had slept between its boot and this write. */
  readonly slept: number;
  readonly list: readonly Pause[];
}

/**
 * A shorter gap is only a difference between two clocks. The kept state is written anew when it is older than this, or
 * when the wall clock has jumped by more.
 */
const LEAST_MS = 1_000;
/** With more gaps than this, the oldest two become one. */
const MOST = 20;

/** `isKnown`: the rows are of this boot of the machine. `now`: the present row time; no row is later. */
export function createClockGaps(
  machine: Pick<Clock, "elapsed" | "uptime" | "wallClock">,
  settings: Metadata<unknown>["settings"],
  isKnown: boolean,
  now: RowTime,
): ClockGaps {
  const slept = () => machine.uptime() - millisecondsOf(machine.elapsed());
  const offset = () => machine.wallClock() - millisecondsOf(machine.elapsed());
  const before = parse(settings.get("pauses"));
  const off = isKnown || before === undefined ? 0 : machine.wallClock() - before.clock;
  let kept: Kept = {
    at: before?.at,
    clock: machine.wallClock(),
    slept: isKnown ? (before?.slept ?? slept()) : slept(),
    list: withPause(before?.list ?? [], [now, off]),
  };
  /** The latest row time seen: no row is later. */
  let latest = now;
  /**
   * The wall clock minus the monotonic clock, at the last write. It jumps when the machine wakes up. As long as it has
   * not jumped, the machine has not slept.
   */
  let knownOffset = offset();

  return {
    since(time) {
      const list = time <= latest ? withPause(kept.list, [latest, slept() - kept.slept]) : kept.list;
      return Math.round(list.reduce((sum, [at, milliseconds]) => (at >= time ? sum + milliseconds : sum), 0));
    },
    note(at) {
      if (kept.at === undefined || minus(at, kept.at) >= LEAST_MS || Math.abs(offset() - knownOffset) >= LEAST_MS) {
        const list = withPause(kept.list, [latest, slept() - kept.slept]);
        kept = { at, clock: machine.wallClock(), slept: slept(), list };
        knownOffset = offset();
        settings.set("pauses", JSON.stringify(kept));
      }
      latest = at;
    },
  };
}

function withPause(list: readonly Pause[], pause: Pause): readonly Pause[] {
  if (pause[1] < LEAST_MS) return list;
  const [first, second, ...others] = list;
  if (list.length < MOST || first === undefined || second === undefined) return [...list, pause];
  return [[first[0], first[1] + second[1]], ...others, pause];
}

function parse(text: string | undefined): Kept | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as Kept);
}

/**
 * When the time of the rows stood still, and for how long: while the machine slept, by what it says itself, and while
 * it was off, by the wall clock, for nothing else went on. Kept with the rows; only for what people are shown.
 */
import type { Clock } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";

export interface ClockGaps {
  /** How much of the time since then, which the rows had, is not in theirs, milliseconds. */
  since(time: number): number;
  /** Part of each transaction, at its end. */
  note(now: number): void;
}

/** The time of the rows at which it was, and how long it took in truth. */
type Pause = readonly [at: number, milliseconds: number];

interface Kept {
  /** When this was written, by the rows and by the wall clock. */
  readonly at: number;
  readonly clock: number;
  /** For how long the machine had slept by then, since it came up. */
  readonly slept: number;
  readonly list: readonly Pause[];
}

/** Shorter ones are what two clocks differ by; what is kept is no older than this when something is written. */
const LEAST_MS = 1_000;
/** When there are more, the oldest two are one. */
const MOST = 20;

/** `isKnown`: the rows are of this boot of the machine. `now`: of the rows, all of which are older. */
export function createClockGaps(
  machine: Pick<Clock, "elapsed" | "uptime" | "wallClock">,
  settings: Metadata<unknown>["settings"],
  isKnown: boolean,
  now: number,
): ClockGaps {
  const slept = () => machine.uptime() - machine.elapsed();
  const offset = () => machine.wallClock() - machine.elapsed();
  const before = parse(settings.get("pauses"));
  const off = isKnown || before === undefined ? 0 : machine.wallClock() - before.clock;
  let kept: Kept = {
    at: before?.at ?? Number.NEGATIVE_INFINITY,
    clock: machine.wallClock(),
    slept: isKnown ? (before?.slept ?? slept()) : slept(),
    list: withPause(before?.list ?? [], [now, off]),
  };
  /** The rows have no later time. */
  let latest = now;
  /** The wall clock jumps when the machine wakes: until it does there is no need to ask how long that slept. */
  let seen = offset();

  return {
    since(time) {
      const list = time <= latest ? withPause(kept.list, [latest, slept() - kept.slept]) : kept.list;
      return Math.round(list.reduce((sum, [at, milliseconds]) => (at >= time ? sum + milliseconds : sum), 0));
    },
    note(at) {
      if (at - kept.at >= LEAST_MS || Math.abs(offset() - seen) >= LEAST_MS) {
        const list = withPause(kept.list, [latest, slept() - kept.slept]);
        kept = { at, clock: machine.wallClock(), slept: slept(), list };
        seen = offset();
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

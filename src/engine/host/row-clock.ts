/**
 * The time of the rows: even from the first start on, whoever sets the wall clock, for all daemons and boots of
 * the machine. A boot goes on where the rows of the one before end, so nothing is held to be older than it is: a
 * settle time never ends early. It stands still while the machine sleeps or is off: nothing could be sent then, or be
 * heard of, and who waits goes on waiting. People count that time too: what they are shown is `ageOf` (pauses.ts).
 * What else is shown to programs and people, and compared with times of files, is of the wall clock. Times of what
 * happened are written in transactions, each of which says how late it is.
 */
import type { Runtime } from "../../lib/runtime.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import { createClockGaps } from "./clock-gaps.ts";

/** A Runtime that knows the time of the rows besides. */
export interface RowClockRuntime extends Runtime {
  /** The time of the rows, whole milliseconds. */
  now(): number;
  /** How long ago that time of the rows was, for people: what the machine slept or was off since counts. */
  ageOf(time: number): number;
}

interface EvenTime {
  readonly runtime: RowClockRuntime;
  /** Writes down what the next daemon of this boot goes on with. To be called before times of rows are compared. */
  keep(): void;
}

type Needs = Pick<Metadata<unknown>, "settings" | "times" | "transaction" | "beforeCommit">;

/** Rows are later than what is kept of how late it is by less than this; a machine takes longer to go down and come up. */
const KEPT_MS = 1_000;

export function createRowClock(machine: Runtime, metadata: Needs, boot: string): EvenTime {
  const { settings, times, transaction } = metadata;
  const known = parse(settings.get("time"));
  const isKnown = known?.boot === boot;
  const latest = settings.get("latest");
  const begin = latest === undefined ? machine.wallClock() : Number(latest) + KEPT_MS;
  const offset = isKnown ? known.offset : begin - machine.elapsed();
  const now = () => Math.floor(machine.elapsed() + offset);
  const pauses = createClockGaps(machine, settings, isKnown, now());
  const runtime: RowClockRuntime = {
    ...machine,
    now,
    ageOf: (time) => Math.max(0, now() - time) + pauses.since(time),
  };
  metadata.beforeCommit(() => {
    const at = now();
    pauses.note(at);
    if (at - settings.getNumber("latest") >= KEPT_MS) settings.set("latest", String(at));
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

/** Even time less the monotonic clock, in that boot. */
function parse(text: string | undefined): { readonly boot: string; readonly offset: number } | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as { boot: string; offset: number });
}

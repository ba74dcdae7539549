/**
 * The time of the rows: what the wall clock showed when this boot of the machine was first met, and even
 * from there on, whoever sets that clock, for all daemons of the boot. How long ago something was and how
 * long it still waits stays true; a settle time never ends early, and nothing waits for an old time to come
 * again. What is shown to programs and people, and compared with times of files, is of the wall clock. While
 * the machine sleeps this time stands still, as timers do.
 */
import type { Runtime } from "../lib/runtime.ts";
import type { Metadata } from "../metadata/metadata.ts";

export interface EvenRuntime extends Runtime {
  /** The time of the rows, whole milliseconds. */
  now(): number;
  /** What somebody who looks at the machine's clock sees. May jump. */
  wallClock(): number;
}

interface EvenTime {
  readonly runtime: EvenRuntime;
  /** Writes down what the next daemon of this boot goes on with. To be called before times of rows are compared. */
  keep(): void;
}

type Needs = Pick<Metadata<unknown>, "settings" | "times" | "transaction">;

export function createEvenTime(machine: Runtime, { settings, times, transaction }: Needs, boot: string): EvenTime {
  const known = parse(settings.get("time"));
  const isKnown = known?.boot === boot;
  const offset = isKnown ? known.offset : machine.now() - machine.elapsed();
  const runtime: EvenRuntime = {
    ...machine,
    now: () => Math.floor(machine.elapsed() + offset),
    wallClock: machine.now,
  };
  return {
    runtime,
    keep() {
      if (isKnown) return;
      transaction(() => {
        // Since the boot before, the wall clock may have been set back.
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

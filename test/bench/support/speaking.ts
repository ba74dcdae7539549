/** A program that says on its output when it is ready. */
import { until } from "../../support/child.ts";
import type { Place } from "../../support/wsfs.ts";

/** It ends with the place. */
export function speaking(place: Place, program: string, args: readonly string[]) {
  const child = place.spawn(program, args);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more: string) => {
      text = (text + more).slice(-10_000);
    });
  }
  return {
    child,
    /** What it printed at the first place in brackets. */
    async said(pattern: RegExp): Promise<string> {
      await until(`${program} says ${pattern}`, () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${text}`);
        return pattern.test(text);
      });
      return pattern.exec(text)?.[1] ?? "";
    },
  };
}

/** What a first look at a big folder costs: nothing is known here, and the gateway is far away. */

import { expectCount, type Tools } from "./local-workloads.ts";
import type { Workload } from "./rounds.ts";
import { NEEDLE, SAMPLE_FILES } from "./sample-tree.ts";
import type { ColdSide } from "./sides.ts";

export const COLD_WORKLOADS = ["find-cold", "grep-cold"] as const;

type Cold = Workload<ColdSide> & { readonly name: (typeof COLD_WORKLOADS)[number] };

/** Milliseconds the gateway waits before each answer. */
export const LATENCY_MS = 20;

export function coldWorkloads({ calls }: Tools): Cold[] {
  const cold = `caches dropped; the mount has an empty state dir and a gateway ${LATENCY_MS} ms away`;
  const linesOf = (text: string) => (text === "" ? 0 : text.split("\n").length);
  return [
    {
      name: "find-cold",
      measures: `find over ${SAMPLE_FILES} files in 20 folders: ${cold}`,
      command: "find DIR -type f",
      unit: "s",
      rounds: 3,
      ready: (side) => side.forget(),
      async measure(side) {
        const { seconds, output } = await calls("run", 0, "find", side.folder, "-type", "f");
        expectCount(linesOf(output), SAMPLE_FILES);
        return seconds;
      },
    },
    {
      name: "grep-cold",
      measures: `grep -r over the same: ${cold}`,
      command: "grep -r WORD DIR",
      unit: "s",
      rounds: 3,
      ready: (side) => side.forget(),
      async measure(side) {
        const { seconds, output } = await calls("run", 0, "grep", "-rl", NEEDLE, side.folder);
        expectCount(linesOf(output), 1);
        return seconds;
      },
    },
  ];
}

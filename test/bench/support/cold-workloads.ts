/** What a first look costs: nothing is known here, and the gateway is far away. */
import { join } from "node:path";
import { BIG_SIZE, type FarContent, MANY_FILES, MANY_FOLDERS } from "./far-content.ts";
import { expectCount, type Tools } from "./local-workloads.ts";
import type { Workload } from "./rounds.ts";
import { NEEDLE, SAMPLE_FILES } from "./sample-tree.ts";
import type { ColdSide } from "./sides.ts";

export const COLD_WORKLOADS = ["find-cold", "find-10k-cold", "grep-cold", "read-512m-cold"] as const;

export interface ColdWorkload extends Workload<ColdSide> {
  readonly name: (typeof COLD_WORKLOADS)[number];
  /** What it looks at. */
  readonly content: FarContent;
}

/** Milliseconds the gateway waits before each answer. */
export const LATENCY_MS = 20;

const COLD = `caches dropped; the mount has an empty state dir and a gateway ${LATENCY_MS} ms away`;
const READ_BLOCK = 128 * 1024;

export function coldWorkloads({ calls }: Tools): ColdWorkload[] {
  const cold = { unit: "s", rounds: 3, ready: (side: ColdSide) => side.forget() } as const;
  const linesOf = (text: string) => (text === "" ? 0 : text.split("\n").length);
  const find = (content: FarContent, files: number) => ({
    content,
    command: "find DIR -type f",
    async measure(side: ColdSide) {
      const { seconds, output } = await calls("run", 0, "find", join(side.folder, content), "-type", "f");
      expectCount(linesOf(output), files);
      return seconds;
    },
  });
  return [
    {
      ...cold,
      ...find("sample", SAMPLE_FILES),
      name: "find-cold",
      measures: `find over ${SAMPLE_FILES} files in 20 folders: ${COLD}`,
    },
    {
      ...cold,
      ...find("many", MANY_FILES),
      name: "find-10k-cold",
      measures: `find over ${MANY_FILES} files in ${MANY_FOLDERS} folders: ${COLD}`,
    },
    {
      ...cold,
      name: "grep-cold",
      content: "sample",
      measures: `grep -r over ${SAMPLE_FILES} files of 0.2 to 8 KB: ${COLD}`,
      command: "grep -r WORD DIR",
      async measure(side) {
        const { seconds, output } = await calls("run", 0, "grep", "-rl", NEEDLE, join(side.folder, "sample"));
        expectCount(linesOf(output), 1);
        return seconds;
      },
    },
    {
      ...cold,
      name: "read-512m-cold",
      content: "big",
      measures: `read of a file of ${BIG_SIZE / 1024 ** 2} MiB: ${COLD}`,
      command: "cat DIR/file",
      async measure(side) {
        const { seconds, count } = await calls("read", join(side.folder, "big"), READ_BLOCK);
        expectCount(count, BIG_SIZE);
        return seconds;
      },
    },
  ];
}

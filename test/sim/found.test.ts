/** Histories in which something once went wrong, as short as they could be made. */
import { test } from "vitest";
import { FEATURE_NAMES } from "../../src/contract/features.ts";
import { type HistoryOptions, playHistory } from "./history.ts";
import type { Step } from "./steps.ts";

interface Found {
  readonly name: string;
  readonly options: HistoryOptions;
  readonly steps: readonly Step[];
}

const FOUND: readonly Found[] = [
  {
    name: "without a journal, a folder made here and there is listed again though no program lists it",
    options: { mounts: 2, seed: 1, lacks: FEATURE_NAMES },
    steps: [
      {
        do: "race",
        programs: [
          { do: "mkdir", path: "d" },
          { do: "mkdir", path: "d" },
        ],
      },
      { do: "run", mount: 1, program: { do: "save", path: "d/a", size: 1 } },
      { do: "wait", ms: 600 },
      { do: "outside", edit: "write", path: "d/a", to: "a" },
    ],
  },
];

test.each(FOUND)("$name", async ({ options, steps }) => {
  await playHistory(steps, options);
});

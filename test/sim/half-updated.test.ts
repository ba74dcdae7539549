/**
 * A linked file is met while its nodes differ: who comes then shows by each name what one node has, and has never shown
 * what the other has still. Whatever he does with either, that is not held against him; of what is newer than all he has
 * shown it is.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { isContentWrite } from "./support/content-write.ts";
import { playHistory } from "./support/history.ts";
import type { Sabotage } from "./support/mount.ts";
import type { Program } from "./support/programs.ts";
import type { Step } from "./support/steps.ts";

/** By their sizes it is told whose a content is. */
const SAVES: readonly (number | undefined)[] = [30, 35];
const SIZE = 40;
/** Enough for the other request to be through. */
const REFUSALS = 5;

const run = (mount: number, program: Program): Step => ({ do: "run", mount, program });

/** Saved so often, each time for one of the two nodes, the latest for the one that is ahead; then the writer is away. */
const saved = (times: number): readonly Step[] => [
  ...SAVES.slice(0, times).flatMap((size = 0): Step[] => [
    run(0, { do: "save", path: "a", size }),
    { do: "wait", ms: 1_500 },
  ]),
  { do: "weather", mount: 0, isOffline: true, latencyMs: 0, faultShare: 0 },
];

const LINKED: readonly Step[] = [
  run(0, { do: "save", path: "a", size: 20 }),
  run(0, { do: "link", path: "a", to: "b" }),
  { do: "wait", ms: 4_000 },
];

const sizeOf = ({ body }: HttpRequest) => (body?.kind === "upload" ? body.content.size : undefined);

/** What the writer sends is refused by one of the nodes until somebody else writes, who gets to `first` before the other. */
function oneByOne(first: "the one ahead" | "the one behind"): Sabotage {
  const took: string[] = [];
  let isOver = false;
  let isThrough = false;
  let refusals = 0;
  return {
    choose(request) {
      const { method, path } = request;
      if (!isContentWrite(request) && method !== "DELETE") return "none";
      const node = path.split("/")[3] ?? "";
      const save = SAVES.indexOf(sizeOf(request));
      if (save >= 0) {
        if (!isOver && took[save] === undefined && !took.includes(node)) took[save] = node;
        return isOver || took[save] === node ? "none" : "failed";
      }
      isOver = took.length > 0;
      const isAhead = node === took.at(-1);
      if (isAhead === (first === "the one ahead")) isThrough = true;
      else if (isOver && !isThrough && refusals < REFUSALS) {
        refusals += 1;
        return "failed";
      }
      return "none";
    },
  };
}

const PROGRAMS: readonly Program[] = [
  { do: "save", path: "a", size: SIZE },
  { do: "unlink", path: "a" },
  { do: "unlink", path: "b" },
  { do: "replace", path: "a", size: SIZE },
  { do: "replace", path: "b", size: SIZE },
  { do: "list", path: "" },
];
const CASES = ([1, 2] as const).flatMap((times) =>
  (["the one ahead", "the one behind"] as const).flatMap((first) =>
    PROGRAMS.map((program) => ({ times, first, program, what: Object.values(program).join(" ") })),
  ),
);

test.each(CASES)("saved $times times, met by $what, $first first: nothing unseen goes", async (it) => {
  const steps = [...LINKED, ...saved(it.times), run(1, it.program), { do: "wait", ms: 30_000 } as const];
  await playHistory(steps, { mounts: 2, seed: 1, sabotage: oneByOne(it.first) });
});

test.each(["the one ahead", "the one behind"] as const)(
  "who has shown only what was before overwrites it, %s first: noticed",
  async (first) => {
    const steps: readonly Step[] = [
      ...LINKED,
      run(1, { do: "read", path: "a" }),
      { do: "lag", path: 8_000, journal: 8_000, id: 0 },
      ...saved(1),
      run(1, { do: "save", path: "a", size: SIZE }),
    ];
    const sabotage = oneByOne(first);
    await playHistory(steps, { mounts: 2, seed: 1, sabotage });
    const unconditional = (request: HttpRequest): HttpRequest => {
      const { "if-match": _, ...headers } = request.headers;
      return isContentWrite(request) ? { ...request, headers } : request;
    };
    const broken = playHistory(steps, {
      mounts: 2,
      seed: 1,
      sabotage: { ...oneByOne(first), request: unconditional },
    });
    await expect(broken).rejects.toThrow(/overwrote .*never showed/);
  },
);

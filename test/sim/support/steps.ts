/** The steps of a history, and how fast-check draws them: few names, so that they meet. */
import fc from "fast-check";
import { describeProgram, type Program } from "./programs.ts";
import { REFUSALS, type Refusal, WITHDRAWABLE, type Withdrawable } from "./transport.ts";

export type Step =
  | { readonly do: "run"; readonly mount: number; readonly program: Program }
  /** At the same time, each on a mount of its own. */
  | { readonly do: "race"; readonly programs: readonly Program[] }
  /** Opens a file and keeps it open; whatever was kept before is closed. */
  | { readonly do: "hold"; readonly mount: number; readonly path: string; readonly write: boolean }
  | { readonly do: "poke"; readonly mount: number; readonly at: number; readonly size: number; readonly sync: boolean }
  | { readonly do: "release"; readonly mount: number }
  | { readonly do: "wait"; readonly ms: number }
  | {
      readonly do: "weather";
      readonly mount: number;
      readonly isOffline: boolean;
      readonly latencyMs: number;
      readonly faultShare: number;
      /** What the gateway refuses for as long as this weather lasts. */
      readonly refusal?: Refusal | undefined;
      /** What the token lacks for as long as this weather lasts. */
      readonly withdrawn?: Withdrawable | undefined;
    }
  | { readonly do: "lag"; readonly path: number; readonly journal: number; readonly id: number }
  /** Dies `ticks` microtasks and `ms` after the program began. */
  | {
      readonly do: "crash";
      readonly mount: number;
      readonly program: Program;
      readonly ticks: number;
      readonly ms: number;
    }
  /**
   * Dies right after the n-th thing that outlives it, or fault point of the engine, that it comes to
   * since the program began; and, if told, once more at such a place while it comes up again.
   */
  | {
      readonly do: "crash at";
      readonly mount: number;
      readonly program: Program;
      readonly place: number;
      readonly again: number | undefined;
    }
  /** "fresh": drained, then mounted again with nothing of its state. */
  | { readonly do: "remount" | "drain" | "drop caches" | "fresh"; readonly mount: number }
  /** The mount's wall clock is set: so far from the gateway's. */
  | { readonly do: "clock"; readonly mount: number; readonly skewMs: number }
  | { readonly do: "restart gateway" }
  /** The gateway dies `ticks` microtasks and `ms` after the program began, and is up again at once. */
  | {
      readonly do: "gateway crash";
      readonly mount: number;
      readonly program: Program;
      readonly ticks: number;
      readonly ms: number;
    }
  | {
      readonly do: "outside";
      readonly edit: "write" | "delete" | "move" | "mkdir" | "chmod" | "replace" | "retype";
      readonly path: string;
      readonly to: string;
    };

const FOLDERS = ["", "d", "e", "d/e"];
const NAMES = ["a", "b", "c"];
const FILES = FOLDERS.flatMap((folder) => NAMES.map((name) => (folder === "" ? name : `${folder}/${name}`)));

/** Mostly a file of the root or of d, so that histories as short as these meet themselves. */
const file = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("a", "b", "d/a", "d/b") },
  { weight: 2, arbitrary: fc.constantFrom(...FILES) },
  { weight: 1, arbitrary: fc.constantFrom("a~", "d/a~", "d", "e") },
);
const folder = fc.constantFrom("d", "d", "e", "d/e", "e/d", "a");
const anyPath = fc.oneof({ weight: 3, arbitrary: file }, { weight: 2, arbitrary: folder });
const size = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 100 }) },
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(5_000, 70_000, 200_000) },
);
const at = fc.constantFrom(0, 0, 3, 60, 4_096);

const program: fc.Arbitrary<Program> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("save" as const), path: file, size }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("overwrite" as const), path: file, at, size }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("append" as const), path: file, size }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("truncate" as const), path: file, size }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("replace" as const), path: file, size }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("backup" as const), path: file, size, keeps: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("recreate" as const), path: file, size }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("unlink" as const), path: file }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("mkdir" as const), path: folder }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rmdir" as const), path: folder }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("symlink" as const), path: file }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("link" as const), path: file, to: file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("retype" as const), path: anyPath, size }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("rename" as const), path: anyPath, to: anyPath }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("exchange" as const), path: anyPath, to: anyPath }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("chmod" as const), path: anyPath, mode: fc.constantFrom(0o600, 0o755) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("utimens" as const),
      path: file,
      seconds: fc.constantFrom(1_000, 1_700_000_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("setxattr" as const), path: anyPath }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("read" as const), path: file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("list" as const), path: fc.constantFrom("", "d", "e") }) },
);

const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

/** A save and its upload come to about so many. */
const PLACES = 40;
const SKEWS = [0, -30_000, 30_000, -3_600_000, 3_600_000];

/** What there is when two mounts begin: nothing, late listings, files both know, a folder both have just made. */
const save = (mount: number, path: string): Step => ({ do: "run", mount, program: { do: "save", path, size: 20 } });
const LATE: Step = { do: "lag", path: 8_000, journal: 5_000, id: 0 };
/** The journal tells of a node, and its id is not found yet. */
const HIDDEN: Step = { do: "lag", path: 0, journal: 0, id: 9_000 };
const KNOWN: readonly Step[] = [
  save(0, "a"),
  { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
  save(0, "d/a"),
  { do: "wait", ms: 4_000 },
  { do: "run", mount: 1, program: { do: "list", path: "" } },
  { do: "run", mount: 1, program: { do: "list", path: "d" } },
];
/** One file of two names. */
const LINKED: readonly Step[] = [
  ...KNOWN,
  { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
  { do: "wait", ms: 4_000 },
  { do: "run", mount: 1, program: { do: "list", path: "" } },
];
const MADE_TWICE: Step = {
  do: "race",
  programs: [
    { do: "mkdir", path: "d" },
    { do: "mkdir", path: "d" },
  ],
};
/** A program merely keeps open for writing what both know; … */
const HELD: readonly Step[] = [...KNOWN, { do: "hold", mount: 1, path: "a", write: true }];
/** … the other mount saves or removes it, and then the program writes to what it has. */
const OVERTAKEN: readonly Step[] = [...HELD, save(0, "a"), { do: "wait", ms: 4_000 }];
const REMOVED: readonly Step[] = [
  ...HELD,
  { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
  { do: "wait", ms: 4_000 },
];
const POKE: Step = { do: "poke", mount: 1, at: 0, size: 60, sync: false };
const BEGINNINGS: readonly (readonly Step[])[] = [
  [],
  [LATE],
  KNOWN,
  [...KNOWN, LATE],
  LINKED,
  [LATE, MADE_TWICE],
  [...HELD, LATE],
  [...OVERTAKEN, POKE],
  [...REMOVED, POKE],
  [...KNOWN, HIDDEN],
  [HIDDEN, MADE_TWICE],
];

export interface StepOptions {
  readonly mounts: number;
  readonly isOutside: boolean;
}

export function stepsOf(
  { mounts, isOutside }: StepOptions,
  lengths: { min: number; max: number },
): fc.Arbitrary<Step[]> {
  const mount = fc.integer({ min: 0, max: mounts - 1 });
  const on = <D extends string>(name: D) => fc.record({ do: fc.constant(name), mount });
  const weather = fc.record({
    do: fc.constant("weather" as const),
    mount,
    isOffline: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    latencyMs: fc.constantFrom(0, 50, 400),
    faultShare: fc.constantFrom(0, 0.1, 0.3, 0.5),
    refusal: seldom(fc.constantFrom(...REFUSALS)),
    withdrawn: seldom(fc.constantFrom(...WITHDRAWABLE)),
  });
  const ms = fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(0, 100, 600, 1_500, 4_000, 12_000, 40_000) },
    { weight: 1, arbitrary: fc.constant(400_000) },
  );
  const clock = fc.record({ do: fc.constant("clock" as const), mount, skewMs: fc.constantFrom(...SKEWS) });
  const death = {
    mount,
    program,
    ticks: fc.integer({ min: 0, max: 120 }),
    ms: fc.constantFrom(0, 0, 30, 700),
  };
  const outside = fc.record({
    do: fc.constant("outside" as const),
    edit: fc.constantFrom(
      "write" as const,
      "write" as const,
      "delete" as const,
      "move" as const,
      "mkdir" as const,
      "chmod" as const,
      "replace" as const,
      "retype" as const,
    ),
    path: anyPath,
    to: anyPath,
  });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 22, arbitrary: fc.record({ do: fc.constant("run" as const), mount, program }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant("wait" as const), ms }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("hold" as const), mount, path: file, write: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("poke" as const), mount, at, size, sync: fc.boolean() }) },
    { weight: 1, arbitrary: on("release") },
    { weight: 4, arbitrary: weather },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("lag" as const),
        path: fc.constantFrom(0, 3_000, 8_000),
        journal: fc.constantFrom(0, 5_000, 2_000),
        id: fc.constantFrom(0, 1_500, 9_000),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("crash" as const), ...death }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("crash at" as const),
        mount,
        program,
        place: fc.integer({ min: 1, max: PLACES }),
        again: seldom(fc.integer({ min: 1, max: PLACES })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("gateway crash" as const), ...death }) },
    { weight: 1, arbitrary: on("remount") },
    { weight: 1, arbitrary: on("fresh") },
    { weight: 1, arbitrary: on("drain") },
    { weight: 1, arbitrary: on("drop caches") },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart gateway" as const) }) },
    { weight: 1, arbitrary: clock },
    ...(isOutside ? [{ weight: 3, arbitrary: outside }] : []),
    ...(mounts > 1
      ? [
          {
            weight: 3,
            arbitrary: fc.record({
              do: fc.constant("race" as const),
              programs: fc.array(program, { minLength: 2, maxLength: mounts, size: "max" }),
            }),
          },
        ]
      : []),
  );
  const own = fc.array(step, { minLength: lengths.min, maxLength: lengths.max, size: "max" });
  return mounts === 1 ? own : fc.tuple(fc.constantFrom(...BEGINNINGS), own).map((parts) => parts.flat());
}

export function describeStep(step: Step, names: readonly string[]): string {
  const on = "mount" in step ? `${names[step.mount]}: ` : "";
  switch (step.do) {
    case "run":
      return `${on}${describeProgram(step.program)}`;
    case "race":
      return step.programs.map((program, index) => `${names[index]}: ${describeProgram(program)}`).join(" | ");
    case "crash":
    case "gateway crash":
      return `${on}${step.do} ${step.ticks} ticks and ${step.ms} ms into: ${describeProgram(step.program)}`;
    case "crash at": {
      const again = step.again === undefined ? "" : `, and at place ${step.again} of its start`;
      return `${on}crash at place ${step.place}${again}: ${describeProgram(step.program)}`;
    }
    default: {
      const { do: name, ...rest } = step;
      const fields = Object.entries(rest).filter(([key, value]) => key !== "mount" && value !== undefined);
      return `${on}${[name, ...fields.map(([key, value]) => `${key}=${value}`)].join(" ")}`;
    }
  }
}

/** Regressions as data: histories that once failed, as short as they could be made. */
import { test } from "vitest";
import { PLAIN, PLAINEST } from "../support/features.ts";
import { type HistoryOptions, playHistory } from "./support/history.ts";
import type { Step } from "./support/steps.ts";

interface Found {
  readonly name: string;
  readonly options: HistoryOptions;
  readonly steps: readonly Step[];
}

/**
 * Saved, then the clock is set back: what waits is not to wait until the old time comes again, nor to count as changed
 * later.
 */
const setBack = (skewMs: number): Step[] => [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 1 } },
  { do: "clock", mount: 0, skewMs },
  { do: "drain", mount: 0 },
];

const TWO_FILES: readonly Step[] = [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "run", mount: 0, program: { do: "save", path: "b", size: 20 } },
  { do: "wait", ms: 12_000 },
];

/** Where only heads can be read. */
const HEADS: Pick<HistoryOptions, "seed" | "features"> = { seed: 1, features: PLAIN };

const save = (mount: number, path: string, size = 20): Step => ({
  do: "run",
  mount,
  program: { do: "save", path, size },
});

const LIST: Step = { do: "run", mount: 1, program: { do: "list", path: "" } };

/** A file in the root and one in a folder, both known to the other mount, which has read neither. */
const IN_A_FOLDER: readonly Step[] = [
  save(0, "a"),
  { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
  save(0, "d/a"),
  { do: "wait", ms: 4_000 },
  LIST,
  { do: "run", mount: 1, program: { do: "list", path: "d" } },
];

/** Known to the other mount, which has read neither name. */
const LINKED: readonly Step[] = [
  save(0, "a"),
  { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
  { do: "wait", ms: 4_000 },
  LIST,
  { do: "wait", ms: 4_000 },
];

/** A file with a name in a folder the other mount has not listed; that one writes it offline by the name it knows. */
const writtenByOneName = (meanwhile: readonly Step[]): readonly Step[] => [
  { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
  save(0, "a"),
  { do: "run", mount: 0, program: { do: "link", path: "a", to: "d/b" } },
  { do: "wait", ms: 4_000 },
  LIST,
  { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
  save(1, "a", 30),
  { do: "wait", ms: 4_000 },
  ...meanwhile,
  { do: "wait", ms: 4_000 },
  { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 0 },
];

/**
 * Written here offline, and open for writing again without a change, when it is heard what was done to it elsewhere.
 */
const drainedWhileOpen = (elsewhere: Step): readonly Step[] => [
  save(0, "a"),
  { do: "wait", ms: 4_000 },
  LIST,
  { do: "weather", mount: 0, isOffline: true, latencyMs: 0, faultShare: 0 },
  save(0, "a", 30),
  { do: "hold", mount: 0, path: "a", write: true },
  elsewhere,
  { do: "wait", ms: 4_000 },
  { do: "weather", mount: 0, isOffline: false, latencyMs: 0, faultShare: 0 },
  { do: "drain", mount: 0 },
];

const FOUND: readonly Found[] = [
  {
    name: "without versions, a file that was never read keeps its node when it is moved away and its name is made again",
    options: { ...HEADS, mounts: 2 },
    steps: [
      save(0, "a"),
      { do: "wait", ms: 4_000 },
      LIST,
      save(0, "a", 30),
      { do: "wait", ms: 600 },
      { do: "run", mount: 1, program: { do: "backup", path: "a", size: 40, keeps: true } },
    ],
  },
  {
    name: "without versions, a file that was never read keeps its node when it is moved to a name that was removed",
    options: { ...HEADS, mounts: 2 },
    steps: [
      save(0, "a"),
      save(0, "b"),
      { do: "wait", ms: 4_000 },
      LIST,
      save(0, "b", 30),
      { do: "wait", ms: 600 },
      { do: "run", mount: 1, program: { do: "unlink", path: "a" } },
      { do: "run", mount: 1, program: { do: "rename", path: "b", to: "a" } },
    ],
  },
  {
    name: "a linked file is listed anew while one of its names is newer: it is looked at again",
    options: { mounts: 2, seed: 2 },
    steps: [
      ...LINKED,
      { do: "run", mount: 0, program: { do: "backup", path: "a", size: 1, keeps: true } },
      save(1, "a", 1),
      { do: "fresh", mount: 0 },
      { do: "run", mount: 0, program: { do: "list", path: "" } },
    ],
  },
  {
    name: "without a journal, a folder made here and there is listed again though no program lists it",
    options: { mounts: 2, seed: 1, features: PLAINEST },
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
  {
    name: "the clock is set back by an hour: a drain sends what was saved before",
    options: { mounts: 2, seed: 1 },
    steps: setBack(-3_600_000),
  },
  {
    name: "the clock is set back by half a minute: a drain sends what was saved before",
    options: { mounts: 2, seed: 1 },
    steps: setBack(-30_000),
  },
  {
    name: "the clock is set back by an hour and the daemon started again: a drain sends what was saved before",
    options: { mounts: 2, seed: 1 },
    steps: [...setBack(-3_600_000).slice(0, 2), { do: "remount", mount: 0 }, { do: "drain", mount: 0 }],
  },
  {
    name: "the clock is set forward by an hour: a node made elsewhere is asked for until its id answers",
    options: { mounts: 2, seed: 1 },
    steps: [
      { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
      { do: "wait", ms: 4_000 },
      { do: "run", mount: 0, program: { do: "list", path: "d" } },
      { do: "lag", path: 0, journal: 0, id: 9_000 },
      { do: "outside", edit: "write", path: "d/c", to: "d" },
      { do: "wait", ms: 4_000 },
      { do: "clock", mount: 0, skewMs: 3_600_000 },
      { do: "wait", ms: 12_000 },
    ],
  },
  {
    name: "refused for longer than lists are late: a file made elsewhere meanwhile is seen when that is over",
    options: { mounts: 2, seed: 1 },
    steps: [
      ...TWO_FILES,
      LIST,
      { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 0, refusal: 403 },
      save(0, "c"),
      { do: "wait", ms: 400_000 },
    ],
  },
  {
    name: "without keys, saved anew while its creation is under way: no conflict with ourselves, though no list shows it yet",
    options: { mounts: 1, seed: 1, features: PLAIN, lag: { path: 3_000, journal: 5_000, id: 0 } },
    steps: [
      save(0, "b", 99),
      { do: "weather", mount: 0, isOffline: false, latencyMs: 50, faultShare: 0.3 },
      { do: "wait", ms: 600 },
      save(0, "b", 1),
    ],
  },
  {
    name: "removed while its creation is under way, which is refused when it is sent again: nothing of it waits",
    options: { mounts: 1, seed: 1 },
    steps: [
      { do: "weather", mount: 0, isOffline: true, latencyMs: 0, faultShare: 0 },
      { do: "run", mount: 0, program: { do: "save", path: "a", size: 1 } },
      { do: "wait", ms: 4_000 },
      { do: "weather", mount: 0, isOffline: false, latencyMs: 0, faultShare: 0, refusal: 403 },
      { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
      { do: "wait", ms: 12_000 },
    ],
  },
  {
    name: "removed, and the deletion refused: it waits until a person retries it",
    options: { mounts: 1, seed: 1 },
    steps: [
      { do: "run", mount: 0, program: { do: "save", path: "a", size: 1 } },
      { do: "wait", ms: 4_000 },
      { do: "weather", mount: 0, isOffline: false, latencyMs: 0, faultShare: 0, refusal: 403 },
      { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
      { do: "wait", ms: 4_000 },
    ],
  },
  {
    name: "created, sent again without a key, and removed meanwhile: the node is ours though no listing shows it, and goes",
    options: { mounts: 1, seed: 5, features: PLAIN, lag: { path: 3_000, journal: 5_000, id: 0 } },
    steps: [
      { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
      { do: "weather", mount: 0, isOffline: false, latencyMs: 50, faultShare: 0 },
      { do: "crash at", mount: 0, program: { do: "mkdir", path: "d" }, place: 1, again: undefined },
      { do: "crash at", mount: 0, program: { do: "rmdir", path: "d" }, place: 2, again: 1 },
    ],
  },
  {
    name: "without versions, a file that takes another's name is fetched before it is replaced at its old one",
    options: { mounts: 2, seed: 1, features: PLAINEST },
    steps: [
      ...TWO_FILES,
      { do: "remount", mount: 1 },
      { do: "run", mount: 1, program: { do: "list", path: "" } },
      {
        do: "race",
        programs: [
          { do: "save", path: "b", size: 0 },
          { do: "rename", path: "b", to: "a" },
        ],
      },
      { do: "wait", ms: 4_000 },
    ],
  },
  {
    name: "linked, then written elsewhere without a time: the new name has the time of that content too",
    options: { mounts: 2, seed: 1 },
    steps: [
      save(0, "a"),
      { do: "wait", ms: 4_000 },
      { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
      { do: "outside", edit: "write", path: "a", to: "b" },
    ],
  },
  {
    name: "in conflict while it is open for writing: a snapshot of it is taken again, though nothing more is written",
    options: { mounts: 2, seed: 1 },
    steps: [
      save(0, "a"),
      save(1, "a", 30),
      { do: "hold", mount: 1, path: "a", write: true },
      { do: "drain", mount: 1 },
    ],
  },
  {
    name: "a linked file written by one name, which was removed elsewhere: what was written is a file of its own",
    options: { mounts: 2, seed: 1 },
    steps: writtenByOneName([{ do: "run", mount: 0, program: { do: "unlink", path: "a" } }, save(0, "d/b", 50)]),
  },
  {
    name: "a linked file written by one name, which another client wrote too: the conflict copy is a file of its own",
    options: { mounts: 2, seed: 1 },
    steps: writtenByOneName([{ do: "outside", edit: "write", path: "a", to: "a" }, save(0, "d/b", 50)]),
  },
  {
    name: "without a journal, a node that an old list shows at the name of a newer file does not wait for it for ever",
    options: { mounts: 2, seed: 1, features: PLAIN },
    steps: [
      LIST,
      { do: "lag", path: 700, journal: 0, id: 0 },
      { do: "wait", ms: 3_500 },
      save(0, "a"),
      { do: "wait", ms: 600 },
      { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
      { do: "wait", ms: 300 },
      save(1, "a", 30),
    ],
  },
  {
    name: "the name of a linked file goes to a new file, its backup is written: the name shows the new file's content",
    options: { mounts: 2, seed: 1 },
    steps: [
      ...LINKED,
      { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
      { do: "run", mount: 0, program: { do: "backup", path: "a", size: 30, keeps: true } },
      { do: "wait", ms: 4_000 },
      save(0, "a~", 40),
      { do: "wait", ms: 4_000 },
      { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 0 },
    ],
  },
  {
    name: "without versions, a file so new that its id is not found yet can be read",
    options: { ...HEADS, mounts: 1 },
    steps: [
      { do: "lag", path: 0, journal: 0, id: 9_000 },
      save(0, "a"),
      { do: "fresh", mount: 0 },
      { do: "run", mount: 0, program: { do: "read", path: "a" } },
    ],
  },
  {
    name: "without revisions, a node made and deleted elsewhere at the name of a file made here does not wait for it",
    options: { mounts: 2, seed: 1, features: PLAIN },
    steps: [
      { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
      { do: "wait", ms: 12_000 },
      LIST,
      { do: "run", mount: 1, program: { do: "list", path: "d" } },
      save(1, "d/a"),
      { do: "hold", mount: 1, path: "d/a", write: true },
      { do: "poke", mount: 1, at: 0, size: 10, sync: false },
      { do: "outside", edit: "mkdir", path: "d/a", to: "a" },
      { do: "wait", ms: 600 },
      { do: "poke", mount: 1, at: 0, size: 10, sync: false },
      { do: "outside", edit: "delete", path: "d/a", to: "a" },
      { do: "wait", ms: 600 },
      { do: "release", mount: 1 },
      { do: "wait", ms: 12_000 },
      { do: "run", mount: 1, program: { do: "unlink", path: "d/a" } },
      { do: "wait", ms: 12_000 },
    ],
  },
  {
    name: "removed elsewhere while a writer has it open: a drain does not wait for the writer",
    options: { mounts: 2, seed: 1 },
    steps: drainedWhileOpen({ do: "run", mount: 1, program: { do: "unlink", path: "a" } }),
  },
  {
    name: "written elsewhere while a writer has it open: a drain does not wait for the writer",
    options: { mounts: 2, seed: 1 },
    steps: drainedWhileOpen(save(1, "a", 40)),
  },
  {
    name: "one name of a linked file is being deleted while the other gives its node away: the content becomes no version of the node that goes",
    options: { mounts: 2, seed: 1 },
    steps: [
      save(0, "a"),
      { do: "wait", ms: 4_000 },
      LIST,
      { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
      { do: "wait", ms: 4_000 },
      LIST,
      { do: "weather", mount: 1, isOffline: false, latencyMs: 50, faultShare: 0, withdrawn: "node.file.delete" },
      { do: "crash at", mount: 1, place: 3, again: 20, program: { do: "retype", path: "a", size: 0 } },
      { do: "run", mount: 1, program: { do: "backup", path: "b", size: 1, keeps: true } },
    ],
  },
  {
    name: "one name of a linked file is being deleted while a writer has it open and the other gives its node away: the same",
    options: { mounts: 2, seed: 1 },
    steps: [
      ...LINKED,
      { do: "hold", mount: 1, path: "a", write: true },
      { do: "run", mount: 1, program: { do: "unlink", path: "a" } },
      { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
      { do: "wait", ms: 4_000 },
      { do: "run", mount: 1, program: { do: "rename", path: "b", to: "c" } },
      save(1, "b", 1),
    ],
  },
  {
    name: "without revisions, a read that was asked for before a write of ours was answered is not news",
    options: { mounts: 2, seed: 28_760, features: PLAIN },
    steps: [
      ...IN_A_FOLDER,
      { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
      save(1, "a"),
      { do: "run", mount: 0, program: { do: "rename", path: "a", to: "d/b" } },
      { do: "remount", mount: 0 },
    ],
  },
  {
    name: "a node that is reported to be gone takes no new file while its deletion waits to be settled",
    options: { mounts: 2, seed: 1, features: PLAIN },
    steps: [
      ...IN_A_FOLDER,
      { do: "lag", path: 8_000, journal: 5_000, id: 0 },
      { do: "gateway crash", mount: 0, ticks: 0, ms: 0, program: { do: "replace", path: "b", size: 1 } },
      { do: "drain", mount: 0 },
      { do: "crash at", mount: 1, place: 16, again: 1_000, program: { do: "unlink", path: "b" } },
      { do: "wait", ms: 8_000 },
      save(1, "b", 1),
    ],
  },
  {
    name: "a refused scope is tried again by a request that has no answer for minutes: a drain waits for that",
    options: { mounts: 2, seed: 1, features: PLAIN },
    steps: [
      ...IN_A_FOLDER,
      { do: "lag", path: 8_000, journal: 5_000, id: 0 },
      { do: "weather", mount: 0, isOffline: false, latencyMs: 0, faultShare: 0, withdrawn: "node.node.update" },
      { do: "run", mount: 0, program: { do: "backup", path: "d/a", size: 1, keeps: false } },
      { do: "wait", ms: 4_000 },
      { do: "clock", mount: 0, skewMs: 0 },
      { do: "run", mount: 0, program: { do: "append", path: "a", size: 5_000 } },
      { do: "wait", ms: 12_000 },
      { do: "run", mount: 1, program: { do: "unlink", path: "d/a" } },
      { do: "drain", mount: 0 },
    ],
  },
  {
    name: "back after hours with a token that has expired: the refusal says that the gateway is there, and no program gives up",
    options: { mounts: 3, seed: 1 },
    steps: [
      { do: "weather", mount: 2, isOffline: true, latencyMs: 0, faultShare: 0, refusal: 401 },
      { do: "wait", ms: 400_000 },
      { do: "run", mount: 2, program: { do: "replace", path: "a", size: 1 } },
      { do: "wait", ms: 0 },
      { do: "weather", mount: 2, isOffline: false, latencyMs: 400, faultShare: 0 },
      { do: "wait", ms: 0 },
      { do: "run", mount: 2, program: { do: "rename", path: "d", to: "a" } },
      { do: "restart gateway" },
    ],
  },
  {
    name: "two files deleted elsewhere, of which one waits for the other: both deletions are noticed at the same time",
    options: { mounts: 2, seed: 182_164, features: PLAIN },
    steps: [
      ...IN_A_FOLDER,
      { do: "crash", mount: 0, ticks: 0, ms: 30, program: { do: "save", path: "a", size: 0 } },
      { do: "run", mount: 0, program: { do: "rename", path: "a", to: "d/a" } },
      { do: "outside", edit: "delete", path: "d/a", to: "a" },
      { do: "run", mount: 0, program: { do: "rename", path: "a~", to: "a" } },
      { do: "run", mount: 0, program: { do: "list", path: "" } },
      save(0, "a", 1),
      { do: "run", mount: 0, program: { do: "rmdir", path: "d" } },
      { do: "outside", edit: "delete", path: "a", to: "a" },
    ],
  },
  {
    name: "a linked symlink becomes a file, and a third mount sees it when its content is there and its type is not yet gone",
    options: { mounts: 3, seed: 1_048_575 },
    steps: [
      { do: "lag", path: 8_000, journal: 5_000, id: 0 },
      {
        do: "race",
        programs: [
          { do: "mkdir", path: "d" },
          { do: "mkdir", path: "d" },
        ],
      },
      { do: "wait", ms: 12_000 },
      { do: "crash", mount: 1, ticks: 0, ms: 700, program: { do: "symlink", path: "d/a" } },
      {
        do: "race",
        programs: [
          { do: "link", path: "a~", to: "a" },
          { do: "unlink", path: "d/a" },
        ],
      },
      {
        do: "race",
        programs: [
          { do: "unlink", path: "a" },
          { do: "save", path: "d/b", size: 1 },
          { do: "rename", path: "a", to: "d" },
        ],
      },
      {
        do: "race",
        programs: [
          { do: "backup", path: "a", size: 1, keeps: false },
          { do: "mkdir", path: "d" },
          { do: "save", path: "d/a", size: 1 },
        ],
      },
      { do: "run", mount: 1, program: { do: "link", path: "d/b", to: "d/a" } },
      { do: "wait", ms: 1_500 },
      { do: "remount", mount: 0 },
      {
        do: "race",
        programs: [
          { do: "backup", path: "a", size: 1, keeps: false },
          { do: "rename", path: "a", to: "a" },
        ],
      },
      { do: "run", mount: 1, program: { do: "append", path: "d/a", size: 200_000 } },
      {
        do: "weather",
        mount: 2,
        isOffline: false,
        latencyMs: 0,
        faultShare: 0.5,
        withdrawn: "node.file.read",
      },
      { do: "drain", mount: 2 },
    ],
  },
];

test.each(FOUND.map((found): [string, Found] => [found.name, found]))("%s", async (_, { options, steps }) => {
  await playHistory(steps, options);
});

/** The scripts of the crash matrix: between them every change a program, the gateway and the cache can make. */
import type { Script } from "./crash-run.ts";

const LAG = { path: 3_000, journal: 5_000, id: 0 };
const QUIET = { do: "wait", ms: 4_000 } as const;
const SETTLE = { do: "drain" } as const;
const LARGE = 200_000;
/** Fetched in more than one piece. */
const VERY_LARGE = 1_200_000;

const SERVED: readonly Script[] = [
  {
    name: "make",
    lag: LAG,
    steps: [
      { do: "mkdir", path: "d" },
      { do: "save", path: "d/a", size: 40 },
      { do: "symlink", path: "l" },
      { do: "save", path: "empty", size: 0 },
      QUIET,
    ],
  },
  {
    name: "change",
    fault: { request: 2, what: "lost-after" },
    steps: [
      { do: "save", path: "a", size: 5_000 },
      SETTLE,
      { do: "overwrite", path: "a", at: 60, size: 40 },
      { do: "append", path: "a", size: 40 },
      QUIET,
      { do: "truncate", path: "a", size: 30 },
      { do: "chmod", path: "a", mode: 0o600 },
      { do: "utimens", path: "a", seconds: 1_000 },
      QUIET,
      { do: "setxattr", path: "a" },
      { do: "truncate", path: "a", size: 0 },
      QUIET,
    ],
  },
  {
    name: "save",
    lag: LAG,
    steps: [
      { do: "save", path: "a", size: 40 },
      SETTLE,
      { do: "replace", path: "a", size: 50 },
      QUIET,
      { do: "backup", path: "a", size: 60, keeps: true },
      QUIET,
      { do: "backup", path: "a", size: 70, keeps: false },
      { do: "recreate", path: "a", size: 80 },
      QUIET,
    ],
  },
  {
    name: "move and remove",
    steps: [
      { do: "mkdir", path: "d" },
      { do: "mkdir", path: "e" },
      { do: "save", path: "d/a", size: 40 },
      { do: "save", path: "b", size: 41 },
      SETTLE,
      { do: "rename", path: "d/a", to: "e/a" },
      QUIET,
      { do: "rename", path: "b", to: "e/a" },
      { do: "rename", path: "d", to: "e/d" },
      QUIET,
      { do: "unlink", path: "e/a" },
      { do: "rmdir", path: "e/d" },
      QUIET,
      { do: "rmdir", path: "e" },
      QUIET,
    ],
  },
  {
    name: "rings and links",
    steps: [
      { do: "save", path: "a", size: 40 },
      { do: "save", path: "b", size: 41 },
      { do: "mkdir", path: "d" },
      { do: "mkdir", path: "e" },
      { do: "mkdir", path: "f" },
      SETTLE,
      { do: "rename", path: "d", to: "t" },
      { do: "rename", path: "e", to: "d" },
      { do: "rename", path: "f", to: "e" },
      { do: "rename", path: "t", to: "f" },
      { do: "exchange", path: "a", to: "b" },
      QUIET,
      { do: "link", path: "a", to: "d/c" },
      QUIET,
      { do: "save", path: "a", size: 50 },
      QUIET,
      { do: "unlink", path: "a" },
      QUIET,
    ],
  },
  {
    name: "stay open",
    steps: [
      { do: "save", path: "a", size: 5_000 },
      SETTLE,
      { do: "hold", path: "a" },
      { do: "poke", at: 60, size: 40, sync: false },
      { do: "wait", ms: 40_000 },
      { do: "poke", at: 0, size: 70, sync: true },
      { do: "wait", ms: 5_000 },
      SETTLE,
      { do: "release" },
      QUIET,
    ],
  },
  {
    name: "again and again",
    latencyMs: 3_000,
    steps: [
      { do: "save", path: "a", size: LARGE },
      { do: "wait", ms: 800 },
      { do: "overwrite", path: "a", at: 60, size: 40 },
      { do: "wait", ms: 800 },
      { do: "overwrite", path: "a", at: 3, size: 40 },
      { do: "wait", ms: 800 },
      { do: "overwrite", path: "a", at: 30, size: 40 },
      { do: "remount" },
      { do: "overwrite", path: "a", at: 4_096, size: 40 },
      QUIET,
    ],
  },
  {
    name: "come in",
    isShared: true,
    before: [
      { do: "outside", edit: "mkdir", path: "g", to: "" },
      { do: "outside", edit: "write", path: "g/y", to: "" },
    ],
    lag: LAG,
    steps: [
      { do: "save", path: "a", size: 40 },
      { do: "mkdir", path: "d" },
      { do: "save", path: "d/b", size: 40 },
      SETTLE,
      { do: "outside", edit: "write", path: "a", to: "" },
      { do: "outside", edit: "chmod", path: "d/b", to: "" },
      { do: "wait", ms: 8_000 },
      { do: "list", path: "g" },
      { do: "read", path: "a" },
      { do: "outside", edit: "move", path: "d/b", to: "c" },
      { do: "outside", edit: "mkdir", path: "f", to: "" },
      { do: "wait", ms: 8_000 },
      { do: "list", path: "" },
      { do: "list", path: "f" },
      { do: "outside", edit: "delete", path: "a", to: "" },
      { do: "wait", ms: 8_000 },
    ],
  },
  {
    name: "meet",
    isShared: true,
    lag: LAG,
    steps: [
      { do: "save", path: "a", size: 40 },
      { do: "save", path: "b", size: 40 },
      { do: "mkdir", path: "d" },
      SETTLE,
      { do: "save", path: "a", size: 50 },
      { do: "outside", edit: "write", path: "a", to: "" },
      { do: "save", path: "d/c", size: 50 },
      { do: "outside", edit: "delete", path: "d", to: "" },
      { do: "unlink", path: "b" },
      { do: "outside", edit: "write", path: "b", to: "" },
      { do: "wait", ms: 12_000 },
    ],
  },
  {
    name: "fetch and evict",
    cacheLimit: LARGE,
    steps: [
      { do: "save", path: "a", size: LARGE },
      { do: "save", path: "b", size: LARGE },
      { do: "save", path: "c", size: VERY_LARGE },
      SETTLE,
      { do: "wait", ms: 5_000 },
      { do: "read", path: "a" },
      { do: "wait", ms: 5_000 },
      { do: "read", path: "c" },
      { do: "wait", ms: 5_000 },
      { do: "read", path: "b" },
      { do: "wait", ms: 5_000 },
      { do: "overwrite", path: "a", at: 60, size: 40 },
      { do: "truncate", path: "b", size: 100 },
      QUIET,
    ],
  },
];

/** Those that change bytes in place. */
const WRITERS = new Set(["change", "stay open", "again and again"]);

/** The writers' once more, with the kernel writing by itself. */
export const SCRIPTS: readonly Script[] = SERVED.flatMap((script) =>
  WRITERS.has(script.name) ? [script, { ...script, name: `${script.name}, passed on`, isPassing: true }] : [script],
);

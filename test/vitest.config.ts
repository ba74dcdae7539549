/**
 * How the tests run: first what starts programs or listens, then what is done within one process, at last
 * what serves a mount. The files of a kind share a few processes, as to load and warm up what they test takes longer than
 * most of them run. A file in ALONE has a process of its own. What is done within one process keeps a processor busy, so as
 * many of these files run at a time as there are processors; the others mostly wait, for processes, disks and clocks, and more
 * of them keep two processors busy. A mount test has several processes at work: six files at a time made each wait longer, on
 * a slow machine longer than it may. Of each kind the files that take long come first, so that none of them is left alone
 * at the end. Nothing is retried: a test that fails sometimes is a failure.
 *
 * `npm test -- --fast` (WSFS_TESTS=fast) runs the inward ones, of those in LONG only the few in FAST, and of each other kind
 * the few in FAST. A new file needs no entry anywhere: it is of a kind by its folder.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type InlineConfig, type TestSpecification } from "vitest/node";

const MOUNT_TESTS = "test/mount/**/*.test.ts";
const INWARD_TESTS = "test/{contract,fuse,fuse-native,lib,metadata,sim,engine}/**/*.test.ts";

/** In this order. */
const KINDS = ["alone", "outward", "inward", "mount"];

/** These files count timers and memory of their process, or give the files they import another transport. */
const ALONE = ["client/on-a-thread", "client/transfers"];

/** The subject of each is held within some seconds; the inward ones take longer, and no other file has their subject. */
const FAST = {
  outward: [
    "architecture",
    "client/operations",
    "client/profile",
    "client/sdk/retry",
    "content/disk-files",
    "content/source",
    "content/state-lock",
    "daemon/control",
    "daemon/handle-file",
    "daemon/supervisor-link",
    "gateway/bare",
    "gateway/malformed",
    "gateway/nodes",
    "gateway/uploads",
    "native/device",
    "native/fast-path",
    "native/refusals",
    "native/replayer",
    "native/system-calls",
  ],
  inward: ["sim/in-doubt", "sim/links", "sim/open-files"],
  mount: ["mount/turns"],
};

/**
 * Below test/. A fresh clone knows no times, and vitest would go by the size of the files, which says little here. Of the
 * outward ones, those that mostly wait and those that keep a processor busy take turns.
 */
const LONG = [
  "cli/service",
  "cli/sign-in-pages",
  "native/supervisor-reload-trial",
  "gateway/engines/processes",
  "cli/history-versions",
  "client/package",
  "native/supervisor-restart",
  "gateway/crash",
  "cli/history-shown",
  "client/generated",
  "cli/history-past",
  "gateway/safety",
  "native/supervisor-starved",
  "gateway/contract",
  "client/login/stores",
  "gateway/engines/kills",
  "cli/service-user",
  "gateway/retention/prune-property",
  "native/supervisor",
  "client/login/login",
  "gateway/triggers/served",
  "gateway/accounts/first-owner",
  "cli/gateway-retention",
  "gateway/node-stream",
  "cli/bin",
  "gateway/http",
  "client/readme",
  "gateway/pages",
  "cli/history-undo-any",
  "gateway/restore-tree",
  "fuzz/targets",
  "gateway/contract-accounts",
  "cli/gateway-engine",
  "gateway/paging",
  "cli/history-thinned",
  "gateway/retention/backup",
  "cli/gateway-log",
  "gateway/accounts/accounts",
  "daemon/open-metadata",
  "gateway/access",
  "client/sdk/operations",
  "gateway/unix-listener",
  "client/thread-transport",
  "client/sdk/follow",
  "sim/histories",
  "sim/in-doubt",
  "sim/crash",
  "sim/conflicts",
  "sim/links",
  "sim/support/harness",
  "metadata/commit-log",
  "sim/rollback",
  "sim/open-files",
  "sim/past",
  "sim/disk",
  "engine/sync/plan-property",
  "engine/files/fast-path",
  "engine/files/bytes-property",
  "engine/ops/readdir",
  "lib/code-cache",
  "metadata/folder-counts",
  "mount/cases",
  "mount/bare",
  "mount/login",
  "mount/reload-trouble",
  "mount/watchers",
  "mount/secrets",
  "mount/installed",
  "mount/fuse-native",
  "mount/environment",
  "mount/ordinary-user",
  "mount/start-account",
  "mount/own-gateway",
  "mount/lag",
  "mount/odd-machine",
  "mount/main-job",
  "mount/restart",
  "mount/never-hang",
  "mount/crash-supervisor",
  "mount/crash",
  "mount/commands",
  "mount/saves",
  "mount/views",
  "mount/passthrough",
  "mount/disk-full",
  "mount/moves",
  "mount/crash-steps",
  "mount/keyring",
];

for (const name of [...ALONE, ...LONG, ...Object.values(FAST).flat()]) {
  if (!existsSync(new URL(`${name}.test.ts`, import.meta.url))) throw new Error(`there is no test/${name}.test.ts`);
}

const pathOf = (name: string) => `test/${name}.test.ts`;
const asked = process.env.WSFS_TESTS ?? "all";
if (!["all", "fast"].includes(asked)) throw new Error(`WSFS_TESTS: expected "fast" or nothing, got "${asked}"`);
/** Of a kind: these files, or the few that are fast. */
const files = (all: string, fast: readonly string[]) => (asked === "fast" ? fast.map(pathOf) : [all]);

/** The rest of the files of a kind in vitest's own order. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONG.findIndex((name) => moduleId.endsWith(`/${pathOf(name)}`));
      return KINDS.indexOf(project.name) * (LONG.length + 1) + (place < 0 ? LONG.length : place);
    };
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}

/** In MB. Tests of engine and gateway make garbage by the gigabyte. V8 would collect it after each megabyte or so. */
const ROOM_FOR_GARBAGE = ["--min-semi-space-size=16", "--max-semi-space-size=64"];

/** `workers`: files at a time; kinds of the same order share them. */
function kind(
  name: string,
  order: number,
  workers: number,
  timeout: number,
  which: Pick<InlineConfig, "include" | "exclude" | "isolate" | "execArgv">,
) {
  const limits = { isolate: false, maxWorkers: workers, testTimeout: timeout, hookTimeout: timeout };
  return { extends: true as const, test: { name, ...limits, ...which, sequence: { groupOrder: order } } };
}

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    pool: "forks",
    retry: 0,
    sequence: { sequencer: LongestFirst },
    projects: [
      kind("alone", 0, 4, 60_000, { include: asked === "fast" ? [] : ALONE.map(pathOf), isolate: true }),
      kind("outward", 0, 4, 60_000, {
        include: files("test/**/*.test.ts", FAST.outward),
        exclude: [MOUNT_TESTS, INWARD_TESTS, ...ALONE.map(pathOf)],
        execArgv: ROOM_FOR_GARBAGE,
      }),
      kind("inward", 1, 2, 120_000, {
        include: [INWARD_TESTS],
        exclude: asked === "fast" ? LONG.filter((name) => !FAST.inward.includes(name)).map(pathOf) : [],
        execArgv: ROOM_FOR_GARBAGE,
      }),
      kind("mount", 2, 4, 300_000, { include: files(MOUNT_TESTS, FAST.mount) }),
    ],
  },
});

/**
 * How the tests run: two files at a time; first what starts programs or listens, each file in a
 * process of its own, then what is done within one process, at last what serves a mount. Files of the
 * second kind share two processes: they touch nothing outside of them, and to load and warm up the
 * engine takes longer than most of them run. Nothing is retried: a test that fails sometimes is a failure.
 */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const MOUNT_TESTS = "test/mount/**/*.test.ts";
const INWARD_TESTS = "test/{contract,fuse,fuse-native,lib,metadata,sim,vfs}/**/*.test.ts";

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    pool: "forks",
    retry: 0,
    projects: [
      {
        extends: true,
        test: {
          name: "outward",
          include: ["test/**/*.test.ts"],
          exclude: [MOUNT_TESTS, INWARD_TESTS],
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "inward",
          include: [INWARD_TESTS],
          isolate: false,
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "mount",
          include: [MOUNT_TESTS],
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});

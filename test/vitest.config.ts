/**
 * How the tests run: everything in processes of its own, two files at a time; then, one by one,
 * what serves a mount. The simulation's files share two processes: they touch nothing outside of
 * them, and to load and warm up the engine takes longer than most of them run. Nothing is retried:
 * a test that fails sometimes is a failure.
 */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const MOUNT_TESTS = "test/mount/**/*.test.ts";
const SIMULATION_TESTS = "test/sim/**/*.test.ts";

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    pool: "forks",
    retry: 0,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [MOUNT_TESTS, SIMULATION_TESTS],
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "simulation",
          include: [SIMULATION_TESTS],
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
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});

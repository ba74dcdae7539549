/**
 * The ends of threads and processes that use the addon: a thread of its own may outlive the worker
 * that started it, and must never return into memory that is no longer code.
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { run } from "../support/child.ts";

const addonPath = join(import.meta.dirname, "../../native/build/Release/wsfs.node");

/** Node 20 runs no TypeScript: a script for a child process, which uses the addon itself. */
const notify = `
  const addon = require(${JSON.stringify(addonPath)});
  const [first, second] = addon.socketPair(0);
  const device = addon.openDevice(first, 1 << 20, () => {}, () => {});
  addon.deviceResume(addon.openDevice(second, 1 << 20, () => {}, () => {}));
  for (let i = 0; i < 500; i++) addon.deviceNotify(device, i % 2, Buffer.alloc(100));
`;

async function runScript(script: string): Promise<void> {
  const { code, signal, stderr } = await run(process.execPath, ["-e", script], { timeoutMs: 60_000 });
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: "" });
}

const workers = (count: number, script: string, between = "") => `
  const { Worker } = require("node:worker_threads");
  const { once } = require("node:events");
  (async () => {
    for (let i = 0; i < ${count}; i++) {
      await once(new Worker(${JSON.stringify(script)}, { eval: true, workerData: i }), "exit");
      ${between}
    }
  })();
`;

describe("the addon", () => {
  it("stays in memory when the only worker that loaded it has ended, and is loaded by the next one", async () => {
    const check = `
      const mapped = require("node:fs").readFileSync("/proc/self/maps", "utf8").includes("wsfs.node");
      if (!mapped) throw new Error("the addon was unloaded");
    `;
    await runScript(workers(3, `require(${JSON.stringify(addonPath)})`, check));
  });

  it("outlives 120 workers that end in the middle of notifications", async () => {
    // Some end while threads start, some while they write, some when all is written.
    const end = `setTimeout(() => process.exit(), require("node:worker_threads").workerData % 6);`;
    await runScript(workers(60, notify + end));
    await runScript(workers(60, notify + end));
  });

  it("lets a process end in the middle of notifications", async () => {
    for (let i = 0; i < 10; i++) await runScript(`${notify} setTimeout(() => process.exit(), ${i % 4});`);
  });
});

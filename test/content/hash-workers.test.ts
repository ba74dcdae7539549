import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HASH_WORKER } from "../../src/content/hash-worker.ts";
import { createHashWorkers, type HashWorkers } from "../../src/content/hash-workers.ts";
import { pattern } from "../support/files-cases.ts";

let root: string;
let path: string;
let workers: HashWorkers;
const bytes = pattern(8 << 20);
const expected = { hash: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };

beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "wsfs-hash-"));
  path = join(root, "file");
  fs.writeFileSync(path, bytes);
  workers = createHashWorkers(1);
});
afterEach(async () => {
  await workers.close();
  fs.rmSync(root, { recursive: true });
});

test("files wait for a free thread, and all are hashed", async () => {
  const hashes = await Promise.all(Array.from({ length: 5 }, () => workers.hash(path)));
  expect(hashes).toEqual(Array.from({ length: 5 }, () => expected));
});

test("a missing file does not harm the next", async () => {
  const [missing, next] = await Promise.allSettled([workers.hash(`${path}-`), workers.hash(path)]);
  expect(missing).toMatchObject({ reason: { code: "ENOENT", path: `${path}-`, syscall: "open" } });
  expect(next).toMatchObject({ value: expected });
});

test("one that waits is aborted without its turn, one at work at once; the thread goes on", async () => {
  const first = new AbortController();
  const second = new AbortController();
  const hashing = workers.hash(path, first.signal);
  const waiting = workers.hash(path, second.signal);
  const last = workers.hash(path);
  second.abort(new Error("second"));
  await expect(waiting).rejects.toThrow("second");
  first.abort(new Error("first"));
  await expect(hashing).rejects.toThrow("first");
  expect(await last).toEqual(expected);
});

test("closing rejects what is not finished and what comes later", async () => {
  const settled = Promise.allSettled([workers.hash(path), workers.hash(path)]);
  await workers.close();
  for (const each of await settled)
    expect(each).toMatchObject({ reason: { message: expect.stringContaining("closed") } });
  await expect(workers.hash(path)).rejects.toThrow("closed");
});

test("the JS thread goes on while a big file is hashed", async () => {
  await workers.hash(path);
  let turns = 0;
  let hashing = true;
  const done = workers.hash(path).finally(() => {
    hashing = false;
  });
  while (hashing) {
    turns++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await done).toEqual(expected);
  // Hashing here would leave one or two.
  expect(turns).toBeGreaterThan(5);
});

test("an idle thread lets the process end, a working one does not", () => {
  const program = `
    const { Worker } = require("node:worker_threads");
    const worker = new Worker(${JSON.stringify(HASH_WORKER)}, { eval: true, execArgv: [], env: {} });
    worker.on("message", ({ hash }) => { console.log(hash); worker.unref(); });
    worker.postMessage({ path: ${JSON.stringify(path)}, stop: new SharedArrayBuffer(4) });
  `;
  const child = spawnSync(process.execPath, ["-e", program], { encoding: "utf8", timeout: 30_000 });
  expect(child).toMatchObject({ status: 0, stdout: `${expected.hash}\n` });
});

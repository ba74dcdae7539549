import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
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

test("one that waits and one at work are aborted at once, and the thread goes on", async () => {
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

test("a thread told to stop does not read on to the end", async () => {
  // 256 GiB of nothing: minutes, if it were read.
  fs.truncateSync(path, 2 ** 38);
  fs.writeFileSync(`${path}2`, bytes);
  const controllers = [new AbortController(), new AbortController()];
  const hashing = Promise.allSettled(controllers.map(({ signal }) => workers.hash(path, signal)));
  const next = workers.hash(`${path}2`);
  for (const controller of controllers) controller.abort();
  expect(await next).toEqual(expected);
  expect((await hashing).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

test("closing rejects what is not finished and what comes later", async () => {
  const settled = Promise.allSettled([workers.hash(path), workers.hash(path)]);
  await workers.close();
  for (const each of await settled)
    expect(each).toMatchObject({ reason: { message: expect.stringContaining("closed") } });
  await expect(workers.hash(path)).rejects.toThrow("closed");
});

test("the JS thread goes on while a big file is hashed", async () => {
  // 16 GiB of nothing take seconds to hash. Hashed here, they would leave one or two turns.
  fs.truncateSync(path, 2 ** 34);
  const controller = new AbortController();
  let isHashing = true;
  const hashing = workers.hash(path, controller.signal).finally(() => {
    isHashing = false;
  });
  hashing.catch(() => {});
  for (let turns = 0; turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(isHashing).toBe(true);
  controller.abort(new Error("enough"));
  await expect(hashing).rejects.toThrow("enough");
});

test("compiled to JavaScript, a thread at work keeps the process alive, an idle one lets it end", () => {
  fs.writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  const options = ["--target", "es2023", "--module", "nodenext", "--types", "node", "--skipLibCheck"];
  const compiled = spawnSync(
    "node_modules/.bin/tsc",
    [
      "--ignoreConfig",
      ...options,
      "--rewriteRelativeImportExtensions",
      "--outDir",
      root,
      "src/content/hash-workers.ts",
    ],
    { encoding: "utf8" },
  );
  expect(compiled.stdout).toBe("");
  // Nothing else is open, and nobody calls close().
  const program = `
    import { createHashWorkers } from "./content/hash-workers.js";
    const workers = createHashWorkers();
    console.log((await workers.hash(process.argv[2])).hash);
    console.log((await workers.beginHash(process.argv[2]).finish()).hash);
    workers.beginHash(process.argv[2]).reach(2 ** 23);
  `;
  fs.writeFileSync(join(root, "main.js"), program);
  const child = spawnSync(process.execPath, [join(root, "main.js"), path], { encoding: "utf8", timeout: 20_000 });
  expect(child).toMatchObject({ status: 0, stdout: `${expected.hash}\n${expected.hash}\n` });
}, 60_000);

/** Resolves when the thread of running hashes has done all that it was told before. */
async function steps(): Promise<void> {
  await workers.beginHash(path).finish();
}

const isOpen = (file: string) =>
  fs.readdirSync("/proc/self/fd").some((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      // The descriptor of this very list.
      return false;
    }
  });

test("a running hash has read what it was told of, and reads nothing of it again", async () => {
  const grown = join(root, "grown");
  fs.writeFileSync(grown, bytes.subarray(0, 5 << 20));
  const running = workers.beginHash(grown);
  running.reach(1 << 20);
  running.reach(5 << 20);
  await steps();
  fs.writeFileSync(grown, Buffer.concat([Buffer.alloc(5 << 20), bytes.subarray(5 << 20)]));
  expect(await running.finish()).toEqual(expected);
  expect(isOpen(grown)).toBe(false);
});

test("of several running hashes each has its own file, and one that is cancelled leaves it", async () => {
  const paths = [0, 1, 2].map((index) => join(root, `${index}`));
  const contents = paths.map((_, index) => pattern(8 << 20, index));
  for (const [index, each] of paths.entries()) fs.writeFileSync(each, contents[index] ?? "");
  const [a, b, c] = paths.map((each) => workers.beginHash(each));
  for (const end of [4 << 20, 8 << 20]) for (const each of [a, b, c]) each?.reach(end);
  await steps();
  expect(isOpen(paths[1] ?? "")).toBe(true);
  b?.cancel();
  const hashes = await Promise.all([a?.finish(), c?.finish()]);
  expect(hashes.map((each) => each?.hash)).toEqual(
    [0, 2].map((index) =>
      createHash("sha256")
        .update(contents[index] ?? "")
        .digest("hex"),
    ),
  );
  expect(paths.some(isOpen)).toBe(false);
});

test("a running hash whose file is missing fails when it is finished, and harms no other", async () => {
  const running = workers.beginHash(`${path}-`);
  running.reach(8 << 20);
  await expect(running.finish()).rejects.toMatchObject({ code: "ENOENT", path: `${path}-`, syscall: "open" });
  expect(await workers.beginHash(path).finish()).toEqual(expected);
});

test("a running hash that is aborted rejects at once, and so does one that is closed", async () => {
  const abort = new AbortController();
  const aborted = workers.beginHash(path).finish(abort.signal);
  abort.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  const [open, later] = [workers.beginHash(path), workers.beginHash(path)];
  const finishing = open.finish();
  const closing = workers.close();
  await expect(finishing).rejects.toThrow("closed");
  await expect(later.finish()).rejects.toThrow("closed");
  later.reach(8 << 20);
  later.cancel();
  await closing;
});

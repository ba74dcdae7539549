import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockStateFolder, StateFolderBusy } from "../../src/content/state-lock.ts";
import { systemCalls } from "../support/system-calls.ts";

let root: string;
let folder: string;
let path: string;

beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "wsfs-lock-"));
  folder = join(root, "deep", "state");
  path = join(folder, "lock");
});
afterEach(() => fs.rmSync(root, { recursive: true }));

test("the folder is made for its owner only, and holds the process id", () => {
  const lock = lockStateFolder(systemCalls, path);
  expect(fs.statSync(folder).mode & 0o777).toBe(0o700);
  expect(fs.statSync(path).mode & 0o777).toBe(0o600);
  expect(fs.readFileSync(path, "utf8")).toBe(`${process.pid}\n`);
  lock.release();
});

test("an empty folder becomes owner-only, another's content keeps its mode", () => {
  fs.mkdirSync(folder, { recursive: true });
  fs.chmodSync(folder, 0o755);
  lockStateFolder(systemCalls, path).release();
  expect(fs.statSync(folder).mode & 0o777).toBe(0o700);
  fs.chmodSync(folder, 0o755);
  lockStateFolder(systemCalls, path).release();
  expect(fs.statSync(folder).mode & 0o777).toBe(0o755);
});

test("a second holder is told who has it, until it is released", () => {
  const lock = lockStateFolder(systemCalls, path);
  const second = () => lockStateFolder(systemCalls, path);
  expect(second).toThrow(StateFolderBusy);
  expect(second).toThrow(`the state folder ${folder} is in use by process ${process.pid}`);
  // The refused ones have not touched what the holder wrote.
  expect(fs.readFileSync(path, "utf8")).toBe(`${process.pid}\n`);
  lock.release();
  lock.release();
  second().release();
});

test("a holder that has not written its id yet is still a holder", () => {
  const lock = lockStateFolder(systemCalls, path);
  fs.writeFileSync(path, "");
  expect(() => lockStateFolder(systemCalls, path)).toThrow("in use by another process");
  lock.release();
});

test("the death of the holder releases it, however it dies", async () => {
  fs.mkdirSync(folder, { recursive: true });
  // The holder locks by its own means: what counts is the kernel's lock, not who wrote the file.
  const holder = spawn(
    "flock",
    ["--exclusive", "--no-fork", path, "sh", "-c", `echo $$ > '${path}'; echo held; exec cat`],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const ended = once(holder, "exit");
  try {
    await once(holder.stdout, "data");
    expect(() => lockStateFolder(systemCalls, path)).toThrow(`in use by process ${holder.pid}`);
  } finally {
    holder.kill("SIGKILL");
  }
  await ended;
  lockStateFolder(systemCalls, path).release();
});

test("a lock file whose folder is taken back meanwhile is nobody's lock", () => {
  // The one who has the folder removes it right after another one has opened the lock file.
  const meanwhile = (fd: number) => {
    fs.rmSync(folder, { recursive: true });
    return systemCalls.lockFile(fd);
  };
  expect(() => lockStateFolder({ lockFile: meanwhile }, path)).toThrow(StateFolderBusy);
  const lock = lockStateFolder(systemCalls, path);
  expect(lock.isThere()).toBe(true);
  lock.release();
});

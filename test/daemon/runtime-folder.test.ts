import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { identifyProcess, isAlive } from "../../src/daemon/processes.ts";
import {
  listServed,
  type MountRecord,
  makeRuntimeFolder,
  readRecord,
  recordPath,
  removeRecord,
  writeRecord,
} from "../../src/daemon/runtime-folder.ts";

const self = identifyProcess(process.pid) ?? { pid: 0, startTime: "" };
const gone = { pid: process.pid, startTime: "1" };

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "wsfs-test-")), "run");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

function record(connection: number, daemon = self): MountRecord {
  const workspace = { id: "i", name: "n" };
  return { connection, mountpoint: "/m", daemon, supervisor: gone, stateDir: "/s", baseUrl: "http://h", workspace };
}

it("tells a process from a later one of the same number", () => {
  expect(isAlive(self)).toBe(true);
  expect(isAlive(gone)).toBe(false);
  expect(identifyProcess(2 ** 30)).toBe(undefined);
});

it("is the owner's alone, also when it was open before", () => {
  makeRuntimeFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  chmodSync(folder, 0o755);
  makeRuntimeFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

it("keeps one record for each daemon, readable by nobody else, whatever the number of its connection", () => {
  makeRuntimeFolder(folder);
  const other = identifyProcess(process.ppid) ?? gone;
  writeRecord(folder, record(4));
  writeRecord(folder, record(4, other));
  expect(readRecord(folder, self.pid)).toEqual(record(4));
  expect(statSync(recordPath(folder, self.pid)).mode & 0o777).toBe(0o600);
  removeRecord(folder, self.pid);
  removeRecord(folder, self.pid);
  expect(readRecord(folder, self.pid)).toBe(undefined);
  expect(listServed(folder)).toEqual([record(4, other)]);
});

it("lists what is served, and forgets what killed daemons left and what is damaged", () => {
  makeRuntimeFolder(folder);
  const killed = { pid: 2 ** 30, startTime: "1" };
  writeRecord(folder, record(4));
  writeRecord(folder, record(5, killed));
  writeFileSync(recordPath(folder, 6), "{");
  expect(listServed(folder).map(({ connection }) => connection)).toEqual([4]);
  makeRuntimeFolder(folder);
  expect(existsSync(recordPath(folder, self.pid))).toBe(true);
  expect(existsSync(recordPath(folder, killed.pid))).toBe(false);
  expect(listServed(join(folder, "absent"))).toEqual([]);
});

it("reads nothing that would be waited for, never ends, or lies elsewhere", { timeout: 10_000 }, () => {
  makeRuntimeFolder(folder);
  writeRecord(folder, record(4));
  execFileSync("mkfifo", [recordPath(folder, 1)]);
  symlinkSync("/dev/zero", recordPath(folder, 2));
  symlinkSync(recordPath(folder, self.pid), recordPath(folder, 3));
  writeFileSync(recordPath(folder, 5), JSON.stringify({ ...record(4), stateDir: "s".repeat(300_000) }));
  expect(listServed(folder)).toEqual([record(4)]);
});

it("finds the daemon after one that ended while the folder was listed", async () => {
  makeRuntimeFolder(folder);
  const replaceAll = `
    const { renameSync, rmSync, writeFileSync } = require("node:fs");
    const [folder, text] = process.argv.slice(1);
    const path = (number) => folder + "/" + (1000 + number) + ".json";
    writeFileSync(path(0), text);
    for (let number = 0; number < 3000; number += 1) {
      writeFileSync(path(number + 1) + ".new", text);
      renameSync(path(number + 1) + ".new", path(number + 1));
      rmSync(path(number));
    }`;
  const replacing = spawn(process.execPath, ["-e", replaceAll, folder, JSON.stringify(record(4))], {
    stdio: "inherit",
  });
  let hasEnded = false;
  const ended = once(replacing, "exit").then(([code]) => {
    hasEnded = true;
    return code;
  });
  while (listServed(folder).length === 0) await pause(1);
  const seen: number[] = [];
  while (!hasEnded) {
    seen.push(listServed(folder).length);
    await pause(0);
  }
  expect(await ended).toBe(0);
  expect(seen.length).toBeGreaterThan(10);
  expect(seen).not.toContain(0);
});

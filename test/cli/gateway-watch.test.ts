/** When the gateway that `wsfs start` keeps may end: not under a mount, nor under a command that is making one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitUntilUnused } from "../../src/cli/gateway-watch.ts";
import { gatewaySocket, startLock } from "../../src/daemon/gateway-record.ts";
import { identifyProcess } from "../../src/daemon/processes.ts";
import { removeRecord, writeRecord } from "../../src/daemon/runtime-folder.ts";

const URL = "http://127.0.0.1:1";
/** More than a look of the gateway's at who uses it. */
const A_WHILE_MS = 500;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A gateway whose first `start` has ended; whether it may end by now. */
function watched(): { over: Promise<void>; mayEnd(): Promise<boolean> } {
  let isOver = false;
  const over = waitUntilUnused([folder], URL, folder, Promise.resolve()).then(() => {
    isOver = true;
  });
  return { over, mayEnd: () => pause(A_WHILE_MS).then(() => isOver) };
}

function mounted(at: { baseUrl: string; gatewaySocket?: string } = { baseUrl: URL }): void {
  const self = identifyProcess(process.pid);
  if (self === undefined) throw new Error("this process is not there");
  const workspace = { id: "i", name: "n" };
  writeRecord(folder, {
    ...{ connection: 1, mountpoint: "/m", daemon: self, supervisor: self, stateDir: "/s", ...at, workspace },
  });
}

test.each([
  ["its address", () => ({ baseUrl: URL })],
  ["its socket, whatever its port was", () => ({ baseUrl: `${URL}2`, gatewaySocket: gatewaySocket(folder) })],
])("a gateway ends once no mount uses it by %s", async (_, at) => {
  mounted(at());
  const gateway = watched();
  expect(await gateway.mayEnd()).toBe(false);
  removeRecord(folder, process.pid);
  await gateway.over;
  // Whoever comes now waits until it has ended.
  const late = startLock(folder);
  expect(late.take()).toBe(false);
  late.close();
});

test("a gateway does not end under a start that has found it and whose mount is not there yet", async () => {
  const start = startLock(folder);
  expect(start.take()).toBe(true);
  const gateway = watched();
  expect(await gateway.mayEnd()).toBe(false);
  mounted();
  start.close();
  expect(await gateway.mayEnd()).toBe(false);
  removeRecord(folder, process.pid);
  await gateway.over;
});

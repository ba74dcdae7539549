/** The daemon's words on standard error, in the foreground: whoever read them may be gone. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { createDaemonLog } from "../../src/daemon/log-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => void vi.restoreAllMocks());

function listen() {
  const written: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
  return written;
}

test("a standard error that nobody reads any more does not end the daemon, and is left alone", () => {
  const written = listen();
  const log = createDaemonLog({ level: "info", foreground: true });
  log.warn({ err: new Error("no\nanswer") }, "offline");
  expect(written).toEqual(["wsfs: offline: no answer\n"]);
  // As a pipe does whose reader has ended; without a listener it is an uncaught exception.
  const broken = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  expect(() => process.stderr.emit("error", broken)).not.toThrow();
  log.warn({}, "offline again");
  expect(written).toHaveLength(1);
});

test("what comes of an end that the user asked for is in the file alone", async () => {
  const written = listen();
  const log = createDaemonLog({ level: "info", foreground: true });
  log.warn({}, "before");
  log.toFileOnly();
  log.error({}, "after");
  expect(written).toEqual(["wsfs: before\n"]);
  const folder = await temporaryFolder();
  log.openFile(folder);
  log.warn({}, "at last");
  const lines = readFileSync(join(folder, "daemon.log"), "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["before", "after", "at last"]);
  expect(written).toHaveLength(1);
});

/** The daemon's words on standard error, in the foreground: whoever read them may be gone. */
import { afterEach, expect, test, vi } from "vitest";
import { createDaemonLog } from "../../src/daemon/log-file.ts";

afterEach(() => void vi.restoreAllMocks());

test("a standard error that nobody reads any more does not end the daemon, and is left alone", () => {
  const written: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
  const log = createDaemonLog({ level: "info", foreground: true });
  log.warn({ err: new Error("no\nanswer") }, "offline");
  expect(written).toEqual(["wsfs: offline: no answer\n"]);
  // As a pipe does whose reader has ended; without a listener it is an uncaught exception.
  const broken = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  expect(() => process.stderr.emit("error", broken)).not.toThrow();
  log.warn({}, "offline again");
  expect(written).toHaveLength(1);
});

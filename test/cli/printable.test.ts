/** What a gateway or a file system says does not end a line of ours, or steer the terminal it is shown on. */
import { expect, test } from "vitest";
import { lineOf } from "../../src/cli/failure.ts";
import { describeStatus } from "../../src/cli/status.ts";

test("the status of a workspace shows its name, whatever is in it", () => {
  const text = describeStatus({
    ...{ workspace: { id: "i", name: "a\u001b[2J\nparked     none" }, mountpoint: "/m\u007f", uptime: 1 },
    ...{ online: true, live: true, dirty: 0, uploading: 0, parked: 0, bytesPending: 0, settled: true, conflicts: 0 },
    ...{ cacheBytes: 0, cacheLimit: 1, oldestPendingMs: 0, pid: 1, supervisorPid: 2, connection: 3, stateDir: "/s" },
    ...{ baseUrl: "http://h", version: "1.0.0", passthrough: true, operations: {} },
  });
  expect(text.split("\n")[0]).toBe("mounted    a\\x1b[2J\\x0aparked     none at /m\\x7f, for 1 s");
  expect(text).toMatch(/^[^\p{Cc}]*(?:\n[^\p{Cc}]*)*$/u);
});

test("an error is one line", () => {
  expect(lineOf(new Error("d\u001b]0;t\u0007 is not there;\n  make it first"))).toBe(
    "d\\x1b]0;t\\x07 is not there; make it first",
  );
});

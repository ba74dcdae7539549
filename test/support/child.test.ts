import { expect, test } from "vitest";
import { run } from "./child.ts";

test("a program that takes too long is killed with all it has begun", async () => {
  // The sleeps hold the output open; had they not ended, neither would this.
  const finished = await run("bash", ["-c", "sleep 1000 & (sleep 1000; true) & echo begun; wait"], {
    timeoutMs: 3_000,
  });
  expect(finished).toEqual({ code: null, signal: "SIGKILL", stdout: "begun\n", stderr: "" });
});

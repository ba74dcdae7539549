/** Output that cannot be written: a reader that is gone is no failure, a full disk is one, in one line. */
import { expect, onTestFinished, test } from "vitest";
import { guardOutput } from "../../src/cli/output.ts";

const broken = (code: string) => Object.assign(new Error(`write ${code}`), { code });

test("that nobody reads is no failure, that the disk is full is one", () => {
  const before = [process.stdout, process.stderr].map((stream) => [stream, stream.listeners("error")] as const);
  onTestFinished(() => {
    for (const [stream, listeners] of before) {
      for (const one of stream.listeners("error")) if (!listeners.includes(one)) stream.off("error", one as () => void);
    }
  });
  const output = guardOutput();
  // Without a listener each would be an uncaught exception.
  for (const stream of [process.stdout, process.stderr]) stream.emit("error", broken("EPIPE"));
  expect(output.why()).toBeUndefined();
  process.stdout.emit("error", broken("ENOSPC"));
  expect(output.why()).toBe("standard output cannot be written: write ENOSPC");
});

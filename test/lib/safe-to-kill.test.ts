/** A program that has no descriptor left for the pipes of a child. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Uses up its descriptors, then starts children in the ways that may signal them. */
const PROGRAM = `
import { execFile, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { safeToKill } from "${at("src/lib/safe-to-kill.ts")}";
try {
  for (;;) openSync("/dev/null");
} catch ({ code }) {
  console.log(code);
}
const abort = new AbortController();
const limit = { timeout: 1, killSignal: "SIGKILL" };
const children = [
  spawn("true"),
  spawn("true", limit),
  spawn("true", { signal: abort.signal, killSignal: "SIGKILL" }),
  execFile("true", { signal: abort.signal, killSignal: "SIGKILL" }, () => {}),
];
for (const child of children) safeToKill(child).on("error", ({ code }) => console.log(code));
console.log(children[0].kill("SIGKILL"));
setTimeout(() => {
  abort.abort();
  console.log("alive");
}, 20);
`;

test("a child that could not be started is no way to signal the whole group", async () => {
  const node = [process.execPath, "--import", at("scripts/typescript.mjs"), "--input-type=module", "-e", PROGRAM];
  // A group of its own, which is all that a failure ends.
  const child = spawn("sh", ["-c", 'ulimit -n 64 && exec "$@"', "sh", ...node], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect({ said: said.trim().split("\n"), code, signal }).toEqual({
    said: ["EMFILE", "false", "EMFILE", "EMFILE", "EMFILE", "EMFILE", "alive"],
    code: 0,
    signal: null,
  });
});

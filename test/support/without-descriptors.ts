/** Runs a program that uses up its descriptors, of which it has few once its modules are loaded. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const sourceFile = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
const TYPESCRIPT = fileURLToPath(new URL("../../scripts/typescript.mjs", import.meta.url));

/** A signal is said instead of sent: without a process id, what happens to be in memory decides where it goes. */
const PRELUDE = `
import { ChildProcess } from "node:child_process";
ChildProcess.prototype.kill = (signal) => {
  console.log("some process gets " + signal);
  return false;
};
import { closeSync, openSync } from "node:fs";
function useUp(left = 0) {
  const held = [];
  try {
    for (;;) held.push(openSync("/dev/null"));
  } catch {}
  for (const descriptor of held.slice(0, left)) closeSync(descriptor);
}
`;

/** `program`: a module, in which `useUp(left)` opens all descriptors but those. Resolves with its lines and its end. */
export async function runWithoutDescriptors(program: string) {
  const node = [process.execPath, "--import", TYPESCRIPT, "--input-type=module", "-e", PRELUDE + program];
  const child = spawn("sh", ["-c", 'ulimit -n 256 && exec "$@"', "sh", ...node], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { said: said.trim().split("\n"), code, signal };
}

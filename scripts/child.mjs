/**
 * Runs node in a child process as if it took this process's place: same terminal, same signals,
 * same exit code. (Node 20 has no exec(2).) Uses only Node's own modules.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * Resolves with the exit code; 128 + its number where a signal ended the child. `options` are spawn's. If they make a
 * pipe of standard error, `onStderr` gets its text. `node`: the program that runs; by default the running one.
 */
export function runNode(args, options, onStderr, node = process.execPath) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { stdio: "inherit", ...options });
    const passOn = (signal) => {
      if (!reachesChild(signal)) child.kill(signal);
    };
    const signals = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, passOn);
    child.stderr?.on("data", onStderr);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      for (const signal of signals) process.off(signal, passOn);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Ctrl-C and Ctrl-\ go to the whole foreground group of the terminal, so to the child as well. */
function reachesChild(signal) {
  if (signal !== "SIGINT" && signal !== "SIGQUIT") return false;
  const stat = readFileSync("/proc/self/stat", "utf8");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}

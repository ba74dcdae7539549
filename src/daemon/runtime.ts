/** The real machine behind `Runtime`. */
import { randomUUID } from "node:crypto";
import type { Files } from "../lib/files.ts";
import type { Runtime } from "../lib/runtime.ts";

export function createRuntime(files: Files): Runtime {
  return {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    setTimer(milliseconds, callback) {
      const timer = setTimeout(callback, milliseconds);
      return { cancel: () => clearTimeout(timer) };
    },
    random: () => Math.random(),
    uuid: () => randomUUID(),
    files,
  };
}

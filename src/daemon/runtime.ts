/** The real machine behind `Runtime`. */
import type { Files } from "../lib/files.ts";
import type { Runtime } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";

export function createRuntime(files: Files): Runtime {
  return { ...systemClock, files };
}

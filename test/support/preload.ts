/** Libraries that are loaded into a program before its own: they stand for calls of the C library. */
import { execFileSync } from "node:child_process";

/** Makes `library` out of a C source; answers what LD_PRELOAD is to be. */
export function compilePreload(source: string, library: string): string {
  execFileSync("cc", ["-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, source]);
  // A sanitiser that is loaded so too (scripts/sanitise.mjs) has to come first.
  return [process.env.LD_PRELOAD, library].filter(Boolean).join(" ");
}

/** What programs need of our environment where the native parts are built with sanitisers. */
export function sanitiserEnvironment(): NodeJS.ProcessEnv {
  const names = ["LD_PRELOAD", "ASAN_OPTIONS"];
  return Object.fromEntries(names.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])));
}

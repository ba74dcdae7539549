/**
 * Lets plain node run the project's TypeScript files in their place, for programs that neither the build nor vitest
 * compiles (benchmarks, child processes of tests):
 *
 *   node --import ./scripts/typescript.mjs FILE.ts
 *
 * Types are removed by rolldown; nothing is checked. Worker threads inherit it.
 */
import { register } from "node:module";

register("./typescript-hook.mjs", import.meta.url);

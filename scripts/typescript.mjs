/**
 * Lets plain node run the project's TypeScript files where they lie, for what is neither compiled
 * nor run by vitest (benchmarks, child processes of tests):
 *
 *   node --import ./scripts/typescript.mjs FILE.ts
 *
 * Types are removed by rolldown; nothing is checked. Worker threads inherit it.
 */
import { register } from "node:module";

register("./typescript-hook.mjs", import.meta.url);

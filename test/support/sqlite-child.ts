/** How a child process opens databases by the same driver as the tests do, below which there is nothing of ours. */
/** What a thread imports first, to import TypeScript. */
export const TYPESCRIPT = new URL("../../scripts/typescript.mjs", import.meta.url).href;

/** Options of node; behind them come the text of a module, what it imports (SQLITE), and its arguments. */
export const SQLITE_CHILD = ["--import", TYPESCRIPT, "--input-type=module", "-e"];

/** Exports openSqlite. */
export const SQLITE = new URL("../../src/lib/sqlite/index.ts", import.meta.url).href;

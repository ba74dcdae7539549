/** SQLite by better-sqlite3, an addon that needs a build for each release of Node. */
import Database from "better-sqlite3";
import type { Connection, Driver } from "./types.ts";

export const betterSqlite3: Driver = {
  name: "better-sqlite3",
  missing() {
    try {
      // The package looks for its addon at the first open, not when it is loaded.
      new Database(":memory:").close();
      return undefined;
    } catch (error) {
      return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    }
  },
  open: (file, options): Connection => new Database(file, options),
};

/** Rows that ignore some changes, to break an engine on purpose. */
import type { Sabotage } from "./mount.ts";

/** What the engine writes there ("INSERT ON tombstone", "UPDATE OF heard ON vacated") is not done, and it is not told so. */
export const ignoring = (...changes: readonly string[]): Sabotage => ({
  engine(_, rows) {
    for (const change of changes) {
      const name = `ignored_${change.replaceAll(/\W+/g, "_")}`;
      rows.exec(`CREATE TEMP TRIGGER IF NOT EXISTS ${name} BEFORE ${change} BEGIN SELECT RAISE(IGNORE); END`);
    }
    return {};
  },
});

/** Whether an engine has work left, and which. */
import type { Process } from "./mount.ts";
import { rowsOf } from "./rows.ts";

export function isQuiet({ engine, database }: Process): boolean {
  const rows = rowsOf(database);
  const unheard = rows.rereads().length + rows.relists() + rows.arrivals();
  return engine.status().dirty === 0 && unheard === 0 && rows.nextLook() === null && unsentFiles(rows).length === 0;
}

/** For a failure's message. */
export async function describeRest({ engine, database }: Process): Promise<string> {
  const rows = rowsOf(database);
  const items = [];
  for await (const some of engine.queue(5)) items.push(...some);
  return JSON.stringify({
    items,
    rereads: rows.rereads(),
    relists: rows.relists(),
    arrivals: rows.arrivals(),
    due: rows.nextLook(),
    unsent: unsentFiles(rows),
  });
}

/** Files whose bytes are said to be nobody else's, though nothing waits. */
function unsentFiles(rows: ReturnType<typeof rowsOf>): readonly string[] {
  return rows
    .unclean()
    .flatMap(({ name, content, hash }) => (content === "dirty" && name !== null ? [`${name} ${hash}`] : []));
}

/** Whether an engine has anything left to do, and what. */
import type { Engine } from "../../src/vfs/engine.ts";
import { itemOf } from "../../src/vfs/pending.ts";

export function isQuiet(engine: Engine): boolean {
  const { rereads, arrivals, nodes } = engine.context.metadata;
  return engine.status().dirty === 0 && rereads.count() + arrivals.count() === 0 && nodes.nextDue() === undefined;
}

/** For a failure's message. */
export function describeRest({ context }: Engine): string {
  const { rereads, arrivals, nodes } = context.metadata;
  const items = nodes.dirty(5).map((row) => itemOf(context, row, undefined));
  const rest = { rereads: rereads.count(), known: rereads.countKnown(), arrivals: arrivals.count() };
  return `${JSON.stringify(items)} ${JSON.stringify({ ...rest, due: nodes.nextDue() })}`;
}

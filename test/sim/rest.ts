/** Whether an engine has anything left to do, and what. */
import type { Engine } from "../../src/vfs/engine.ts";
import { itemOf } from "../../src/vfs/pending.ts";

export function isQuiet(engine: Engine): boolean {
  const { rereads, relists, arrivals, nodes } = engine.context.metadata;
  const unheard = rereads.count() + relists.count() + arrivals.count();
  return engine.status().dirty === 0 && unheard === 0 && nodes.nextDue() === undefined;
}

/** For a failure's message. */
export function describeRest({ context }: Engine): string {
  const { rereads, relists, arrivals, nodes } = context.metadata;
  const items = nodes.dirty(5).map((row) => itemOf(context, row, undefined));
  const unread = { rereads: rereads.count(), known: rereads.countKnown(), relists: relists.count() };
  return `${JSON.stringify(items)} ${JSON.stringify({ ...unread, arrivals: arrivals.count(), due: nodes.nextDue() })}`;
}

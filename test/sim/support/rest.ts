/** Whether an engine has anything left to do, and what. */

import { itemOf } from "../../../src/vfs/calls/pending.ts";
import type { Engine } from "../../../src/vfs/engine.ts";

export function isQuiet(engine: Engine): boolean {
  const { rereads, relists, arrivals } = engine.context.metadata;
  const unheard = rereads.count() + relists.count() + arrivals.count();
  return (
    engine.status().dirty === 0 && unheard === 0 && nextLook(engine) === undefined && unsentFiles(engine).length === 0
  );
}

/** When something that is no change of its own is looked at next. */
export function nextLook({ context }: Engine): number | undefined {
  const { nodes, turns } = context.metadata;
  return nodes.nextDue() ?? turns.nextEnd();
}

/** For a failure's message. */
export function describeRest(engine: Engine): string {
  const { context } = engine;
  const { rereads, relists, arrivals, nodes } = context.metadata;
  const items = nodes.dirty(5).map((row) => itemOf(context, row, undefined));
  const unread = { rereads: rereads.count(), known: rereads.countKnown(), relists: relists.count() };
  return `${JSON.stringify(items)} ${JSON.stringify({ ...unread, arrivals: arrivals.count(), due: nextLook(engine), unsent: unsentFiles(engine) })}`;
}

/** Files whose bytes are said to be nobody else's, though nothing waits. */
function unsentFiles({ context }: Engine): readonly string[] {
  const { inodes, entries } = context.metadata;
  return inodes.unclean(0, 1000).flatMap(({ id, content, hash }) => {
    const [name] = entries.ofInode(id);
    return content === "dirty" && name !== undefined ? `${name.name} ${hash}` : [];
  });
}

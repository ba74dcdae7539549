/** `wsfs undelete PATH`: brings back a deleted node as the same node; a folder with all that was deleted with it. */
import { randomUUID } from "node:crypto";
import { type Gateway, type ListedNode, RemoteError } from "../../client/index.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { print } from "../service.ts";
import { showTime } from "../table.ts";
import { formatCount, printable } from "../wording.ts";
import { eachOf, showProgress } from "./at-once.ts";
import { beginningOf, deletedBelow, deletedWith, findDeleted } from "./deleted.ts";
import { awaitShown, settle } from "./settle.ts";
import { findNode } from "./target.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = ["getNodeByPath", "listNodes", "restoreNode", "readJournal"] as const;

/** The key of a folder's restoration contains the beginning of its deletion, by which a later command continues it. */
const keyOf = (begin: number) => `undelete-${begin}-${randomUUID()}`;
const KEY = /^undelete-(\d+)-/;

export function undelete(values: Values<"undelete">): Promise<number> {
  return atWorkspace(values, [values.positionals.PATH], OPERATIONS, async ({ gateway, mount, paths }) => {
    const [path = "/"] = paths;
    await requireHistory(gateway);
    await settle(mount, [path], values["settle-timeout"]);
    const { gone, begin } = (await brokenOff(gateway, path)) ?? (await whatIsGone(gateway, path));
    const below = gone.kind === "folder" ? await deletedBelow(gateway, gone) : [];
    const since = begin ?? beginningOf(gone, below);
    const withIt = deletedWith(gone, below, since);
    const back = begin === undefined ? await bringBack(gateway, gone, since, values["as-name"]) : undefined;
    const { restored: inside, position } = await restoreBelow(gateway, withIt, back?.position);
    const node = back ?? gone;
    const left = below.length - inside;
    const inIt = inside === 0 ? "" : `, with ${formatCount(inside, "thing")} in it`;
    const stays = `${left} deleted at another time ${left === 1 ? "stays" : "stay"} deleted, as wsfs list --deleted shows`;
    const text = `Back: ${printable(node.path)} (deleted ${showTime(gone.deletedAt ?? null)})${inIt}`;
    const result = { node, restored: inside + (begin === undefined ? 1 : 0), left };
    const code = print(values.json, result, left === 0 ? `${text}.\n` : `${text}; ${stays}.\n`);
    await awaitShown(mount, position, values["settle-timeout"]);
    return code;
  });
}

interface Gone {
  readonly gone: ListedNode;
  /** For a node whose restoration was broken off: when its deletion began, milliseconds since 1970. */
  readonly begin?: number;
}

async function whatIsGone(gateway: Gateway, path: string): Promise<Gone> {
  const gone = await findDeleted(gateway, path);
  if (gone !== undefined) return { gone };
  const isThere = (await findNode(gateway, path)) !== undefined;
  throw new Failure(
    isThere ? `${path} is not deleted` : `nothing was deleted at ${path}; wsfs list --deleted shows what was`,
  );
}

/** A folder that is restored already, if nodes that were deleted with it are not. */
async function brokenOff(gateway: Gateway, path: string): Promise<Gone | undefined> {
  const node = await findNode(gateway, path);
  if (node?.kind !== "folder") return undefined;
  const { items } = await gateway.journal.list({ nodeId: node.id, orderBy: "-position", pageSize: 2 }).page(1);
  const [restored, deleted] = items;
  const [, begin] = KEY.exec(restored?.key ?? "") ?? [];
  if (begin === undefined || deleted?.kind !== "deleted") return undefined;
  const gone = { ...node, deletedAt: deleted.time, deletedBy: deleted.by };
  const isDone = deletedWith(gone, await deletedBelow(gateway, gone), Number(begin)).length === 0;
  return isDone ? undefined : { gone, begin: Number(begin) };
}

async function bringBack(gateway: Gateway, gone: ListedNode, begin: number, name: string | undefined) {
  try {
    return await gateway.nodes.restore(gone.id, { name, idempotencyKey: keyOf(begin) });
  } catch (cause) {
    if (!(cause instanceof RemoteError) || cause.code !== "conflict") throw cause;
    const { node } = cause;
    if (node === undefined || node.id === gone.id) throw cause;
    const why =
      node.id === gone.parentId
        ? `its folder is deleted: undelete ${node.path} first`
        : `something has the name ${node.path}: --as gives it another`;
    throw new Failure(`${gone.path} cannot come back: ${why}`, EXIT.failure, { cause });
  }
}

/**
 * Restores folders before the nodes in them. A node stays deleted when its name is taken by now or its folder stays
 * deleted. `before`: the journal position of an earlier restoration. Resolves with the number of nodes that this
 * restored, and the position of the last restoration; undefined: there was none.
 */
async function restoreBelow(gateway: Gateway, nodes: readonly ListedNode[], before: number | undefined) {
  const progress = showProgress(nodes.length, "brought back");
  let restored = 0;
  let position = before;
  const restore = async ({ id }: ListedNode) => {
    try {
      const back = await gateway.nodes.restore(id);
      position = Math.max(back.position, position ?? back.position);
      restored += 1;
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== "conflict") throw error;
    }
    progress.step();
  };
  try {
    for (const level of levelsOf(nodes)) await eachOf(level, restore);
  } finally {
    progress.end();
  }
  return { restored, position };
}

/** Groups of nodes. If the folder of a node is among the nodes, it is in an earlier group. */
function* levelsOf(nodes: readonly ListedNode[]): Generator<readonly ListedNode[]> {
  const inside = new Map<string, ListedNode[]>(nodes.map(({ id }) => [id, []]));
  let level: ListedNode[] = [];
  for (const node of nodes) (inside.get(node.parentId ?? "") ?? level).push(node);
  for (; level.length > 0; level = level.flatMap(({ id }) => inside.get(id) ?? [])) yield level;
}

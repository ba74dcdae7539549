/** A tree restored to a moment, and the changes of a mount undone, as the commands do it; compared with the record. */
import { isDeepStrictEqual } from "node:util";
import { pathsOf } from "../../../src/cli/history/entries.ts";
import { findNode } from "../../../src/cli/history/target.ts";
import { prepareUndo } from "../../../src/cli/history/undo.ts";
import { runUndo } from "../../../src/cli/history/undo-run.ts";
import type { Gateway } from "../../../src/client/connect.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import {
  type Change,
  type Moment,
  type NodeThen,
  nodesWithin,
  type PastRecord,
  UnknownBetween,
} from "./past-record.ts";
import { Fault, type World } from "./world.ts";

const ROOT = "/";

/** The result. Undefined: others changed something meanwhile and nothing can be said, or the gateway refused. */
export interface CameBack {
  readonly done: number;
  /** What was said of nodes that could not be. */
  readonly skipped: readonly string[];
}

type Wanted = Pick<NodeThen, "parent" | "name" | "hash" | "attributes">;

/** Undefined: it is as wanted. A name beside is in order where another node has the name. */
function difference(node: NodeThen | undefined, wanted: Wanted, moment: Moment): string | undefined {
  if (node === undefined || node.isDeleted) return "is not there";
  if (node.parent !== wanted.parent) return `is in ${node.parent}, not in ${wanted.parent}`;
  if (node.name !== wanted.name) {
    const others = [...moment.nodes.values()].filter(({ id, isDeleted }) => id !== node.id && !isDeleted);
    const isTaken = others.some(({ parent, name }) => parent === wanted.parent && name === wanted.name);
    if (!isTaken || !node.name.includes(" (restored ")) return `is called ${node.name}, not ${wanted.name}`;
  }
  if (node.hash !== wanted.hash) return "has other bytes";
  if (!isDeepStrictEqual(node.attributes, wanted.attributes)) {
    return `has attributes ${JSON.stringify(node.attributes)}, not ${JSON.stringify(wanted.attributes)}`;
  }
  return undefined;
}

function requireNone(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new Fault([what, ...faults].join("\n"));
}

/** Whether nobody else changed anything between two moments. */
const isAlone = (record: PastRecord, from: Moment, isOwn: (change: Change) => boolean) =>
  record.changes().every((change) => change.position <= from.position || isOwn(change));

/** True: the node is deleted, and so is the folder that it was in then. The gateway refuses to restore it. */
function isWithoutFolder(id: string, then: Moment, now: Moment): boolean {
  const parent = then.nodes.get(id)?.parent;
  return parent != null && now.nodes.get(id)?.isDeleted === true && now.nodes.get(parent)?.isDeleted === true;
}

/** `path`: of a folder then. `isSettled`: no index of the gateway is so late. */
export async function restoreTo(
  world: World,
  record: PastRecord,
  wanted: { readonly time: number; readonly path: string; readonly exact: boolean; readonly isSettled: boolean },
): Promise<CameBack | undefined> {
  const { time, path, exact, isSettled } = wanted;
  const gateway = await connected(world, undefined);
  const at = new Date(time);
  const top = await world.run(findNode(gateway, path, at));
  if (top === undefined) return undefined;
  const [then, from] = [record.at(time), record.now()];
  // The path index is late, the restoration is not: what had the path a moment ago may be gone by then.
  if (!isSettled && then.nodes.get(top.id)?.isDeleted !== false) return undefined;
  const idempotencyKey = `restore-${from.position}`;
  const restored = world.run(listed(gateway.nodes.restoreTree(top.id, at, { exact, idempotencyKey })));
  const items = await restored.catch((error: unknown) => {
    if (error instanceof RemoteError && error.code === "conflict" && isWithoutFolder(top.id, then, record.now()))
      return;
    throw error;
  });
  const now = record.now();
  if (items === undefined) {
    const changed = record.changes().filter(({ key }) => key === idempotencyKey);
    requireNone(
      `refused to restore ${path}:`,
      changed.map(({ node }) => `${node} was changed`),
    );
    return undefined;
  }
  if (!isAlone(record, from, ({ key }) => key === idempotencyKey)) return undefined;
  if (isWithoutFolder(top.id, then, from)) throw new Fault(`restored ${path}, and its folder is deleted`);
  const skipped = new Map(items.flatMap((item) => (item.action === "skip" ? [[item.nodeId, item.reason ?? ""]] : [])));
  const shown = nodesWithin(then, top.id, ({ isProvisioned }) => isProvisioned);
  const wasIn = nodesWithin(then, top.id);
  const isIn = nodesWithin(from, top.id);
  const faults: string[] = [];
  for (const id of shown) {
    const before = then.nodes.get(id);
    if (before === undefined || skipped.has(id)) continue;
    const found = difference(now.nodes.get(id), before, now);
    // Another node that has the topmost node's name by now is outside of the tree, and keeps the name.
    const isBeside = exact && id !== top.id && now.nodes.get(id)?.name !== before.name;
    if (found !== undefined || isBeside) faults.push(`${before.name} (${id}) ${found ?? "is beside its name"}`);
  }
  for (const [id, node] of now.nodes) {
    if (id === top.id || wasIn.has(id) || skipped.has(id)) continue;
    const isToGo = exact && isIn.has(id);
    const isKept = node.position === from.nodes.get(id)?.position;
    if (isToGo ? !node.isDeleted : !isKept)
      faults.push(`${node.name} (${id}) ${isToGo ? "is newer and there" : "was changed"}`);
  }
  requireNone(`restored ${path} to ${at.toISOString()}${exact ? " exactly" : ""}:`, faults);
  return { done: items.length - skipped.size, skipped: [...skipped.values()] };
}

/** Takes back what the mount did since then; and then that, where nobody was between. */
export async function undoSince(
  world: World,
  record: PastRecord,
  mount: string,
  time: number,
): Promise<CameBack | undefined> {
  const isMeant = ({ by, time: made }: Change) => by?.mount === mount && made >= time;
  const first = await undoOnce(world, record, mount, new Date(time), isMeant);
  if (first === undefined) return undefined;
  const isOfFirst = ({ key }: Change) => key?.startsWith(first.own) === true;
  // What came to nothing is nothing that could be taken back.
  if (!record.changes().some(isOfFirst)) return { done: 0, skipped: first.skipped };
  const second = await undoOnce(world, record, mount, undefined, isOfFirst);
  if (second !== undefined && first.skipped.length === 0 && second.skipped.length === 0) {
    const faults = [...first.from.nodes.values()].flatMap((node) => {
      const now = record.now().nodes.get(node.id);
      const found = node.isDeleted ? (now?.isDeleted ? undefined : "is there") : difference(now, node, record.now());
      return found === undefined ? [] : [`${node.name} (${node.id}) ${found}`];
    });
    requireNone(`the undo of ${mount} since ${new Date(time).toISOString()} was undone:`, faults);
  }
  return { done: first.done, skipped: first.skipped };
}

async function undoOnce(
  world: World,
  record: PastRecord,
  mount: string,
  since: Date | undefined,
  isMeant: (change: Change) => boolean,
) {
  const gateway = await connected(world, mount);
  const from = record.now();
  const changes = record.changes();
  // What the journal does not tell yet cannot be planned for, but nothing of others may be changed.
  const { asOf } = await world.run(gateway.journal.list({ pageSize: 1 }).page(1));
  const isKnown = asOf >= from.position;
  const wish = { path: ROOT, last: undefined, since };
  const made = await world.run(prepareUndo(gateway, { mount, account: null }, wish, pathsOf(gateway)));
  if (made === undefined) {
    if (!isKnown) return undefined;
    requireNone(
      "nothing to undo:",
      changes.filter(isMeant).map(({ kind, node }) => `${kind} ${node}`),
    );
    return undefined;
  }
  const { plan, choice, moment } = made;
  const refused = new Map<string, string>();
  const onSkipped = ({ nodeId }: { nodeId: string }, why: string) => void refused.set(nodeId, why);
  if (plan.steps.length > 0 || made.isBegun)
    await world.run(runUndo({ gateway, own: choice.own, moment, onDone() {}, onSkipped }, plan.steps));
  const now = record.now();
  const isOwn = ({ key }: Change) => key?.startsWith(choice.own) === true;
  if (!isAlone(record, from, isOwn)) return undefined;

  const skipped = new Map(plan.skipped.map((one) => [one.nodeId, one]));
  const byNode = new Map<string, Change[]>();
  for (const change of changes) byNode.set(change.node, [...(byNode.get(change.node) ?? []), change]);
  const faults: string[] = [];
  for (const [id, ofNode] of byNode) {
    const node = now.nodes.get(id);
    const last = ofNode.at(-1);
    const tell = (what: string | undefined) => what !== undefined && faults.push(`${node?.name} (${id}) ${what}`);
    const isKept = node?.position === from.nodes.get(id)?.position;
    if (!isKnown) {
      tell(isKept || last?.by?.mount === mount ? undefined : "was changed by another since, and changed");
      continue;
    }
    if (last === undefined || !ofNode.some(isMeant)) {
      tell(isKept ? undefined : "was changed, and is none of what was to be undone");
      continue;
    }
    const told = skipped.get(id);
    if (!isMeant(last)) {
      const isTold = told !== undefined && isDeepStrictEqual(told.by ?? null, last.by);
      tell(isTold ? undefined : `was changed since by ${JSON.stringify(last.by)}; told of: ${JSON.stringify(told)}`);
      tell(isKept ? undefined : "was changed by another since, and changed");
      continue;
    }
    if (told !== undefined) tell(`is skipped: ${told.why}`);
    const before = from.nodes.get(id);
    if (refused.has(id)) {
      const isInPlace = node?.parent === before?.parent && node?.name === before?.name;
      tell(
        isInPlace ? undefined : `could not be taken back (${refused.get(id)}), and is ${node?.name} in ${node?.parent}`,
      );
      continue;
    }
    const begun = ofNode.slice(ofNode.findLastIndex((one) => !isMeant(one)) + 1)[0];
    try {
      const wanted = begun === undefined ? undefined : record.before(begun);
      if (wanted === undefined || wanted.isDeleted) tell(node?.isDeleted ? undefined : "is there and was not");
      else tell(difference(node, wanted, now));
    } catch (error) {
      if (!(error instanceof UnknownBetween)) throw error;
    }
  }
  requireNone(`undone what ${mount} did since ${since?.toISOString() ?? "its undo"}:`, faults);
  if (!isKnown) return undefined;
  const why = [...plan.skipped.map(({ why: said }) => said), ...refused.values()];
  return { own: choice.own, from, done: plan.steps.length - refused.size, skipped: why };
}

/** Its modules are loaded: nothing of it waits for anything but the world's clock. */
async function connected(world: World, mount: string | undefined): Promise<Gateway> {
  const gateway = world.connectAs(mount);
  await gateway.calls();
  return gateway;
}

async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

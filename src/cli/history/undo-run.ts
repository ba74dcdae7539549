/** Carries out the steps of an undo at the gateway. A step is skipped if its node has changed since the plan. */
import { type Gateway, type Node, RemoteError } from "../../client/index.ts";
import { type Attributes, attributesDifference } from "../../contract/attributes.ts";
import { nameBeside } from "../../contract/names.ts";
import { formatTime, timeFromMilliseconds } from "../../lib/time.ts";
import { eachOf } from "./at-once.ts";
import { PARKING, rounds, type Step } from "./undo-plan.ts";
import { endKey, UNDONE } from "./undo-range.ts";

interface Undoing {
  readonly gateway: Gateway;
  /** The beginning of the idempotency keys: a step that is sent again changes nothing twice. */
  readonly own: string;
  /** Part of the names of nodes whose own name is taken. It is the same throughout an undo. */
  readonly moment: string;
  onDone(step: Step, node: Node): unknown;
  onSkipped(step: Step, why: string): unknown;
}

/**
 * Resolves with the journal position of the undo's end, which is after all its changes. There are no steps if an undo
 * was broken off just before its end was recorded.
 */
export async function runUndo(undoing: Undoing, steps: readonly Step[]): Promise<number> {
  const { gateway, own } = undoing;
  const revisions = new Map(steps.map(({ nodeId, revision }) => [nodeId, revision]));
  const root = await gateway.nodes.byPath("/");
  const plan = rounds(steps);
  for (let late = new Set<Step>(), round = plan.next(late); round.done !== true; round = plan.next(late)) {
    const { steps: ready, park, isLast = false } = round.value;
    late = new Set();
    if (park !== undefined) await parkIn(undoing, root.id, park, revisions);
    await eachOf(ready, async (step) => {
      if (!(await isDone(undoing, step, revisions, isLast))) late.add(step);
    });
  }
  return (await gateway.journal.append(root.id, UNDONE, { idempotencyKey: endKey(own) })).position;
}

async function parkIn(
  { gateway, own }: Undoing,
  parentId: string,
  step: Step,
  revisions: Map<string, number>,
): Promise<void> {
  const { nodeId, now } = step;
  const options = { ifRevision: revisions.get(nodeId), idempotencyKey: keyOf(own, step, PARKING) };
  try {
    const name = nameBeside(now.name, keyOf(own, step, ""), () => false);
    const { revision } = await gateway.nodes.update(nodeId, { parentId, name }, options);
    revisions.set(nodeId, revision);
  } catch (error) {
    // The node's own step reports the reason. Steps that wait for its name learn that it is taken.
    if (!isRefusal(error)) throw error;
  }
}

const keyOf = (own: string, { position }: Step, part: string) => `${own}${position}${part}`;

/** False: the step must be put off. */
async function isDone(
  undoing: Undoing,
  step: Step,
  revisions: ReadonlyMap<string, number>,
  isLast: boolean,
): Promise<boolean> {
  try {
    undoing.onDone(step, await takeBack(undoing, step, revisions.get(step.nodeId)));
  } catch (error) {
    const isInItself = error instanceof RemoteError && error.code === "invalid" && error.field === "parentId";
    if (isInItself && !isLast) return false;
    if (!isInItself && !isRefusal(error)) throw error;
    undoing.onSkipped(step, whyRefused(error, step));
  }
  return true;
}

/** True if the refusal concerns only this node: other steps can go on. */
function isRefusal(error: unknown): error is RemoteError {
  return error instanceof RemoteError && ["conflict", "changed", "notFound"].includes(error.code);
}

function whyRefused({ code, node, message }: RemoteError, { nodeId, action, target }: Step): string {
  if (code === "changed" || code === "notFound") return "it was changed from elsewhere at this moment";
  if (action === "delete") return "there are other things in it";
  if (node?.id === nodeId) return "another change came first";
  return node?.id === target.parentId ? `its folder ${node?.path} is deleted` : message;
}

async function takeBack(undoing: Undoing, step: Step, ifRevision: number | undefined): Promise<Node> {
  const { gateway, own } = undoing;
  const { nodeId, action, version } = step;
  if (action === "delete") {
    return gateway.nodes.delete(nodeId, { ifRevision, idempotencyKey: keyOf(own, step, "d") });
  }
  let node = action === "keep" ? await unchanged(gateway, nodeId, ifRevision) : await placed(undoing, step, ifRevision);
  const attributes = await attributesThen(gateway, step);
  if (version !== undefined) {
    node = await gateway.files.writeCopy(
      nodeId,
      { copyOf: nodeId, version },
      { ifHead: step.head ?? undefined, attributes: withoutLink(attributes), idempotencyKey: keyOf(own, step, "c") },
    );
  }
  const patch = attributes === undefined ? undefined : differenceTo(node, attributes);
  if (patch === undefined) return node;
  const options = { ifRevision: node.revision, idempotencyKey: keyOf(own, step, "a") };
  return gateway.nodes.update(nodeId, { attributes: patch }, options);
}

/**
 * Reads a node that stays in its place. Rejects with "changed" if its revision is another one: it was changed after the
 * plan was made, or the journal showed a change late.
 */
async function unchanged(gateway: Gateway, nodeId: string, ifRevision: number | undefined): Promise<Node> {
  const node = await gateway.nodes.get(nodeId);
  if (node.revision === ifRevision) return node;
  throw new RemoteError("changed", `${node.path} has changed`, { node });
}

/** Puts the node into its target place; if the name is taken there, under another name beside it. */
async function placed({ gateway, own, moment }: Undoing, step: Step, ifRevision: number | undefined): Promise<Node> {
  const { nodeId, action, target } = step;
  const parentId = target.parentId ?? undefined;
  const put = (name: string, part: string) => {
    const idempotencyKey = keyOf(own, step, part);
    return action === "restore"
      ? gateway.nodes.restore(nodeId, { parentId, name, idempotencyKey })
      : gateway.nodes.update(nodeId, { parentId, name }, { ifRevision, idempotencyKey });
  };
  for (let taken = 0; ; taken += 1) {
    const name =
      taken === 0
        ? target.name
        : nameBeside(target.name, `restored ${moment}${taken === 1 ? "" : ` ${taken}`}`, () => false);
    try {
      return await put(name, `m${taken}`);
    } catch (error) {
      const isTaken =
        error instanceof RemoteError &&
        error.code === "conflict" &&
        error.node !== undefined &&
        error.node.id !== nodeId &&
        error.node.id !== parentId;
      if (!isTaken) throw error;
    }
  }
}

/**
 * Content that comes back is a new version. A file without an mtime of its own would show the time of that version, so
 * it gets the time of the former version as mtime.
 */
async function attributesThen(gateway: Gateway, step: Step): Promise<Attributes | undefined> {
  const { nodeId, attributes, timeOf } = step;
  if (timeOf === undefined || attributes === undefined) return attributes;
  for await (const { id, createdAt } of gateway.versions.list(nodeId, { orderBy: "-number", pageSize: 1000 })) {
    if (id === timeOf) return { ...attributes, mtime: formatTime(timeFromMilliseconds(Date.parse(createdAt))) };
  }
  return attributes;
}

/** `link` belongs to the file's names as they are now, so it is not restored. */
function withoutLink(attributes: Attributes | undefined): Attributes | undefined {
  if (attributes === undefined) return undefined;
  const { link: _, ...rest } = attributes;
  return rest;
}

export function differenceTo({ attributes: now }: Pick<Node, "attributes">, then: Attributes) {
  return attributesDifference(now, { ...withoutLink(then), ...(now.link === undefined ? {} : { link: now.link }) });
}

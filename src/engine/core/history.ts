/**
 * What is remembered of the gateway's past, to recognise it: the last journal entry that was followed, and the last
 * write that the gateway acknowledged. Rows only; remote/history-check.ts asks the gateway for them.
 */
import { z } from "zod";
import { journalEntry, type Node, node } from "../../contract/resources.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

interface Needs {
  readonly metadata: Metadata<Request>;
  readonly acknowledgedWrites: AcknowledgedWrites;
}

/**
 * Takes the entry's place from when the past turned out to be another one until that is made good. A crash must not
 * forget it.
 */
const OTHER = "other";

/** The node after the write. `isContent`: the write made the node's head. */
const acknowledgment = node
  .pick({ id: true, revision: true, head: true, lastKey: true, modifiedAt: true })
  .extend({ isDeleted: z.boolean(), isContent: z.boolean() });

const acknowledgments = z.object({
  newest: acknowledgment.optional(),
  content: acknowledgment.optional(),
  doubted: z.array(acknowledgment),
});

/** The fields that tell an entry from every other one. */
const followed = journalEntry.pick({ position: true, nodeId: true, revision: true, time: true });
export type HistoryPoint = z.infer<typeof followed>;

/**
 * Call it in the transaction that moves the cursor past these entries. A rollback that was found meanwhile stays noted.
 */
export function noteHistoryPoint(needs: Pick<Needs, "metadata">, entries: readonly HistoryPoint[]): void {
  const last = entries.at(-1);
  if (last === undefined || isRolledBack(needs)) return;
  const { position, nodeId, revision, time } = last;
  needs.metadata.settings.set("followed", JSON.stringify({ position, nodeId, revision, time }));
}

/** The gateway was rolled back; so it stays until `forgetHistory`. */
export function noteRollback({ metadata }: Pick<Needs, "metadata">): void {
  metadata.settings.set("followed", OTHER);
}

export const isRolledBack = ({ metadata }: Pick<Needs, "metadata">): boolean =>
  metadata.settings.get("followed") === OTHER;

/** Call it in the transaction that begins with the new past. */
export function forgetHistory({ metadata, acknowledgedWrites }: Needs): void {
  metadata.settings.set("followed", "");
  metadata.settings.set("acknowledged", "");
  Object.assign(acknowledgedWrites, { newest: undefined, content: undefined, doubted: [] });
}

export type Acknowledgment = z.infer<typeof acknowledgment>;

/** The last writes that the gateway acknowledged. */
export interface AcknowledgedWrites {
  /** The last of all. */
  newest: Acknowledgment | undefined;
  /** The last one that brought content. Others may change the node again, but the version stays. */
  content: Acknowledgment | undefined;
  /** Those of earlier connections about which the gateway was not asked on the present connection yet. */
  doubted: readonly Acknowledgment[];
  /** A number that changes with the connection. */
  connection: () => number;
  /** The connection on which `newest` was acknowledged. */
  by: number | undefined;
}

export function noteAcknowledged(
  { acknowledgedWrites }: Pick<Needs, "acknowledgedWrites">,
  told: Node,
  what: Pick<Acknowledgment, "isDeleted" | "isContent">,
): void {
  const { id, revision, head, lastKey, modifiedAt } = told;
  const by = acknowledgedWrites.connection();
  if (by !== acknowledgedWrites.by && acknowledgedWrites.doubted.length === 0)
    acknowledgedWrites.doubted = toAsk(acknowledgedWrites);
  const newest = { id, revision, head, lastKey, modifiedAt, ...what };
  Object.assign(acknowledgedWrites, { newest, by, ...(what.isContent ? { content: newest } : {}) });
}

/** Each write once. */
export function toAsk({ doubted, newest, content }: AcknowledgedWrites): Acknowledgment[] {
  return [...new Set([...doubted, newest, content])].filter((one) => one !== undefined);
}

/** From here on the state is stored with each commit: many answers share one. */
export function createAcknowledgedWrites(metadata: Needs["metadata"]): AcknowledgedWrites {
  const text = metadata.settings.get("acknowledged") ?? "";
  const before = text === "" ? undefined : acknowledgments.safeParse(JSON.parse(text)).data;
  const none = { newest: undefined, content: undefined, doubted: [], connection: () => 0, by: undefined };
  const acknowledgedWrites: AcknowledgedWrites = { ...none, ...before };
  let kept = acknowledgedWrites.newest;
  metadata.beforeCommit(() => {
    const { newest, content, doubted } = acknowledgedWrites;
    if (newest === kept) return;
    kept = newest;
    metadata.settings.set("acknowledged", JSON.stringify({ newest, content, doubted }));
  });
  return acknowledgedWrites;
}

/** The last journal entry that was followed. Undefined while the past is another one. */
export function lastHistoryPoint({ metadata }: Pick<Needs, "metadata">): HistoryPoint | undefined {
  const text = metadata.settings.get("followed") ?? "";
  return text === "" ? undefined : followed.safeParse(JSON.parse(text)).data;
}

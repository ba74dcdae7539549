/**
 * What of the gateway's past is remembered, to know it again: the entry of its journal that was followed last, and the
 * change it acknowledgedWrites last. Rows only; known-past.ts asks the gateway for them.
 */
import { z } from "zod";
import { journalEntry, type Node, node } from "../../contract/resources.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

interface Needs {
  readonly metadata: Metadata<Request>;
  readonly acknowledgedWrites: AcknowledgedWrites;
}

/** Stands for the entry while the past is another one and that is not made up for: a crash must not forget it. */
const OTHER = "other";

/** The node after the change; `isContent`: its head came by it. */
const acknowledgment = node
  .pick({ id: true, revision: true, head: true, lastKey: true, modifiedAt: true })
  .extend({ isDeleted: z.boolean(), isContent: z.boolean() });

const acknowledgments = z.object({
  newest: acknowledgment.optional(),
  content: acknowledgment.optional(),
  doubted: z.array(acknowledgment),
});

/** Of an entry, what no other one has. */
const followed = journalEntry.pick({ position: true, nodeId: true, revision: true, time: true });
export type HistoryPoint = z.infer<typeof followed>;

/** Within the transaction that moves the cursor past these. That the past is another one may have been found out meanwhile, and stays so. */
export function noteHistoryPoint(needs: Pick<Needs, "metadata">, entries: readonly HistoryPoint[]): void {
  const last = entries.at(-1);
  if (last === undefined || isRolledBack(needs)) return;
  const { position, nodeId, revision, time } = last;
  needs.metadata.settings.set("followed", JSON.stringify({ position, nodeId, revision, time }));
}

/** It is another one, until `forgetPast`. */
export function noteRollback({ metadata }: Pick<Needs, "metadata">): void {
  metadata.settings.set("followed", OTHER);
}

export const isRolledBack = ({ metadata }: Pick<Needs, "metadata">): boolean =>
  metadata.settings.get("followed") === OTHER;

/** Within the transaction that begins with another past. */
export function forgetHistory({ metadata, acknowledgedWrites }: Needs): void {
  metadata.settings.set("followed", "");
  metadata.settings.set("acknowledged", "");
  Object.assign(acknowledgedWrites, { newest: undefined, content: undefined, doubted: [] });
}

export type Acknowledgment = z.infer<typeof acknowledgment>;

/** What the gateway acknowledgedWrites last. */
export interface AcknowledgedWrites {
  newest: Acknowledgment | undefined;
  /** The newest by which a content came: others may change a node again, and a version stays. */
  content: Acknowledgment | undefined;
  /** The same of the connection before, for which nobody has asked by this one yet. */
  doubted: readonly Acknowledgment[];
  /** Changes with the connection. */
  connection: () => number;
  /** The one by which `newest` came. */
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

/** Each once. */
export function toAsk({ doubted, newest, content }: AcknowledgedWrites): Acknowledgment[] {
  return [...new Set([...doubted, newest, content])].filter((one) => one !== undefined);
}

/** From here on it is kept with each commit: many answers share one. */
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

/** Not while the past is another one. */
export function lastHistoryPoint({ metadata }: Pick<Needs, "metadata">): HistoryPoint | undefined {
  const text = metadata.settings.get("followed") ?? "";
  return text === "" ? undefined : followed.safeParse(JSON.parse(text)).data;
}

/**
 * Two points of the gateway's timeline, by which a rollback is noticed: the last journal entry that was followed, and
 * the last write that the gateway acknowledged. They are only kept here; remote/timeline-check.ts compares them with
 * the gateway.
 */
import { z } from "zod";
import { type JournalEntry, journalEntry, type Node, node } from "../../contract/resources.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

/**
 * Stands in the place of the entry from the moment when a rollback was noticed until its recovery is complete. It is a
 * row, so that a crash does not forget the rollback.
 */
const OTHER = "other";

/** The node after the write. `isContent`: the write made the node's head. */
const acknowledgment = node
  .pick({ id: true, revision: true, head: true, lastKey: true, modifiedAt: true })
  .extend({ isDeleted: z.boolean(), isContent: z.boolean() });
type Acknowledgment = z.infer<typeof acknowledgment>;

const acknowledgments = z.object({
  newest: acknowledgment.optional(),
  content: acknowledgment.optional(),
  /** The key of the setting for `#toConfirm`. */
  doubted: z.array(acknowledgment),
});

/** The fields that tell an entry from every other one. */
const followed = journalEntry.pick({ position: true, nodeId: true, revision: true, time: true });
type TimelinePoint = z.infer<typeof followed>;

export class Timeline {
  readonly #metadata: Metadata<Request>;
  /** The last write that the gateway acknowledged. */
  #newest: Acknowledgment | undefined;
  /** The last acknowledged write that made a version. The version stays, even if others change the node again. */
  #content: Acknowledgment | undefined;
  /** Writes that were acknowledged on earlier connections, and that this connection has not confirmed yet. */
  #toConfirm: readonly Acknowledgment[] = [];
  #connection: () => number = () => 0;
  /** The number of the connection that acknowledged the newest write, or confirmed it later. */
  #by: number | undefined;

  /** Each later commit stores the acknowledged writes, if there are new ones. So many answers share a write. */
  constructor(metadata: Metadata<Request>) {
    this.#metadata = metadata;
    const text = metadata.settings.get("acknowledged");
    const before = text === undefined ? undefined : acknowledgments.safeParse(JSON.parse(text)).data;
    this.#newest = before?.newest;
    this.#content = before?.content;
    this.#toConfirm = before?.doubted ?? [];
    let kept = this.#newest;
    metadata.beforeCommit(() => {
      const newest = this.#newest;
      if (newest === kept) return;
      kept = newest;
      const acknowledged = { newest, content: this.#content, doubted: this.#toConfirm };
      metadata.settings.set("acknowledged", JSON.stringify(acknowledged));
    });
  }

  /**
   * Notes the last of these entries. Call it in the transaction that moves the cursor past them. If a rollback was
   * noticed meanwhile, that stays noted.
   */
  noteFollowed(entries: readonly Pick<JournalEntry, keyof TimelinePoint>[]): void {
    const last = entries.at(-1);
    if (last === undefined || this.isRolledBack()) return;
    const { position, nodeId, revision, time } = last;
    this.#metadata.settings.set("followed", JSON.stringify({ position, nodeId, revision, time }));
  }

  /** The last journal entry that was followed. Undefined: none was, or a rollback is noted. */
  last(): TimelinePoint | undefined {
    const text = this.#metadata.settings.get("followed");
    return text === undefined || text === OTHER ? undefined : followed.safeParse(JSON.parse(text)).data;
  }

  /** Notes that the gateway was rolled back. That stays until `forget`. */
  noteRollback(): void {
    this.#metadata.settings.set("followed", OTHER);
  }

  isRolledBack(): boolean {
    return this.#metadata.settings.get("followed") === OTHER;
  }

  /** Forgets both points. Call it in the transaction that begins anew with the present timeline. */
  forget(): void {
    this.#metadata.settings.clear("followed");
    this.#metadata.settings.clear("acknowledged");
    this.#newest = undefined;
    this.#content = undefined;
    this.#toConfirm = [];
  }

  noteAcknowledged(told: Node, what: Pick<Acknowledgment, "isDeleted" | "isContent">): void {
    const { id, revision, head, lastKey, modifiedAt } = told;
    const by = this.#connection();
    if (by !== this.#by && this.#toConfirm.length === 0) this.#toConfirm = this.toAsk();
    this.#newest = { id, revision, head, lastKey, modifiedAt, ...what };
    this.#by = by;
    if (what.isContent) this.#content = this.#newest;
  }

  /** The acknowledged writes that the gateway must still have, each once. */
  toAsk(): Acknowledgment[] {
    return [...new Set([...this.#toConfirm, this.#newest, this.#content])].filter((one) => one !== undefined);
  }

  /** `connection` returns a number that changes with each connection. */
  countsBy(connection: () => number): void {
    this.#connection = connection;
  }

  /** On this connection the gateway was found to have all acknowledged writes. */
  isConfirmed(connection: number): void {
    this.#toConfirm = [];
    this.#by = connection;
  }
}

/**
 * Two points of the gateway's past, by which it is recognised: the last journal entry that was followed, and the last
 * write that the gateway acknowledged. Rows only; remote/history-check.ts asks the gateway for them.
 */
import { z } from "zod";
import { type JournalEntry, journalEntry, type Node, node } from "../../contract/resources.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Request } from "./request.ts";

/**
 * Takes the entry's place from when the past turned out to be another one until that is made good. A crash must not
 * forget it.
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
  doubted: z.array(acknowledgment),
});

/** The fields that tell an entry from every other one. */
const followed = journalEntry.pick({ position: true, nodeId: true, revision: true, time: true });
type HistoryPoint = z.infer<typeof followed>;

export class GatewayHistory {
  readonly #metadata: Metadata<Request>;
  /** The last write of all that the gateway acknowledged. */
  #newest: Acknowledgment | undefined;
  /** The last one that brought content. Others may change the node again, but the version stays. */
  #content: Acknowledgment | undefined;
  /** Writes that earlier connections acknowledged, and about which the gateway was not asked on this connection yet. */
  #doubted: readonly Acknowledgment[] = [];
  #connection: () => number = () => 0;
  /** The connection on which the newest was acknowledged. */
  #by: number | undefined;

  /** From here on the acknowledged writes are stored with each commit: many answers share one. */
  constructor(metadata: Metadata<Request>) {
    this.#metadata = metadata;
    const text = metadata.settings.get("acknowledged");
    const before = text === undefined ? undefined : acknowledgments.safeParse(JSON.parse(text)).data;
    this.#newest = before?.newest;
    this.#content = before?.content;
    this.#doubted = before?.doubted ?? [];
    let kept = this.#newest;
    metadata.beforeCommit(() => {
      const newest = this.#newest;
      if (newest === kept) return;
      kept = newest;
      const acknowledged = { newest, content: this.#content, doubted: this.#doubted };
      metadata.settings.set("acknowledged", JSON.stringify(acknowledged));
    });
  }

  /**
   * Call it in the transaction that moves the cursor past these entries. A rollback that was found meanwhile stays
   * noted.
   */
  noteFollowed(entries: readonly Pick<JournalEntry, keyof HistoryPoint>[]): void {
    const last = entries.at(-1);
    if (last === undefined || this.isRolledBack()) return;
    const { position, nodeId, revision, time } = last;
    this.#metadata.settings.set("followed", JSON.stringify({ position, nodeId, revision, time }));
  }

  /** The last journal entry that was followed. Undefined while the past is another one. */
  last(): HistoryPoint | undefined {
    const text = this.#metadata.settings.get("followed");
    return text === undefined ? undefined : followed.safeParse(JSON.parse(text)).data;
  }

  /** The gateway was rolled back; so it stays until `forget`. */
  noteRollback(): void {
    this.#metadata.settings.set("followed", OTHER);
  }

  isRolledBack(): boolean {
    return this.#metadata.settings.get("followed") === OTHER;
  }

  /** Call it in the transaction that begins with the new past. */
  forget(): void {
    this.#metadata.settings.clear("followed");
    this.#metadata.settings.clear("acknowledged");
    this.#newest = undefined;
    this.#content = undefined;
    this.#doubted = [];
  }

  noteAcknowledged(told: Node, what: Pick<Acknowledgment, "isDeleted" | "isContent">): void {
    const { id, revision, head, lastKey, modifiedAt } = told;
    const by = this.#connection();
    if (by !== this.#by && this.#doubted.length === 0) this.#doubted = this.toAsk();
    this.#newest = { id, revision, head, lastKey, modifiedAt, ...what };
    this.#by = by;
    if (what.isContent) this.#content = this.#newest;
  }

  /** The acknowledged writes that the gateway is asked for, each once. */
  toAsk(): Acknowledgment[] {
    return [...new Set([...this.#doubted, this.#newest, this.#content])].filter((one) => one !== undefined);
  }

  /** `connection`: a number that changes with the connection. */
  countsBy(connection: () => number): void {
    this.#connection = connection;
  }

  /** On this connection the gateway has all of them. */
  isConfirmed(connection: number): void {
    this.#doubted = [];
    this.#by = connection;
  }
}

/** The journal of a workspace: what changed, read, followed, and told of. */
import type { JournalEntry } from "../../contract/resources.ts";
import type { JournalFilter } from "../client.ts";
import { type Context, type RequestOptions, read, type WriteOptions, write } from "./context.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { moment } from "./nodes.ts";
import { type Paged, paged } from "./paged.ts";

/** `nodeId`, `by` (name of an account), `mount`: only entries of these. */
export interface JournalListOptions extends RequestOptions, Pick<JournalFilter, "nodeId" | "by" | "mount"> {
  /** Only entries of this moment and later ones. */
  readonly since?: Date | string | undefined;
  /** Whether entries say what their nodes were `before`. */
  readonly before?: boolean | undefined;
  /** A field of the entry, `-field` for descending: "-position" is the newest first. Default: position. */
  readonly orderBy?: string | undefined;
  /** Position: only entries after it. Default 0: from the start. */
  readonly after?: number | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

/**
 * Positions are whole numbers that grow with every change; an entry's `kind` is created, updated,
 * moved, changed, deleted, restored, or a caller's word. Shown some time after the write was
 * answered (gateway-spec §6).
 */
export interface Journal {
  /**
   * Entries up to now, oldest first; `asOf` of a page is how far the journal shows. With `nodeId`, `by` or `mount` no more
   * than 10,000 are counted (`totalCount`). Scope: node.node.read-all.
   */
  list(options?: JournalListOptions): Paged<JournalEntry>;
  /**
   * Entries as they come, without end: abort it, or leave the loop. Keep the `position` of the last
   * entry to go on after it another time. Breaks are waited out, however long; it fails only when
   * the gateway refuses: with "invalid" (field "after") when that position is none of its past, as
   * after its data were replaced by older ones. What is known is then to be read anew, as at first.
   * Scope: node.node.read-all.
   */
  follow(options?: FollowOptions): AsyncGenerator<JournalEntry, void, undefined>;
  /** Records an activity on a node; `kind` is the caller's word for it. Scope: node.journal.create. */
  append(nodeId: string, kind: string, options?: WriteOptions): Promise<JournalEntry>;
}

export function createJournal(context: Context): Journal {
  return {
    list(options = {}) {
      const { retries: _, after = 0, workspace = context.workspace, since, ...rest } = options;
      return paged((which) =>
        read(context, options, (client) =>
          client.readJournal(workspace, after, { ...rest, ...which, since: moment(since) }),
        ),
      );
    },
    follow: (options) => follow(context, options),
    append: (nodeId, kind, options = {}) =>
      write(context, "changeKeys", options, (client, idempotencyKey) =>
        client.appendJournal(nodeId, kind, { idempotencyKey, signal: options.signal }),
      ),
  };
}

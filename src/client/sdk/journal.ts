/** The journal of a workspace: its entries, read or followed, and activities recorded in it. */
import type { JournalEntry } from "../../contract/resources.ts";
import type { JournalFilter } from "../client.ts";
import { type Context, type RequestOptions, read, type WriteOptions, write } from "./context.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { moment } from "./nodes.ts";
import { type Paged, paged } from "./paged.ts";

/** `nodeId`, `by` (name of an account), `mount`: only entries of these. */
export interface JournalListOptions extends RequestOptions, Pick<JournalFilter, "nodeId" | "by" | "mount"> {
  /** Only entries of this moment and later. */
  readonly since?: Date | string | undefined;
  /** Entries also say what their nodes were `before`. */
  readonly before?: boolean | undefined;
  /** A field of the entry; `-field` sorts in descending order: "-position" is the newest first. Default: position. */
  readonly orderBy?: string | undefined;
  /** Only entries after this position. Default 0: from the start. */
  readonly after?: number | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

/**
 * Positions are whole numbers that grow with every change. An entry's `kind` is created, updated, moved, changed,
 * deleted, restored, execution.STATE, or a word of a caller. An entry is shown some time after the write was answered
 * (gateway-spec §6).
 */
export interface Journal {
  /**
   * Entries up to now, oldest first. A page's `asOf` is the position up to which the journal shows everything. With
   * `nodeId`, `by` or `mount`, at most 10,000 entries are counted (`totalCount`), and later ones have no page number
   * ("invalid", field "pageNo"). "invalid" (field "after"): the gateway has not reached the position. "notFound": there
   * is no such node. Scope: node.node.read-all.
   */
  list(options?: JournalListOptions): Paged<JournalEntry>;
  /**
   * Entries as they come, without end: abort it, or leave the loop. Keep the `position` of the last entry to continue
   * after it later. Breaks are waited out, however long they are. It fails only when the gateway refuses. "invalid"
   * (field "after"): the gateway has not reached the position, for example because its data were replaced by older
   * ones. The caller must then read everything again. Scope: node.node.read-all.
   */
  follow(options?: FollowOptions): AsyncGenerator<JournalEntry, void, undefined>;
  /**
   * Records an activity on a node. `kind` is the caller's word for it, 1 to 64 characters. "invalid" (field "kind"): it
   * is the kind of a change. "notFound": there is no such node, or it is deleted. "forbidden": not an editor. Scope:
   * node.journal.create.
   */
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
      write(context, "change", options, (client, idempotencyKey) =>
        client.appendJournal(nodeId, kind, { idempotencyKey, signal: options.signal }),
      ),
  };
}

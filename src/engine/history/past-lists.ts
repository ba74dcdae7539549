/**
 * Lists of the past, as the gateway tells them. The list of a moment before the settle time does not change. Every
 * other list is read again after a second, a long one later. Lists are kept in memory for the next name that is looked
 * up, and in the rows for times at which the gateway is away. Where a list is too long for memory, the gateway is asked
 * for single names.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Client } from "../../client/client.ts";
import { RemoteError } from "../../client/errors.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import { type ListedNode, listedNode, type Version, version } from "../../contract/resources.ts";
import { minus, plus, type RowTime } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import { FsError } from "../api/index.ts";
import { type Host, isRetryable, type Remote, type Rows, retryDelay } from "../core/index.ts";
import { limitList, OFFLINE_PATIENCE_MS } from "../host/index.ts";
import { createSharedAnswers } from "./shared-answer.ts";

const PAGE = 1000;
/** A list that may change counts as new for at least this long. */
const FRESH_MS = 1_000;
/**
 * A list counts as new for this many times as long as reading it took. Otherwise a program that looks up every name of
 * a long list would wait for that list most of the time.
 */
const FRESH_READS = 4;
/** Items of all lists in memory. */
const ITEMS_MAX = 300_000;
/** Items. A longer list is not kept in memory if the gateway can be asked for single names. */
const IN_MEMORY_MAX = ITEMS_MAX / 2;
/** The lists that are remembered as longer than IN_MEMORY_MAX. */
const LONG_LISTS_MAX = 1_000;
/** Items. A longer list is not kept in the rows, so it cannot be shown while the gateway is away. */
const KEPT_ITEMS_MAX = 10_000;
const KEPT_LISTS_MAX = 1_000;

type Needs = Rows & Remote & Host;

interface Read<Item> {
  readonly items: readonly Item[];
  /** Row time until which the list counts as new. */
  readonly until: RowTime;
}

interface List<Item> {
  readonly key: string;
  readonly schema: z.ZodType<Item>;
  /** Milliseconds for which the list counts as new, at least. */
  readonly standsMs: number;
  /** The gateway can be asked for the items of one name. */
  readonly hasNames: boolean;
  read(signal: AbortSignal): Promise<Item[]>;
}

/** Children of a folder: the present ones, those of the moment `at` (ISO 8601, UTC), or those deleted from it. */
export type Which = { readonly at?: string; readonly deleted?: true };

export interface PastLists {
  /**
   * The children, sorted by name. With `name`, nodes of other names may be left out, which is done where the list is
   * too long to be kept. While a list is kept, the answer is the same array. Rejects with ENOENT when there is no such
   * folder, EIO when the gateway is away and the list is not kept, EINTR when `signal` aborts, else as toFsError says.
   */
  children(folder: string, which: Which, signal: AbortSignal, name?: string): Promise<readonly ListedNode[]>;
  /**
   * The versions of a node, oldest first. While they are kept, the answer is the same array. Rejects as `children`
   * does.
   */
  versions(node: string, signal: AbortSignal): Promise<readonly Version[]>;
}

/** True: the moment lies further back than any gateway lags, so everything about it is known and does not change. */
export function isPastSettleTime(at: string, { gatewayTime }: Pick<Client, "gatewayTime">): boolean {
  return Date.parse(at) < gatewayTime() - SETTLE_MS;
}

export function createPastLists(context: Needs): PastLists {
  const { client, metadata, network, runtime } = context;
  const memory = new LRUCache<string, Read<unknown>>({ maxSize: ITEMS_MAX, sizeCalculation: sizeOf });
  const longLists = new LRUCache<string, true>({ max: LONG_LISTS_MAX });
  const answers = createSharedAnswers();

  async function get<Item>(list: List<Item>, signal: AbortSignal): Promise<readonly Item[]> {
    const known = memory.get(list.key) as Read<Item> | undefined;
    if (known !== undefined && runtime.now() < known.until) return known.items;
    return answers.get(list.key, () => ask(list), signal);
  }

  async function ask<Item>(list: List<Item>): Promise<readonly Item[]> {
    const { key, schema, standsMs, read } = list;
    try {
      const begun = runtime.now();
      const items = await askAgain(read);
      const now = runtime.now();
      remember(list, items, plus(now, Math.max(standsMs, Math.min(FRESH_READS * minus(now, begun), SETTLE_MS))));
      if (items.length <= KEPT_ITEMS_MAX) {
        metadata.transaction(() => metadata.past.keepList(key, JSON.stringify(items), runtime.now(), KEPT_LISTS_MAX));
      }
      return items;
    } catch (error) {
      const isAway = error instanceof FsError && error.code === "EIO" && !network.isOnline;
      const text = isAway ? metadata.past.list(key) : undefined;
      const kept = text === undefined ? undefined : z.array(schema).safeParse(JSON.parse(text)).data;
      if (kept === undefined) throw error;
      remember(list, kept, plus(runtime.now(), OFFLINE_PATIENCE_MS));
      return kept;
    }
  }

  /** Asks again, a few times, after a failure that passes by itself. */
  async function askAgain<Item>(read: (signal: AbortSignal) => Promise<Item[]>): Promise<Item[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await network.ask(new AbortController().signal, read);
      } catch (error) {
        const cause = error instanceof FsError ? error.cause : undefined;
        const delay =
          cause instanceof RemoteError && isRetryable(cause) ? retryDelay(context, cause, tries) : undefined;
        if (delay === undefined || !network.isOnline) throw error;
        await sleep(runtime, delay);
      }
    }
  }

  function remember<Item>({ key, hasNames }: List<Item>, items: readonly Item[], until: RowTime): void {
    const isLong = hasNames && items.length >= IN_MEMORY_MAX;
    if (isLong) {
      longLists.set(key, true);
      memory.delete(key);
    } else {
      longLists.delete(key);
      memory.set(key, { items, until });
    }
  }

  return {
    children(folder, which, signal, name) {
      const key = JSON.stringify(["children", folder, which.at ?? null, which.deleted ?? false]);
      const read = (only: { readonly name?: string }) => (limit: AbortSignal) =>
        everyPage("a folder of the past", (after) =>
          client.listNodes({ parentId: folder, ...which, ...only, after, pageSize: PAGE, signal: limit }),
        );
      if (name !== undefined && longLists.has(key)) {
        return answers.get(JSON.stringify([key, name]), () => askAgain(read({ name })), signal);
      }
      // The list of such a moment counts as new for the settle time, not for ever. If the gateway's answers have no
      // Date, the clock of this machine decides how far back a moment lies, and that clock may be wrong.
      const standsMs = which.at !== undefined && isPastSettleTime(which.at, client) ? SETTLE_MS : FRESH_MS;
      return get({ key, schema: listedNode, standsMs, hasNames: true, read: read({}) }, signal);
    },
    versions(node, signal) {
      const key = JSON.stringify(["versions", node]);
      const read = async (limit: AbortSignal) => {
        const all = await everyPage("versions", (after) =>
          client.listVersions(node, { after, pageSize: PAGE, signal: limit }),
        );
        return all.toSorted((a, b) => a.number - b.number);
      };
      return get({ key, schema: version, standsMs: FRESH_MS, hasNames: false, read }, signal);
    },
  };
}

/** The size is limited, so that a list longer than the whole memory is kept too, as the only one. */
function sizeOf({ items }: Read<unknown>): number {
  return Math.min(items.length + 1, ITEMS_MAX);
}

async function everyPage<Item>(what: string, page: (after: string) => Promise<Paged<Item>>): Promise<Item[]> {
  const limited = limitList(what);
  const all: Item[] = [];
  for (let after = ""; ; ) {
    const { items, next } = limited(await page(after));
    for (const item of items) all.push(item);
    if (next === undefined || next === null) return all;
    after = next;
  }
}

interface Paged<Item> {
  readonly items: readonly Item[];
  readonly totalCount: number;
  readonly next?: string | null | undefined;
}

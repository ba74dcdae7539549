/** A paged list as a program walks it: item by item, page by page, or one page by its number. */
import { wholeNumber, wrongArgument } from "../checks.ts";
import { RemoteError } from "../errors.ts";

/** What a list answers for one page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Items of the whole list. */
  readonly totalCount: number;
  /** From 1. */
  readonly pageNo: number;
  readonly pageSize: number;
  /** Journal position the list is complete up to. */
  readonly asOf: number;
  readonly next?: string | null | undefined;
}

/**
 * A list, asked for when it is walked. Walked by items or by pages it is one snapshot: what is
 * made, moved or deleted meanwhile changes nothing of it. Each walk is a new snapshot.
 *
 *     for await (const node of list) …
 */
export interface Paged<Item> extends AsyncIterable<Item> {
  pages(): AsyncGenerator<Page<Item>, void, undefined>;
  /** One page, from 1, of the list as it is now. `totalCount` says how much there is in all. */
  page(pageNo: number): Promise<Page<Item>>;
  /** All items, in memory. */
  all(): Promise<Item[]>;
}

/** `after` is the `next` of the page before, `pageNo` the number of a page; the first page has neither. */
export interface WhichPage {
  readonly after?: string | undefined;
  readonly pageNo?: number | undefined;
}

export function paged<Item>(ask: (which: WhichPage) => Promise<Page<Item>>): Paged<Item> {
  async function* pages(): AsyncGenerator<Page<Item>, void, undefined> {
    let which: WhichPage = {};
    for (let seen = 0; ; ) {
      const page = await ask(which);
      yield page;
      seen += page.items.length;
      const { next } = page;
      if (next !== undefined && next !== null) which = { after: next };
      else {
        // null ends a snapshot. A gateway that says nothing of it knows numbers only.
        const isLast = next === null || page.items.length === 0 || seen >= page.totalCount;
        if (isLast) return;
        which = { pageNo: page.pageNo + 1 };
      }
    }
  }
  async function* items(): AsyncGenerator<Item, void, undefined> {
    for await (const page of pages()) yield* page.items;
  }
  return {
    [Symbol.asyncIterator]: items,
    pages,
    async page(...given) {
      const wrong = wrongArgument({ pageNo: wholeNumber(1) }, given);
      if (wrong === undefined) return ask({ pageNo: given[0] });
      throw new RemoteError("invalid", `page: ${wrong.field}: ${wrong.reason}`, { field: wrong.field, isUnsent: true });
    },
    async all() {
      const found: Item[] = [];
      for await (const page of pages()) found.push(...page.items);
      return found;
    },
  };
}

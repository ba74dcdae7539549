/** A paged list for programs: item by item, page by page, or one page by its number. */
import { wholeNumber, wrongArgument } from "../checks.ts";
import { RemoteError } from "../errors.ts";

/** The answer of a list for one page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Number of items in the whole list. */
  readonly totalCount: number;
  /** From 1. */
  readonly pageNo: number;
  readonly pageSize: number;
  /** Position in the journal up to which the list is complete. */
  readonly asOf: number;
  readonly next?: string | null | undefined;
}

/**
 * A list. Nothing is requested before it is walked, and then each failure is that of the call which made the list. A
 * walk by items or by pages shows the list at one position: changes during the walk are not in it. Each walk has a
 * position of its own. Only full gateways have positions. "invalid" (field "orderBy"): the items have no such field.
 *
 *     for await (const node of list) …
 */
export interface Paged<Item, P extends Page<Item> = Page<Item>> extends AsyncIterable<Item> {
  /** Page by page, at one position. */
  pages(): AsyncGenerator<P, void, undefined>;
  /**
   * One page of the list as it is now. `pageNo` counts from 1. "invalid" (field "pageNo"): it is not a whole number
   * from 1.
   */
  page(pageNo: number): Promise<P>;
  /** All items at one position, in memory. */
  all(): Promise<Item[]>;
}

/** `after` is the `next` of the page before; `pageNo` is a page's number. The first page has neither. */
interface WhichPage {
  readonly after?: string | undefined;
  readonly pageNo?: number | undefined;
}

export function paged<Item, P extends Page<Item> = Page<Item>>(
  ask: (which: WhichPage) => Promise<P & Page<Item>>,
): Paged<Item, P> {
  async function* pages(): AsyncGenerator<P, void, undefined> {
    let which: WhichPage = {};
    for (let seen = 0; ; ) {
      const page = await ask(which);
      yield page;
      seen += page.items.length;
      const { next } = page;
      if (next !== undefined && next !== null) which = { after: next };
      else {
        // null ends the list. A gateway that sends no `next` knows only numbers.
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

/** The list, with another source for a walk by items. */
export function pagedItems<Item>(list: Paged<Item>, items: () => AsyncGenerator<Item, void, undefined>): Paged<Item> {
  return {
    ...list,
    [Symbol.asyncIterator]: items,
    async all() {
      const found: Item[] = [];
      for await (const item of items()) found.push(item);
      return found;
    },
  };
}

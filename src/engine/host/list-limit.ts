/**
 * Limits of a gateway's list. A list without an end, or one that does not fit here, would fill memory and disk, or keep
 * its caller for ever.
 */
import { RemoteError } from "../../client/errors.ts";

/** Items of one folder, or versions of one file. */
const ITEMS_MAX = 1_000_000;
/** Empty pages in a row. */
const EMPTY_MAX = 5;

interface Page {
  readonly items: readonly unknown[];
  readonly totalCount: number;
}

/**
 * Returns a function that takes each page of one list and returns it, and throws a RemoteError "tooLarge" beyond the
 * limits. `what`: the list, as the error names it.
 */
export function limitList(what: string): <P extends Page>(page: P) => P {
  let items = 0;
  let empty = 0;
  return (page) => {
    items += page.items.length;
    empty = page.items.length > 0 ? 0 : empty + 1;
    const most = Math.max(items, page.totalCount);
    if (most > ITEMS_MAX) throw new RemoteError("tooLarge", `${what}: expected at most ${ITEMS_MAX}, got ${most}`);
    if (empty > EMPTY_MAX)
      throw new RemoteError("tooLarge", `${what}: ${empty} pages in a row are empty, and not the last`);
    return page;
  };
}

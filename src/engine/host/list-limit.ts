/** A list of a gateway has an end, and fits here. One that has neither would fill memory and disk, or keep who asks for ever. */
import { RemoteError } from "../../client/errors.ts";

/** Of one folder, or versions of one file. */
const ITEMS_MAX = 1_000_000;
/** Pages in a row without anything on them. */
const EMPTY_MAX = 5;

interface Page {
  readonly items: readonly unknown[];
  readonly totalCount: number;
}

/** To be given each page of the list, which it returns; throws a RemoteError "tooLarge". */
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

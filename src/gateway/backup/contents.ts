/** The contents of a copied store, read in pages so that other statements can run in between. */
import type { Connection } from "../../lib/sqlite/index.ts";

const PAGE = 500;

export interface StoredContent {
  readonly id: number;
  /** Null: the content is stored in a row. */
  readonly blob: string | null;
  readonly size: number;
  readonly hash: string;
  /** A version that has this content. */
  readonly version: string;
}

/** Yields contents that a version has. */
export function* contentsOf(database: Connection): Generator<StoredContent> {
  const page = database.prepare<[number], StoredContent>(
    `SELECT k.id, k.blob, v.size, v.hash, v.id AS version FROM content k
     JOIN version v ON v.rowid = (SELECT rowid FROM version WHERE content = k.id LIMIT 1)
     WHERE k.id > ? ORDER BY k.id LIMIT ${PAGE}`,
  );
  for (let after = 0, more = true; more; ) {
    const contents = page.all(after);
    yield* contents;
    after = contents.at(-1)?.id ?? after;
    more = contents.length === PAGE;
  }
}

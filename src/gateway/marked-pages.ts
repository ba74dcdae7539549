/**
 * Pages of a large folder by name, id or createdAt, read from the indices of its places: from a key on, or from any
 * number on, found by the marks of the folder. Index and marks show the present. Places that came or went after the
 * position of the page are corrected.
 */
import { NAME_BYTES_MAX } from "../contract/names.ts";
import {
  firstKey,
  isBig,
  KEY_COLUMNS,
  type Key,
  keyOf,
  MARKED_FIELDS,
  type MarkedField,
  type Place,
} from "./places.ts";
import { compareText } from "./sorted-lists.ts";
import type { Store } from "./store.ts";

/** With more changes than this since its position, a page is better read from a sorted list. */
const DELTA_MAX = 20_000;

export function isMarked(field: string): field is MarkedField {
  return (MARKED_FIELDS as readonly string[]).includes(field);
}

/** The difference between the folder now and the folder at a position, in the order of the field. */
interface Delta {
  /** Keys of places that came after the position. */
  readonly newer: readonly Key[];
  /** Keys of places that went after the position, and their nodes. */
  readonly gone: readonly { readonly key: Key; readonly node: string }[];
}

function compareKeys(a: Key, b: Key): number {
  const first =
    typeof a[0] === "number" && typeof b[0] === "number" ? a[0] - b[0] : compareText(String(a[0]), String(b[0]));
  return first || compareText(a[1], b[1]);
}

/** Undefined when no index has this order of the folder, or when too much has changed since. */
export function deltaSince(store: Store, folder: string, field: MarkedField, asOf: number): Delta | undefined {
  const big = isBig(store, folder);
  // Names are the order of the places themselves, in small folders too.
  if (!big && field !== "name") return undefined;
  const newer = store
    .prepare<Place>(
      `SELECT name, node, created_at AS createdAt FROM place ${big ? "INDEXED BY place_since" : ""}
       WHERE parent = ? ${big ? "AND big = 1" : ""} AND since > ? LIMIT ${DELTA_MAX}`,
    )
    .all(folder, asOf);
  const gone = store
    .prepare<Place>(
      `SELECT p.name, p.node, n.created_at AS createdAt FROM past_place p CROSS JOIN node n ON n.id = p.node
       WHERE p.parent = :folder AND p.until > :asOf AND p.since <= :asOf LIMIT ${DELTA_MAX}`,
    )
    .all({ folder, asOf });
  if (newer.length + gone.length >= DELTA_MAX) return undefined;
  return {
    newer: newer.map((place) => keyOf(field, place)).sort(compareKeys),
    gone: gone
      .map((place) => ({ key: keyOf(field, place), node: place.node }))
      .sort((a, b) => compareKeys(a.key, b.key)),
  };
}

/** True if too many places of a big folder came after the position to be skipped one by one. */
export function tooManyNewer(store: Store, folder: string, asOf: number): boolean {
  const newer = store.prepare(
    `SELECT 1 FROM place INDEXED BY place_since WHERE parent = ? AND big = 1 AND since > ? LIMIT 1 OFFSET ${DELTA_MAX}`,
  );
  return newer.get(folder, asOf) !== undefined;
}

interface MarkedPage {
  readonly folder: string;
  readonly field: MarkedField;
  readonly descending: boolean;
  readonly asOf: number;
  readonly delta: Delta;
  readonly limit: number;
}

/** Returns the nodes of the page that follows a key; without a key those of the first page. */
export function pageAfter(store: Store, page: MarkedPage, key: Key | undefined): string[] {
  return scan(store, page, key, false, 0);
}

/** Returns the nodes of the page that begins with the item of this number, counted from 0. */
export function pageAt(store: Store, page: MarkedPage, offset: number): string[] {
  if (offset === 0) return pageAfter(store, page, undefined);
  const stretches = stretchesOf(store, page);
  if (page.descending) stretches.reverse();
  let rest = offset;
  const index = stretches.findIndex(({ count }) => {
    if (rest < count) return true;
    rest -= count;
    return false;
  });
  // A stretch begins with its key, and ends before the key of the next one.
  const start = page.descending ? stretches[index - 1]?.start : stretches[index]?.start;
  if (index === -1) return [];
  return scan(store, page, start, !page.descending, rest);
}

interface Stretch {
  readonly start: Key;
  /** As of the position of the page. */
  count: number;
}

function stretchesOf(store: Store, { folder, field, delta }: MarkedPage): Stretch[] {
  const stretches: Stretch[] = store
    .prepare<{ a: string | number; b: string; count: number }>(
      "SELECT a, b, count FROM mark WHERE folder = ? AND field = ? ORDER BY a, b",
    )
    .all(folder, field)
    .map(({ a, b, count }) => ({ start: [a, b], count }));
  const correct = (keys: Iterable<Key>, by: number) => {
    let index = 0;
    for (const key of keys) {
      for (let next = stretches[index + 1]; next !== undefined; next = stretches[index + 1]) {
        if (compareKeys(next.start, key) > 0) break;
        index += 1;
      }
      const stretch = stretches[index];
      if (stretch !== undefined) stretch.count += by;
    }
  };
  correct(delta.newer, -1);
  correct(
    delta.gone.map(({ key }) => key),
    1,
  );
  return stretches;
}

interface IndexRow {
  readonly node: string;
  readonly a: string | number;
  readonly b: string;
}

/**
 * Returns the nodes from a key on, in the direction of the page, after skipping `skip` of them. Present and past places
 * are merged.
 */
function scan(store: Store, page: MarkedPage, from: Key | undefined, inclusive: boolean, skip: number): string[] {
  const { folder, field, descending, asOf, delta, limit } = page;
  const [a, b] = KEY_COLUMNS[field];
  const direction = descending ? "DESC" : "ASC";
  const sign = descending ? -1 : 1;
  const isAfter = (key: Key) => {
    if (from === undefined) return true;
    const compared = sign * compareKeys(key, from);
    return compared > 0 || (inclusive && compared === 0);
  };
  const [operator, start] = rangeOf(field, descending, from, inclusive);
  const there = (columns: string) => `SELECT ${columns} FROM place
     WHERE parent = ? ${field === "name" ? "" : "AND big = 1"}
     AND ${b === "''" ? `${a} ${operator} ?` : `(${a}, ${b}) ${operator} (?, ?)`} AND since <= ?
     ORDER BY ${a} ${direction}${b === "''" ? "" : `, ${b} ${direction}`} LIMIT +? OFFSET +?`;
  const range = [folder, ...(b === "''" ? [start[0]] : start), asOf];
  const gone = delta.gone.filter(({ key }) => isAfter(key));
  if (gone.length === 0) {
    return store
      .prepare<string>(there("node"))
      .pluck()
      .all(...range, limit, skip);
  }
  const end = skip + limit;
  const merged = store
    .prepare<IndexRow>(there(`node, ${a} AS a, ${b} AS b`))
    .all(...range, end, 0)
    .map((row): { node: string; key: Key } => ({ node: row.node, key: [row.a, row.b] }));
  merged.push(...(descending ? gone.slice(-end) : gone.slice(0, end)));
  return merged
    .sort((x, y) => sign * compareKeys(x.key, y.key))
    .slice(skip, end)
    .map(({ node }) => node);
}

/** A key after every other: names and ids are well-formed texts, times are numbers. */
const LAST_TEXT = "\u{10ffff}".repeat(NAME_BYTES_MAX);

function rangeOf(field: MarkedField, descending: boolean, from: Key | undefined, inclusive: boolean): [string, Key] {
  const operator = `${descending ? "<" : ">"}${inclusive ? "=" : ""}`;
  if (from !== undefined) return [operator, from];
  if (!descending) return [">=", firstKey(field)];
  return ["<=", field === "createdAt" ? [Number.MAX_SAFE_INTEGER, LAST_TEXT] : [LAST_TEXT, ""]];
}

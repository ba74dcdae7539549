/**
 * The rows of the path index, which say which node has a name in a folder and since which position; and the marks that
 * count them. Only `changes.ts`, `tree-rows.ts` and `copied.ts` write them, within their transactions.
 *
 * Invariant: the counts of the marks of a folder in one field add up to the number of its places.
 */
import type { Store } from "./store.ts";

/** The orders in which pages of a large folder are read from an index. */
export const MARKED_FIELDS = ["name", "id", "createdAt"] as const;
export type MarkedField = (typeof MARKED_FIELDS)[number];

/** Folders with more places than this get marks, and are in the indices. */
export const BIG_PLACES = 2048;
/** Number of places between two marks when they are made. A stretch of twice as many is split. */
const MARK_PLACES = 1024;

/** The key of a place in one of the orders: [name, ""], [id, ""] or [time, id]. */
export type Key = readonly [a: string | number, b: string];

export interface Place {
  readonly name: string;
  readonly node: string;
  readonly createdAt: number;
}

export function keyOf(field: MarkedField, place: Place): Key {
  if (field === "name") return [place.name, ""];
  return field === "id" ? [place.node, ""] : [place.createdAt, place.node];
}

/** The columns of `place` that make up a key. The second one is constant when the key has only one. */
export const KEY_COLUMNS: Readonly<Record<MarkedField, readonly [string, string]>> = {
  name: ["name", "''"],
  id: ["node", "''"],
  createdAt: ["created_at", "node"],
};

/** A key before every key of the field. */
export const firstKey = (field: MarkedField): Key => (field === "createdAt" ? [-1, ""] : ["", ""]);

export function isBig(store: Store, folder: string): boolean {
  return store.prepare("SELECT 1 FROM mark WHERE folder = ? AND field = 'id' LIMIT 1").get(folder) !== undefined;
}

/** Returns how many places a folder has now. */
export function countPlaces(store: Store, folder: string): number {
  const row = store
    .prepare<{ total: number }>("SELECT ifnull(sum(count), 0) AS total FROM mark WHERE folder = ? AND field = 'name'")
    .get(folder);
  return row?.total ?? 0;
}

export function beginPlace(store: Store, folder: string, place: Place, position: number): void {
  const big = isBig(store, folder);
  store
    .prepare("INSERT INTO place (parent, name, node, since, created_at, big) VALUES (?, ?, ?, ?, ?, ?)")
    .run(folder, place.name, place.node, position, place.createdAt, Number(big));
  if (big) {
    for (const field of MARKED_FIELDS) addToMark(store, folder, field, keyOf(field, place));
    return;
  }
  if (addCount(store, folder, 1) > BIG_PLACES) makeBig(store, folder);
}

/** `counts`: the number of places that begin at once in each folder. None of the folders is big. */
export function countBegun(store: Store, counts: ReadonlyMap<string, number>): void {
  for (const [folder, count] of counts) if (addCount(store, folder, count) > BIG_PLACES) makeBig(store, folder);
}

/** Counts places of a folder that is not big. Returns the new number of its places. */
function addCount(store: Store, folder: string, count: number): number {
  const counted = store
    .prepare<{ count: number }>(
      `INSERT INTO mark (folder, field, a, b, count) VALUES (?, 'name', '', '', ?)
       ON CONFLICT DO UPDATE SET count = count + excluded.count RETURNING count`,
    )
    .get(folder, count);
  return counted?.count ?? 0;
}

export function endPlace(store: Store, folder: string, place: Place, position: number): void {
  const ended = store
    .prepare<{ since: number; big: number }>(
      "DELETE FROM place WHERE parent = ? AND name = ? AND node = ? RETURNING since, big",
    )
    .get(folder, place.name, place.node);
  if (ended === undefined) throw new Error(`Node ${place.node} has no place.`);
  store
    .prepare("INSERT INTO past_place (parent, until, name, node, since) VALUES (?, ?, ?, ?, ?)")
    .run(folder, position, place.name, place.node, ended.since);
  for (const field of ended.big === 1 ? MARKED_FIELDS : (["name"] as const)) {
    takeFromMark(store, folder, field, keyOf(field, place));
  }
}

/** Removes the marks of a folder that is gone. It was empty. */
export function forgetMarks(store: Store, folder: string): void {
  store.prepare("DELETE FROM mark WHERE folder = ?").run(folder);
}

interface Mark {
  readonly a: string | number;
  readonly b: string;
  readonly count: number;
}

/** Returns the mark whose stretch has the key. */
function markOf(store: Store, folder: string, field: MarkedField, [a, b]: Key): Mark {
  const mark = store
    .prepare<Mark>(
      "SELECT a, b, count FROM mark WHERE folder = ? AND field = ? AND (a, b) <= (?, ?) ORDER BY a DESC, b DESC LIMIT 1",
    )
    .get(folder, field, a, b);
  if (mark === undefined) throw new Error(`Folder ${folder} has no mark for ${field} ${a}.`);
  return mark;
}

function setCount(store: Store, folder: string, field: MarkedField, mark: Mark, count: number): void {
  store
    .prepare("UPDATE mark SET count = ? WHERE folder = ? AND field = ? AND a = ? AND b = ?")
    .run(count, folder, field, mark.a, mark.b);
}

function addToMark(store: Store, folder: string, field: MarkedField, key: Key): void {
  const mark = markOf(store, folder, field, key);
  const count = mark.count + 1;
  if (count < 2 * MARK_PLACES) {
    setCount(store, folder, field, mark, count);
    return;
  }
  const [a, b] = KEY_COLUMNS[field];
  const middle = store
    .prepare<{ a: string | number; b: string }>(
      `SELECT ${a} AS a, ${b} AS b FROM place WHERE parent = ? AND big = 1 AND (${a}, ${b}) >= (?, ?)
       ORDER BY ${a}, ${b} LIMIT 1 OFFSET ${MARK_PLACES}`,
    )
    .get(folder, mark.a, mark.b);
  if (middle === undefined) throw new Error(`Folder ${folder} has fewer places than its marks say.`);
  setCount(store, folder, field, mark, MARK_PLACES);
  insertMark(store, folder, field, [middle.a, middle.b], count - MARK_PLACES);
}

function takeFromMark(store: Store, folder: string, field: MarkedField, key: Key): void {
  const mark = markOf(store, folder, field, key);
  const [a, b] = firstKey(field);
  if (mark.count > 1 || (mark.a === a && mark.b === b)) {
    setCount(store, folder, field, mark, mark.count - 1);
    return;
  }
  store
    .prepare("DELETE FROM mark WHERE folder = ? AND field = ? AND a = ? AND b = ?")
    .run(folder, field, mark.a, mark.b);
}

function insertMark(store: Store, folder: string, field: MarkedField, [a, b]: Key, count: number): void {
  store.prepare("INSERT INTO mark (folder, field, a, b, count) VALUES (?, ?, ?, ?, ?)").run(folder, field, a, b, count);
}

/** From now on the places of the folder are indexed, and marked in every order. */
function makeBig(store: Store, folder: string): void {
  store.prepare("UPDATE place SET big = 1 WHERE parent = ?").run(folder);
  forgetMarks(store, folder);
  for (const field of MARKED_FIELDS) {
    const [a, b] = KEY_COLUMNS[field];
    const keys = store
      .prepare<{ a: string | number; b: string }>(
        `SELECT ${a} AS a, ${b} AS b FROM place WHERE parent = ? AND big = 1 ORDER BY ${a}, ${b}`,
      )
      .all(folder);
    for (let index = 0; index < keys.length; index += MARK_PLACES) {
      const first = keys[index];
      const key: Key = index === 0 || first === undefined ? firstKey(field) : [first.a, first.b];
      insertMark(store, folder, field, key, Math.min(MARK_PLACES, keys.length - index));
    }
  }
}

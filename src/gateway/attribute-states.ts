/**
 * The limits of a node's attributes, and the earlier attributes that its history keeps.
 *
 * Small states are kept whole with each change. For large states a change keeps only the difference ("+" and a
 * difference; "" for no difference), and each revision that is a multiple of STRIDE keeps the whole state. So a small
 * change of large attributes takes little room, and an old state is read from at most STRIDE rows. If large attributes
 * change often, the states between two whole ones are given up after a time; the whole state before them is shown then.
 */

import { ATTRIBUTES_BYTES_MAX, type Attributes, outgrow, sameValue } from "../contract/attributes.ts";
import { DAY_MS, HOUR_MS } from "../lib/time.ts";
import type { Context } from "./context.ts";
import { tooLarge } from "./problems.ts";
import type { Store } from "./store.ts";

/** Throws 413 when a change makes the attributes too large. */
export function checkAttributes(after: Attributes, before: Attributes = {}): void {
  const bytes = outgrow(before, after);
  if (bytes === undefined) return;
  throw tooLarge(`attributes: they come to ${bytes} bytes of JSON, more than ${ATTRIBUTES_BYTES_MAX}`, "attributes");
}

/** A state of at most this many characters of JSON is kept whole. */
const SMALL = 1024;
const STRIDE = 64;

type Json = Readonly<Record<string, unknown>>;

/** The difference between two objects: it turns one into the other. */
interface Difference {
  readonly set: Json;
  readonly gone: readonly string[];
  readonly within: Readonly<Record<string, Difference>>;
}

/**
 * Returns the part of the attributes that is kept with the change that makes `revision`. `before` and `after`: JSON.
 */
export function keptState(before: string, after: string, revision: number): string {
  if (after.length <= SMALL || revision % STRIDE === 0) return after;
  if (before === after) return "";
  const kept = `+${JSON.stringify(differenceOf(JSON.parse(before), JSON.parse(after)))}`;
  return kept.length < after.length ? kept : after;
}

const isWhole = (kept: string) => kept.startsWith("{");

/** The attributes after the change at a position, which kept `kept` of them. */
export function stateAt(store: Store, node: string, position: number, kept: string): string {
  if (isWhole(kept)) return kept;
  const rows = store
    .prepare<string>(
      "SELECT attributes FROM change WHERE node = ? AND activity = 0 AND position <= ? ORDER BY position DESC",
    )
    .pluck()
    .iterate(node, position);
  const differences: Difference[] = [];
  for (const row of rows) {
    if (isWhole(row)) return JSON.stringify(differences.reduceRight(apply, JSON.parse(row)));
    if (row !== "") differences.push(JSON.parse(row.slice(1)));
  }
  throw new Error(`Node ${node} has no whole attributes before ${position}.`);
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function differenceOf(from: Json, to: Json): Difference {
  const set = new Map<string, unknown>();
  const within = new Map<string, Difference>();
  for (const [key, value] of Object.entries(to)) {
    const before = Object.hasOwn(from, key) ? from[key] : undefined;
    if (sameValue(before, value)) continue;
    if (isRecord(before) && isRecord(value)) within.set(key, differenceOf(before, value));
    else set.set(key, value);
  }
  const gone = Object.keys(from).filter((key) => !Object.hasOwn(to, key));
  return { set: Object.fromEntries(set), gone, within: Object.fromEntries(within) };
}

function apply(from: Json, { set, gone, within }: Difference): Json {
  const to = new Map(Object.entries(from));
  for (const key of gone) to.delete(key);
  for (const [key, value] of Object.entries(set)) to.set(key, value);
  for (const [key, difference] of Object.entries(within)) to.set(key, apply(Object(to.get(key)), difference));
  return Object.fromEntries(to);
}

/**
 * The lifetime of an idempotency key: twice the promised one, because the clock may be set by up to a day
 * (fault-options.ts).
 */
export const KEY_LIFETIME_MS = 2 * DAY_MS;
/** If this many changes of large attributes come within this time (one per hour), only the last state stays. */
const OFTEN_MS = STRIDE * HOUR_MS;
const LOOK_COUNT = 200;
/** The condition of the schema's index of large attributes, word for word: else the index is not used. */
const LARGE = `activity = 0 AND revision > 1 AND revision % 64 <> 0
  AND (length(attributes) > 1024 OR substr(attributes, 1, 1) = '+')`;

/**
 * Within a transaction, gives up states after the position that lie between two whole ones: all states of a stretch or
 * none, because each is made from others. Returns the position after which to go on; undefined at the end.
 */
export function thinAttributes({ store, clock }: Context, after: number): number | undefined {
  const oldest = clock.wallClock() - KEY_LIFETIME_MS;
  const rows = store
    .prepare<{ position: number; node: string; revision: number }>(
      `SELECT position, node, revision FROM change INDEXED BY change_large
       WHERE ${LARGE} AND position > ? ORDER BY position LIMIT ${LOOK_COUNT}`,
    )
    .all(after);
  const end = store
    .prepare<number>(
      "SELECT time FROM change WHERE node = ? AND activity = 0 AND position > ? ORDER BY position LIMIT 1 OFFSET +?",
    )
    .pluck();
  const start = store
    .prepare<number>(
      `SELECT min(time) FROM (SELECT time FROM change WHERE node = ? AND activity = 0 AND position <= ?
       ORDER BY position DESC LIMIT +?)`,
    )
    .pluck();
  const giveUp = store.prepare("UPDATE change SET attributes = '' WHERE position = ?");
  for (const { position, node, revision } of rows) {
    const inStretch = revision % STRIDE;
    const ended = end.get(node, position, STRIDE - 1 - inStretch);
    const begun = start.get(node, position, inStretch + 1);
    if (ended !== undefined && begun !== undefined && ended < oldest && ended - begun < OFTEN_MS) giveUp.run(position);
  }
  return rows.length < LOOK_COUNT ? undefined : rows.at(-1)?.position;
}

/** Chooses which changes of a mount an undo takes back. */
import { createHash } from "node:crypto";
import type { Gateway, JournalEntry } from "../../client/index.ts";
import { CHANGE_KINDS } from "../../contract/journal-kinds.ts";
import type { Place, Range } from "./undo-plan.ts";

/** Changes with a shorter pause than this between them belong together. */
const PAUSE_MAX_MS = 60_000;

/** "undo-FROM-TO-WISH:", then the step. FROM and TO are positions, WISH is a hash of the wish. */
const KEY = /^undo-(\d+)-(\d+)-([0-9a-f]{8}):/;

/** The kind of the activity that ends an undo. While it is missing, the same wish continues that undo. */
export const UNDONE = "undone";
export const endKey = (own: string) => `${own}end`;

export interface Wish {
  readonly path: string;
  readonly last: number | undefined;
  readonly since: Date | undefined;
}

export interface Author {
  readonly mount: string;
  readonly account: string | null;
}

export interface Choice {
  readonly range: Range;
  /** The beginning of this undo's keys. */
  readonly own: string;
}

/** `begun`: an undo of the same wish that has not ended. `next`: the changes to take back if there is no such undo. */
interface Choices {
  readonly begun: Choice | undefined;
  readonly next: Choice;
}

const wishOf = ({ path, last, since }: Wish) =>
  createHash("sha256")
    .update(JSON.stringify([path, last ?? null, since !== undefined]))
    .digest("hex")
    .slice(0, 8);

/** Undefined: the mount has made no such change. */
export async function chooseRange(
  gateway: Gateway,
  author: Author,
  wish: Wish,
  isMeant: (...places: readonly Place[]) => Promise<boolean>,
): Promise<Choices | undefined> {
  const { last, since } = wish;
  const { at, countUntil, hasEnded } = newestFirst(gateway, author, isMeant);
  const newest = await at(0);
  const isBefore = ({ time }: JournalEntry) => since !== undefined && Date.parse(time) < since.getTime();
  if (newest === undefined || isBefore(newest)) return undefined;
  const undo = undoOf(newest);
  const afterUndone = undo === undefined ? 0 : await countUntil(({ position }) => position <= undo.to);
  const choice = async (count: number, ofUndo?: string): Promise<Choice> => {
    const from = (await at(count - 1))?.position ?? newest.position;
    const range = { ...author, from, to: newest.position, ofUndo };
    return { range, own: `undo-${from}-${range.to}-${wishOf(wish)}:` };
  };
  const next = async () => {
    if (last !== undefined) return choice(await countUntil((_, n) => n >= last));
    if (since !== undefined) return choice(await countUntil(isBefore));
    if (undo !== undefined) return choice(afterUndone, undo.own);
    return choice(await countUntil((entry, _, before) => undoOf(entry) !== undefined || isLongAfter(before, entry)));
  };
  const begun = async (): Promise<Choice | undefined> => {
    if (undo?.wish !== wishOf(wish) || hasEnded(undo.own)) return undefined;
    const { own, from, to } = undo;
    const undone = await at(afterUndone);
    const ofUndo = last === undefined && since === undefined && undone !== undefined ? undoOf(undone)?.own : undefined;
    return { own, range: { ...author, from, to, ofUndo } };
  };
  return { begun: await begun(), next: await next() };
}

interface Undo {
  readonly own: string;
  readonly from: number;
  readonly to: number;
  readonly wish: string;
}

function undoOf({ key }: JournalEntry): Undo | undefined {
  const [own, from, to, wish] = KEY.exec(key ?? "") ?? [];
  return own === undefined || wish === undefined ? undefined : { own, from: Number(from), to: Number(to), wish };
}

const isLongAfter = (later: JournalEntry, earlier: JournalEntry) =>
  Date.parse(later.time) - Date.parse(earlier.time) > PAUSE_MAX_MS;

/** The author's changes that match, counted from 0 (the newest). They are read on demand. */
function newestFirst(
  gateway: Gateway,
  { mount, account }: Author,
  isMeant: (...places: readonly Place[]) => Promise<boolean>,
) {
  const list = gateway.journal.list({ mount, before: true, orderBy: "-position", pageSize: 1000 });
  const entries = list[Symbol.asyncIterator]();
  const meant: JournalEntry[] = [];
  const ends = new Set<string>();
  const at = async (n: number): Promise<JournalEntry | undefined> => {
    while (meant.length <= n) {
      const next = await entries.next();
      if (next.done === true) return undefined;
      const { by, kind, key } = next.value;
      if (kind === UNDONE) ends.add(key ?? "");
      if (by?.account !== account || !CHANGE_KINDS.some((own) => own === kind)) continue;
      if (await isMeant(next.value, next.value.before ?? next.value)) meant.push(next.value);
    }
    return meant[n];
  };
  /** Counts the changes before the first one for which `isOver` is true; at least one. */
  const countUntil = async (isOver: (entry: JournalEntry, n: number, before: JournalEntry) => boolean) => {
    let before = await at(0);
    for (let n = 1; ; n += 1) {
      const entry = await at(n);
      if (entry === undefined || before === undefined || isOver(entry, n, before)) return n;
      before = entry;
    }
  };
  return { at, countUntil, hasEnded: (own: string) => ends.has(endKey(own)) };
}

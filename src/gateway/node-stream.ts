/**
 * All nodes below a folder as lines of JSON (application/x-ndjson), as of one position. Folder by folder, a folder
 * before those in it: a line {folder, asOf, after} begins the children of a folder, or some of them in the order of
 * names, and a line for each child follows. The last line is {complete, asOf, count}: an answer without it was cut off.
 * `after` goes on with its line, as of the same position.
 *
 * Lines are made when the reader takes them: a slow reader waits, and no lines pile up in memory. In memory are the
 * folders from the first one down to the current one, with a bounded number of their subfolders each.
 */
import { z } from "zod";
import { NODE_LINES } from "../contract/http.ts";
import { joinPath } from "../contract/names.ts";
import { roleIn } from "./access.ts";
import { shownPosition } from "./as-of.ts";
import type { Context } from "./context.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { sortedListing } from "./listing-rows.ts";
import { deltaSince, pageAfter, tooManyNewer } from "./marked-pages.ts";
import { nodesAsJson, presentChildren, type ShownChild } from "./node-json.ts";
import { MAIN, type NodeRow, nodeAt, pathOf, placeOf } from "./node-rows.ts";
import { badCursor, decodeCursor, encodeCursor, listMark } from "./paging.ts";
import { isBig } from "./places.ts";
import { compareText } from "./sorted-lists.ts";
import type { Store } from "./store.ts";
import { goodUntil } from "./tokens.ts";

/** Children read without a pause. */
const SLICE = 500;
/** Text, and slices, that make up a chunk. */
const CHUNK_LENGTH = 256 * 1024;
const CHUNK_SLICES = 100;
/** Subfolders of a folder that are remembered; the folder is read again for those after them. */
const SUBFOLDERS_MAX = 10_000;

/** [position, folder, name of the last child before or null, mark of the list]. */
const cursor = z.tuple([z.number().int().min(0), z.string(), z.string().nullable(), z.string()]);

/** The folder that a stream shows, and the position at which it is shown. */
interface Shown {
  readonly context: Context;
  readonly workspace: string;
  readonly root: string;
  readonly branch: string | undefined;
  readonly asOf: number;
  readonly mark: string;
}

/** `folderAt` returns the requested folder as it was at the position. */
export function linesBelow(
  context: Context,
  call: Call<"streamNodes">,
  folderAt: (asOf: number) => NodeRow,
): GatewayAnswer {
  const { store, clock, news, options } = context;
  const { at, after, branch } = call.query;
  const { caller } = call;
  const newest = shownPosition(context, at);
  const from = after === undefined || after === "" ? undefined : decodeCursor(after, cursor);
  const asOf = from?.[0] ?? newest;
  if (asOf > newest) throw badCursor();
  const row = folderAt(asOf);
  const mark = listMark([NODE_LINES, row.id, branch ?? null]);
  if (from !== undefined && from[3] !== mark) throw badCursor();
  const shown: Shown = { context, workspace: row.workspace, root: row.id, branch, asOf, mark };
  const root: Place = { id: row.id, path: pathOf(store, row, asOf) };
  const start = from === undefined ? { above: [], folder: root, after: null } : startAt(shown, root, from[1], from[2]);
  const rollbacks = store.rollbacks();
  // If a change was rolled back meanwhile, nodes that were read may never have existed, and others may be missing.
  const mayGoOn = () =>
    !news.ended &&
    store.rollbacks() === rollbacks &&
    goodUntil(caller, options.tokenSeconds) > clock.wallClock() &&
    caller.stands() &&
    roleIn(context, caller, row.workspace) !== undefined;
  return {
    status: 200,
    headers: { "content-type": NODE_LINES, "cache-control": "no-store" },
    body: { kind: "bytes", stream: chunks(shown, start, mayGoOn) },
  };
}

async function* chunks(shown: Shown, start: Start, mayGoOn: () => boolean): AsyncGenerator<Uint8Array> {
  const { asOf } = shown;
  let texts: string[] = [];
  let length = 0;
  let slices = 0;
  let count = 0;
  for await (const { text, nodes } of slicesFrom(shown, start)) {
    texts.push(text);
    length += text.length;
    slices += 1;
    count += nodes;
    // A slice that was only looked through took as long as one that is sent.
    if (text === "") await pause();
    if (length < CHUNK_LENGTH && slices < CHUNK_SLICES) continue;
    yield Buffer.from(texts.join(""));
    [texts, length, slices] = [[], 0, 0];
    await pause();
    if (!mayGoOn()) return;
  }
  if (!mayGoOn()) return;
  texts.push(`${JSON.stringify({ complete: true, asOf, count })}\n`);
  yield Buffer.from(texts.join(""));
}

/** Lets other requests be answered. */
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Place {
  readonly id: string;
  readonly path: string;
}

/** A folder whose children were sent, and whose subfolders are under way. */
interface Above extends Place {
  /** The next subfolders, the first one last. */
  readonly subfolders: Place[];
  /** The children up to this name were looked through for subfolders; undefined: all were. */
  lookedTo: string | undefined;
}

interface Start {
  /** From the requested folder down to the parent of `folder`. */
  readonly above: Above[];
  readonly folder: Place;
  /** The last child before, or null. */
  readonly after: string | null;
}

/** The place at which a stream that was cut off goes on: at the children after a name. */
function startAt(shown: Shown, root: Place, id: string, after: string | null): Start {
  const { store } = shown.context;
  const names: { readonly parent: string; readonly name: string }[] = [];
  for (let at = id; at !== root.id; ) {
    const place = placeOf(store, at, shown.asOf);
    if (place?.parent == null) throw badCursor();
    names.push({ parent: place.parent, name: place.name });
    at = place.parent;
  }
  const above: Above[] = [];
  let { path } = root;
  for (const { parent, name } of names.reverse()) {
    above.push({ id: parent, path, subfolders: [], lookedTo: name });
    path = joinPath(path, name);
  }
  return { above, folder: { id, path }, after };
}

interface Sent {
  readonly text: string;
  readonly nodes: number;
}

async function* slicesFrom(shown: Shown, { above, folder: first, after: firstAfter }: Start): AsyncGenerator<Sent> {
  let after = firstAfter;
  for (let folder: Place | undefined = first; folder !== undefined; ) {
    const own: Above = { ...folder, subfolders: [], lookedTo: "" };
    let isLooking = after === null;
    for (let more = true; more; ) {
      const children = await childrenAfter(shown, folder, after ?? "");
      yield { text: linesOf(shown, folder, after, children), nodes: children.length };
      after = children.at(-1)?.name ?? after;
      more = children.length === SLICE;
      if (isLooking) look(own, children);
      isLooking &&= own.subfolders.length <= SUBFOLDERS_MAX;
    }
    own.subfolders.reverse();
    above.push(own);
    after = null;
    folder = undefined;
    for (let last = above.at(-1); last !== undefined && folder === undefined; last = above.at(-1)) {
      folder = last.subfolders.pop();
      if (folder !== undefined) break;
      if (last.lookedTo === undefined) above.pop();
      else {
        look(last, await childrenAfter(shown, last, last.lookedTo));
        last.subfolders.reverse();
        // The reader may have gone, and others wait.
        yield { text: "", nodes: 0 };
      }
    }
  }
}

/** Notes the subfolders among the next children. */
function look(folder: Above, children: readonly ShownChild[]): void {
  for (const { id, kind, name } of children) {
    if (kind === "folder") folder.subfolders.push({ id, path: joinPath(folder.path, name) });
  }
  folder.lookedTo = children.length === SLICE ? children.at(-1)?.name : undefined;
}

function linesOf({ asOf, mark }: Shown, folder: Place, after: string | null, children: readonly ShownChild[]): string {
  const head = JSON.stringify({ folder: folder.id, asOf, after: encodeCursor([asOf, folder.id, after, mark]) });
  return `${[head, ...children.map(({ json }) => json)].join("\n")}\n`;
}

/** The next children of a folder as of the position, in the order of names. */
async function childrenAfter(shown: Shown, folder: Place, after: string): Promise<readonly ShownChild[]> {
  const { context, branch, asOf } = shown;
  const { store } = context;
  const isMain = branch === undefined || branch === MAIN;
  const isSimple =
    isMain && !hasLost(store, folder.id, asOf) && !(isBig(store, folder.id) && tooManyNewer(store, folder.id, asOf));
  if (isSimple) return presentChildren(store, folder, after, asOf, SLICE);
  const delta = deltaSince(store, folder.id, "name", asOf);
  if (delta !== undefined) {
    const page = { folder: folder.id, field: "name", descending: false, asOf, delta, limit: SLICE } as const;
    return shownChildren(shown, folder, pageAfter(store, page, after === "" ? undefined : [after, ""]));
  }
  const scope = { folder: folder.id, path: folder.path, recursive: false, branch, asOf };
  const rows = await sortedListing(context, shown.workspace, scope, "name");
  const start = rowAfter(store, rows, after, asOf);
  const ids = [...rows.subarray(start, start + SLICE)].map((row) => idOfRow(store, row));
  return shownChildren(shown, folder, ids);
}

function hasLost(store: Store, folder: string, asOf: number): boolean {
  return (
    store.prepare("SELECT 1 FROM past_place WHERE parent = ? AND until > ? LIMIT 1").get(folder, asOf) !== undefined
  );
}

function shownChildren({ context, branch, asOf }: Shown, folder: Place, ids: readonly string[]): ShownChild[] {
  const { store } = context;
  const texts = nodesAsJson(store, { by: "id", refs: ids }, folder.id, asOf, branch);
  return ids.map((id, index) => {
    const row = nodeAt(store, id, asOf);
    if (row === undefined) throw new Error(`Node ${id} was not there at ${asOf}.`);
    return { id, kind: row.kind, name: row.name, json: texts[index] ?? "" };
  });
}

const idOfRow = (store: Store, row: number) =>
  store.prepare<string>("SELECT id FROM node WHERE rowid = ?").pluck().get(row) ?? "";

/** The index of the first row whose name follows `after`. */
function rowAfter(store: Store, rows: Float64Array, after: string, asOf: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const name = placeOf(store, idOfRow(store, rows[middle] ?? 0), asOf)?.name ?? "";
    if (compareText(name, after) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Lists the changes that wait to be sent, row by row, with the reason in words for people. Changes nothing. */
import { minus, type RowTime } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { InodeId } from "../../metadata/ids.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { QueueItem } from "../api/index.ts";
import { type Host, type LocalFiles, type Remote, type Request, type Rows, scopesOf } from "../core/index.ts";
import { QUARANTINE_REASON, type Step, type Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing, WriteBack } from "../upload/index.ts";

/** How many rows a slice has at most, and about how long it may take. */
const SLICE = 40;
const SLICE_MS = 3;
/** A path with more folders than this is taken for a cycle in the gateway's answers. */
const DEPTH_MAX = 1000;

/** The path in the mount. For a deletion: where the node was, or where an abandoned request would have created it. */
export function pathOfEntry(context: Pick<Rows & Tree, "metadata" | "nodeRows">, row: NodeRow): string {
  const { entries } = context.metadata;
  const entry = row.entry === null ? undefined : entries.get(row.entry);
  if (entry !== undefined)
    return entry.parent === entry.inode ? "/" : join(pathOfFolder(context, entry.parent), entry.name);
  const place = row.base ?? creationPlaceOf(context, row);
  const names = [place?.name ?? "?"];
  for (let parent = place?.parent ?? null; parent !== null && names.length < DEPTH_MAX; ) {
    const folder = context.nodeRows.folderOfNode(parent);
    if (folder !== undefined) return join(pathOfFolder(context, folder), names.join("/"));
    // The folder was removed too.
    const former = context.metadata.nodes.ofNodeId(parent)?.base;
    if (former == null) break;
    names.unshift(former.name);
    ({ parent } = former);
  }
  return `…/${names.join("/")}`;
}

function creationPlaceOf({ metadata }: Pick<Rows, "metadata">, { id }: NodeRow) {
  const requests = [metadata.attempts.openOf(id), ...metadata.attempts.abandonedOf(id)].map((one) => one?.request);
  return requests.find((request) => request?.do === "upload" || request?.do === "folder" || request?.do === "copy");
}

function pathOfFolder(context: Pick<Rows, "metadata">, folder: InodeId): string {
  const names: string[] = [];
  let current = folder;
  while (current !== ROOT_INODE) {
    const [entry] = context.metadata.entries.ofInode(current);
    if (entry === undefined) return `…/${names.join("/")}`;
    names.unshift(entry.name);
    current = entry.parent;
  }
  return `/${names.join("/")}`;
}

function join(folder: string, name: string): string {
  return folder.endsWith("/") ? `${folder}${name}` : `${folder}/${name}`;
}

/**
 * Lists at most `limit` changes: first those being sent, then the parked ones, then the others by age. They come in
 * short slices, with other work in between. Throws when the rows cannot be read.
 */
export async function* listQueue(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  inFlight: WriteBack["inFlight"],
  limit: number,
): AsyncGenerator<QueueItem[]> {
  const { nodes } = context.metadata;
  const sending = new Map(inFlight().map((item) => [item.node, item.sent]));
  let left = limit;
  const first = [...sending.keys()].flatMap((id) => nodes.get(id) ?? []).slice(0, left);
  left -= first.length;
  yield first.map((row) => itemOf(context, row, sending.get(row.id)));
  for (const list of [nodes.parked, nodes.dirty]) {
    for await (const rows of inSlices(context, list)) {
      const isParked = list === nodes.parked;
      const listed = rows.filter((row) => !sending.has(row.id) && (row.parked !== null) === isParked).slice(0, left);
      left -= listed.length;
      yield listed.map((row) => itemOf(context, row, undefined));
      if (left === 0) return;
    }
  }
}

/** Slices of rows whose work takes a few milliseconds each, with other work in between. */
export async function* inSlices(
  { runtime }: Pick<Host, "runtime">,
  list: (limit: number, after?: NodeRow) => NodeRow[],
): AsyncGenerator<NodeRow[]> {
  for (let after: NodeRow | undefined, size = SLICE; ; ) {
    const rows = list(size, after);
    if (rows.length === 0) return;
    after = rows.at(-1);
    const begun = runtime.elapsed();
    yield rows;
    const took = minus(runtime.elapsed(), begun);
    size =
      took > SLICE_MS ? Math.max(1, Math.floor(size / 2)) : took < SLICE_MS / 3 ? Math.min(SLICE, size + 10) : size;
    await sleep(runtime, 0);
  }
}

/** The queue item of a row. `sent`: bytes handed to the network; undefined: the row is not in flight. */
export function itemOf(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  row: NodeRow,
  sent: number | undefined,
): QueueItem {
  const { metadata, runtime } = context;
  const attempt = metadata.attempts.openOf(row.id) ?? context.planner.exchangeOf(row);
  const step = context.planner.step(row);
  const error = row.parked ?? attempt?.lastError ?? undefined;
  const { state, why, at } = stateOf(context, row, attempt, step, sent !== undefined);
  const waitMs = at === undefined ? 0 : minus(at, runtime.now());
  return {
    path: pathOfEntry(context, row),
    what: whatOf(context, row, attempt?.request ?? (step.do === "send" ? step.request : undefined)),
    state,
    why: waitMs > 0 ? `${why} (in ${(waitMs / 1000).toFixed(1)} s)` : why,
    bytes: bytesOf(context, row),
    bytesSent: sent ?? 0,
    tries: attempt?.tries ?? 0,
    ageMs: row.dirtySince === null ? 0 : runtime.ageOf(row.dirtySince),
    ...(waitMs > 0 ? { nextTryMs: waitMs } : {}),
    ...(error === undefined ? {} : { error }),
  };
}

interface State {
  readonly state: QueueItem["state"];
  readonly why: string;
  /** The time of the next try. */
  readonly at?: RowTime;
}

const WAITING: Readonly<Record<Exclude<Extract<Step, { do: "wait" }>["for"], "scope">, string>> = {
  answer: "an earlier request may still arrive",
  parent: "its folder has to be sent first",
  children: "the files and folders in it have to go first",
  name: "another file or folder has to leave the name first",
  names: "the mount that changed its other names brings them together",
  writer: "still being written",
  look: "a program has it open for writing: it is checked for changes",
  quota: "the workspace is over quota",
  reference: "its content is still needed by another one",
};

function stateOf(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  row: NodeRow,
  attempt: Attempt<Request> | undefined,
  step: Step,
  isSending: boolean,
): State {
  const { runtime, metadata } = context;
  if (isSending) return { state: "sending", why: "on its way" };
  if (row.parked !== null)
    return { state: "parked", why: row.parked === QUARANTINE_REASON ? QUARANTINE_REASON : `refused: ${row.parked}` };
  const other = attempt === undefined || attempt.node === row.id ? undefined : metadata.nodes.get(attempt.node);
  if (other !== undefined) {
    const { why, ...rest } = stateOf(context, other, attempt, step, false);
    return { ...rest, why: `exchanged with ${pathOfEntry(context, other)} by one request: ${why}` };
  }
  if (isLost(context, row)) return { state: "waiting", why: "its bytes went with the state dir" };
  if (attempt === undefined && step.do === "wait") {
    if (step.for === "scope") return { state: "waiting", why: whatIsLacking(context, row) };
    if (step.for === "writer") return { state: "open", why: unreadableWhy(context, row) ?? WAITING.writer };
    const excess = step.for === "quota" ? context.quota.excess(context.planner.growthOf(row)) : undefined;
    return { state: "waiting", why: excess ?? WAITING[step.for] };
  }
  const pauseReason = context.pauses.reason();
  const unreadable = attempt === undefined && pauseReason === undefined ? unreadableWhy(context, row) : undefined;
  if (unreadable !== undefined) return { state: "retry", why: unreadable, at: row.due ?? runtime.now() };
  if (attempt !== undefined && attempt.lastError !== null) {
    const why = `tried ${attempt.tries === 1 ? "once" : `${attempt.tries} times`}: ${attempt.lastError}`;
    if (pauseReason === undefined) return { state: "retry", why, at: attempt.nextAt };
    return { state: "waiting", ...pauseReason, why: `${pauseReason.why}; ${why}` };
  }
  if (pauseReason !== undefined) return { state: "waiting", ...pauseReason };
  const inode = inodeOf(context, row);
  const snapshot =
    attempt === undefined && inode !== undefined ? context.fileState.snapshotsUnderWay.get(inode.id) : undefined;
  if (snapshot !== undefined) {
    const seconds = (minus(runtime.elapsed(), snapshot.since) / 1000).toFixed(1);
    return { state: "due", why: `its content is being ${snapshot.what} before it is sent, for ${seconds} s` };
  }
  const at = attempt?.nextAt ?? row.due ?? runtime.now();
  if (attempt === undefined && at > runtime.now()) {
    if (isOpen(context, row)) return { state: "open", why: WAITING.writer, at };
    if (row.nodeId !== null && metadata.rereads.missingSince(row.nodeId) !== undefined) {
      return {
        state: "waiting",
        why: "the gateway does not find it any more: it counts as removed there if that stays so",
        at,
      };
    }
    return { state: "quiet", why: "more changes are waited for", at };
  }
  return { state: "due", why: "next in turn" };
}

function unreadableWhy(context: Rows & LocalFiles, row: NodeRow): string | undefined {
  const inode = inodeOf(context, row);
  const unreadable = inode && context.readFailures.get(inode.kernelNodeId);
  if (unreadable === undefined) return undefined;
  return `its content could not be read ${unreadable.tries} times: ${unreadable.why}`;
}

/** The scopes that the token lacks, and the gateway's words about them. */
function whatIsLacking({ network }: Remote, row: NodeRow): string {
  const kind = row.entry === null ? "delete" : row.nodeId === null ? "upload" : "patch";
  const missing = scopesOf(kind).filter((scope) => !network.may(scope));
  const said = missing.flatMap((scope) => network.refusals.get(scope) ?? []);
  const lacks = `the token lacks ${missing.join(", ")}, it goes with one that has it`;
  return said.length === 0 ? lacks : `${lacks}: ${[...new Set(said)].join("; ")}`;
}

function whatOf(context: Rows, row: NodeRow, request: Request | undefined): QueueItem["what"] {
  switch (request?.do) {
    case "folder":
    case "upload":
    case "copy":
    case "delete":
      return request.do;
    case "content":
    case "reference":
      return "version";
    case "exchange":
      return "move";
    case "patch":
      return request.name === undefined ? "attributes" : "move";
  }
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  if (entry === undefined) return "delete";
  if (row.base === null) return row.kind === "folder" ? "folder" : "upload";
  if ((entry.gatewayName ?? entry.name) !== row.base.name) return "move";
  return bytesOf(context, row) > 0 || isAnothers(context, row) ? "version" : "attributes";
}

/** True: the content is that of another node, so the gateway has it. */
function isAnothers(context: Rows, row: NodeRow): boolean {
  const inode = inodeOf(context, row);
  if (inode?.kind !== "file" || inode.content !== "clean" || inode.originVersion === row.base?.head) return false;
  return inode.hash === null || inode.hash !== row.base?.hash;
}

/** Bytes of content that the gateway does not have yet. */
function bytesOf(context: Rows, row: NodeRow): number {
  const inode = inodeOf(context, row);
  if (inode === undefined || inode.kind !== "file" || inode.content === "clean") return 0;
  return inode.hash !== null && inode.hash === row.base?.hash ? 0 : inode.size;
}

/** True: the unsent bytes went with the state dir, because the file is not open. */
function isLost(context: Rows & LocalFiles, row: NodeRow): boolean {
  const inode = inodeOf(context, row);
  if (context.disk.trouble !== "gone" || inode === undefined || bytesOf(context, row) === 0) return false;
  return !context.cacheFiles.has(inode.kernelNodeId);
}

function isOpen(context: Rows & LocalFiles, row: NodeRow): boolean {
  const inode = inodeOf(context, row);
  return inode !== undefined && context.cacheFiles.writersOf(inode) > 0;
}

function inodeOf({ metadata }: Rows, row: NodeRow) {
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  return entry === undefined ? undefined : metadata.inodes.get(entry.inode);
}

/** The kinds of changes that are not sent, one line each: the token lacks a scope, or the workspace has no room. */
export function pausedKinds({ network, readOnly, quota }: Remote): string[] {
  if (readOnly.why !== undefined) return [];
  const excess = quota.excess();
  const kinds = { "new files and folders": "upload", changes: "patch", deletions: "delete" } as const;
  const forbidden = Object.entries(kinds).flatMap(([name, kind]) => {
    const missing = scopesOf(kind).filter((scope) => !network.may(scope));
    return missing.length === 0 ? [] : [`${name} wait: the token lacks ${missing.join(", ")}`];
  });
  return excess === undefined ? forbidden : [...forbidden, `changes that do not fit wait: ${excess}`];
}

/**
 * Selects the remote changes that are replayed through the mount (api/replay.ts): changes of a commit that no request
 * of the kernel asked for. A change is replayed only where a program watches, and only as far as it still holds when
 * its turn comes.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { NameInFolder } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { EVERYTHING, type KernelNodeId, type Replay, type Replays, type Watched } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { completeFolder } from "./listing.ts";

/** A change to replay. It becomes one or several replays. */
type What =
  | (NameInFolder & { readonly what: "name"; readonly before: InodeId | null })
  | { readonly what: "move"; readonly inode: InodeId; readonly from: NameInFolder; readonly to: NameInFolder }
  | { readonly what: "content" | "attributes"; readonly inode: InodeId };
/** `noted`: the number of questions for the watched inodes before the change. */
type Change = What & { readonly noted: number };

/** The most changes that wait. The kernel keeps no more events either for a program that does not read them. */
const WAITING_MAX = 10_000;
/** The most places that are remembered, those with a finished change included. */
const PLACES_MAX = 2 * WAITING_MAX;
/** The most names, and the most kernel node ids, of one file that are replayed. */
const EACH_MAX = 8;

const keyOf = ({ folder, name }: NameInFolder) => `${folder}/${name}`;
/** False: a temporary name, which no program can use. The entry waits for its name, or makes way for a moment. */
const isShown = (name: string) => name !== "" && !name.includes("/");

/** Notes the changes of commits, and gives out the replays one at a time. */
export function createReplays(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync): Replays {
  const { metadata, log } = context;
  const { cache } = context.kernel;
  /** By subject, so that a subject that changes again before its turn is replayed once. */
  const waiting = new Map<string, Change>();
  /** Places that were empty before a change. `isTold`: the kernel has heard of the new entry since. */
  const filled = new Map<string, { isKnownToKernel: boolean }>();
  /** Places that are empty since a change. */
  const emptied = new Set<string>();
  let steps: Replay[] = [];
  let current: Replay | undefined;
  /** The current replay makes a name that the kernel knew already, and the kernel was made to ask for it again. */
  let isAskedAgain = false;
  /** The replay that failed once and is tried a second time. */
  let repeated: Replay | undefined;
  let watched: Watched = new Set();
  /** `asked`: the questions for the watched inodes so far. `answered`: the one of them that `watched` answers. */
  let asked = 0;
  let answered = 0;
  /** Since the last question, a program was shown a folder whose names are not known here. The program may watch it. */
  let isUnknownShown = false;
  let pauses = 0;
  let begin: (() => void) | undefined;
  let sought: { readonly name: string; by: number | undefined } | undefined;

  const inodeAt = ({ folder, name }: NameInFolder) => metadata.entries.find(folder, name)?.inode;

  function add(key: string, what: What): void {
    if (waiting.size >= WAITING_MAX || filled.size + emptied.size >= PLACES_MAX || waiting.has(key)) return;
    waiting.set(key, { ...what, noted: asked });
    if (waiting.size === WAITING_MAX) log.warn({}, "more changes than are told to programs that watch for them");
    if (what.what === "move") {
      filled.set(keyOf(what.to), { isKnownToKernel: false });
      emptied.add(keyOf(what.from));
    } else if (what.what === "name") {
      if (what.before === null) filled.set(keyOf(what), { isKnownToKernel: false });
      else emptied.add(keyOf(what));
    }
  }

  function addMove(inode: InodeId, from: NameInFolder, to: NameInFolder): void {
    const key = `move ${inode}`;
    const before = waiting.get(key);
    waiting.delete(key);
    add(key, { what: "move", inode, from: before?.what === "move" ? before.from : from, to });
  }

  /**
   * True: the inode has only one kernel node id. The kernel itself reports changes by programs here, but not to
   * watchers that know the inode by an earlier number.
   */
  const hasOneNumber = (inode: InodeId) => metadata.inodes.kernelNodeIds(inode).length === 1;

  /**
   * True: two inodes turned out to be one file of a hard link group (link-groups.ts). The file was not written, and its
   * further name is replayed anyway.
   */
  function isSameFile(before: InodeId | null, inode: InodeId | undefined): boolean {
    const [former, now] = [before, inode].map((id) => (id == null ? undefined : metadata.inodes.get(id)));
    if (former === undefined || now === undefined || former.hash === null) return false;
    return former.linkGroup !== null && former.linkGroup === now.linkGroup && former.hash === now.hash;
  }

  function note({ names, inodes, made, switched, ours }: Changed): void {
    const left = new Map<InodeId, NameInFolder>();
    const came: (NameInFolder & { inode: InodeId })[] = [];
    for (const [folder, among] of names) {
      // The folder is not listed yet. Names that come with its first list are no change.
      if ((metadata.inodes.get(folder)?.listed ?? null) === null) continue;
      for (const [name, before] of among) {
        const inode = inodeAt({ folder, name });
        if (!isShown(name) || inode === (before ?? undefined)) continue;
        if (before !== null && inode === undefined) left.set(before, { folder, name });
        else if (before === null && inode !== undefined) came.push({ folder, name, inode });
        else if (!isSameFile(before, inode))
          add(`name ${keyOf({ folder, name })}`, { what: "name", folder, name, before });
      }
    }
    const named = new Set(left.keys());
    for (const { inode, ...place } of came) {
      const from = left.get(inode);
      named.add(inode);
      if (from === undefined) add(`name ${keyOf(place)}`, { what: "name", ...place, before: null });
      else addMove(inode, from, place);
      left.delete(inode);
    }
    for (const [before, place] of left) {
      const key = `name ${keyOf(place)}`;
      const [move, name] = [waiting.get(`move ${before}`), waiting.get(key)];
      filled.delete(keyOf(place));
      // If the inode came to this place by a change that was not replayed yet, the two cancel out.
      if (name?.what === "name" && name.before === null) waiting.delete(key);
      else if (move?.what !== "move" || keyOf(move.to) !== keyOf(place)) add(key, { what: "name", ...place, before });
    }
    for (const inode of inodes) {
      if (switched.has(inode)) add(`content ${inode}`, { what: "content", inode });
      // A changed link count is replayed with the name, and changed times of a folder with its names.
      else if (!named.has(inode) && !made.has(inode) && metadata.inodes.get(inode)?.kind !== "folder") {
        if (!(ours.has(inode) && hasOneNumber(inode))) add(`attributes ${inode}`, { what: "attributes", inode });
      }
    }
  }

  function clearPlaces(): void {
    filled.clear();
    emptied.clear();
  }

  const isWatched = (inode: InodeId | null) => watched.has(EVERYTHING) || (inode !== null && watched.has(inode));

  function isUnknown(inode: InodeId): boolean {
    const folder = metadata.inodes.get(inode);
    return folder?.kind === "folder" && folder.listed === null;
  }

  async function list(folder: InodeId): Promise<void> {
    await completeFolder(context, folder, context.fileState.stopped).catch((error: unknown) => {
      log.debug({ err: error, folder }, "a folder that is watched could not be listed");
    });
  }

  function isHeard(change: Change): boolean {
    switch (change.what) {
      case "name":
        return isWatched(change.folder) || isWatched(change.before);
      case "move":
        return isWatched(change.from.folder) || isWatched(change.to.folder) || isWatched(change.inode);
      default:
        return (
          isWatched(change.inode) || metadata.entries.ofInode(change.inode).some(({ parent }) => isWatched(parent))
        );
    }
  }

  function stepsOf(change: Change): Replay[] {
    switch (change.what) {
      case "name": {
        const { folder, name, before } = change;
        return stepsOfName({ folder, name }, before);
      }
      case "move":
        return stepsOfMove(change.inode, change.from, change.to);
      default: {
        const { inode, what } = change;
        const names = metadata.entries.ofInode(inode);
        const among = isWatched(inode) ? names : names.filter(({ parent }) => isWatched(parent));
        const places = among.slice(0, EACH_MAX).map(({ parent, name }) => ({ folder: parent, name }));
        return places.flatMap((place) => stepsOfInode(inode, what, place));
      }
    }
  }

  function stepsOfMove(inode: InodeId, from: NameInFolder, to: NameInFolder): Replay[] {
    if (inodeAt(from) !== undefined || inodeAt(to) !== inode)
      return [...stepsOfName(from, inode), ...stepsOfName(to, null)];
    return isUnreported(to) ? [{ what: "moved", ...from, inode, to }] : movedAlready(inode, from, to);
  }

  /** The replays of a move if the kernel already knows the inode at its new place. */
  function movedAlready(inode: InodeId, from: NameInFolder, to: NameInFolder): Replay[] {
    const { kind, kernelNodeId } = metadata.inodes.get(inode) ?? {};
    if (kernelNodeId === undefined || inodeAt(from) !== undefined) return [];
    const gone: Replay = {
      what: "gone",
      ...from,
      kind: kind === "folder" ? "folder" : "file",
      kernelNodeId: undefined,
    };
    return [gone, { what: "attributes", ...to, kernelNodeId }];
  }

  function stepsOfName(place: NameInFolder, before: InodeId | null): Replay[] {
    const id = inodeAt(place);
    const inode = id === undefined ? undefined : metadata.inodes.get(id);
    if (inode === undefined) return before === null ? [] : stepsOfGone(place, before);
    // Another file has the place. Programs hear of a write, as of a save by a rename over the old file.
    if (before !== null) return stepsOfInode(inode.id, inode.kind === "file" ? "content" : "attributes", place);
    if (!isUnreported(place) && !canAskAgain(place)) return stepsOfKnown(inode, place);
    return [{ what: "made", ...place, kind: inode.kind }, ...closed(inode, place, inode.kernelNodeId)];
  }

  /** The replays of a new entry whose name the kernel already knows. A second name of a file is not a write. */
  function stepsOfKnown({ id, kind }: Inode, place: NameInFolder): Replay[] {
    const isWritten = filled.has(keyOf(place)) && kind === "file" && metadata.entries.links(id) === 1;
    return stepsOfInode(id, isWritten ? "content" : "attributes", place);
  }

  function stepsOfGone(place: NameInFolder, before: InodeId): Replay[] {
    const former = metadata.inodes.get(before);
    const [elsewhere] = metadata.entries.ofInode(before);
    // The inode was moved by two commits. A program that works in it must not hear that it is gone.
    if (former?.linkGroup === null && elsewhere !== undefined) {
      return stepsOfMove(before, place, { folder: elsewhere.parent, name: elsewhere.name });
    }
    if (former?.kind !== "file" || elsewhere !== undefined) {
      // A folder that was removed by its own kernel node id could take no name any more if it came back.
      return [{ what: "gone", ...place, kind: former?.kind === "folder" ? "folder" : "file", kernelNodeId: undefined }];
    }
    // The loss of its name gave the inode a new kernel node id (files/orphans.ts), of which the kernel was not told.
    const kernelNodeId = metadata.inodes.kernelNodeIds(before).at(-2) ?? former.kernelNodeId;
    return [{ what: "gone", ...place, kind: "file", kernelNodeId }];
  }

  /**
   * The replays of a change of the inode. A program that watches it may know it by an earlier kernel node id, so the
   * change is replayed for each number.
   */
  function stepsOfInode(id: InodeId, what: "content" | "attributes", place: NameInFolder): Replay[] {
    const inode = metadata.inodes.get(id);
    if (inode === undefined) return [];
    const earlier = isWatched(id)
      ? metadata.inodes.kernelNodeIds(id).filter((kernelNodeId) => kernelNodeId !== inode.kernelNodeId)
      : [];
    const all = [...earlier.slice(1 - EACH_MAX), inode.kernelNodeId];
    if (what === "attributes") return all.map((kernelNodeId) => ({ what, ...place, kernelNodeId }));
    return all.flatMap((kernelNodeId) => [
      { what: "written", ...place, kernelNodeId },
      ...closed(inode, place, kernelNodeId),
    ]);
  }

  /**
   * The replay of the close after a write. There is none for an executable, which could not be started while it seems
   * to be open for writing.
   */
  function closed({ kind, attributes }: Inode, place: NameInFolder, kernelNodeId: KernelNodeId): Replay[] {
    const isWritable = kind === "file" && ((attributes.mode ?? 0) & 0o111) === 0;
    return isWritable ? [{ what: "closed", ...place, kernelNodeId }] : [];
  }

  /**
   * True: the entry may be replayed as made. The kernel believes the size in the answer to a creation, even if a
   * writer, perhaps by another name, has changed the size since. So a file with writers or with other names does not
   * count as new.
   */
  function isNew(place: NameInFolder): boolean {
    const inode = inodeAt(place);
    const row = inode === undefined ? undefined : metadata.inodes.get(inode);
    if (row === undefined || !filled.has(keyOf(place))) return false;
    return row.kind !== "file" || (context.cacheFiles.writersOf(row) === 0 && metadata.entries.links(row.id) === 1);
  }

  const isUnreported = (place: NameInFolder) => isNew(place) && filled.get(keyOf(place))?.isKnownToKernel === false;
  const canAskAgain = (place: NameInFolder) => isNew(place) && cache.expireNow !== undefined && cache.expiresNames;

  function takeNext(): Replay | undefined {
    while (steps.length === 0) {
      const [first] = waiting;
      if (first === undefined) return undefined;
      const [key, change] = first;
      const isChangeHeard = isHeard(change);
      // A program may have begun to watch after the last answered question and before the change. The next answer
      // decides.
      if (!isChangeHeard && change.noted >= answered) return undefined;
      waiting.delete(key);
      const all = isChangeHeard ? stepsOf(change) : [];
      steps = all.filter((step) => isShown(step.name) && (step.what !== "moved" || isShown(step.to.name)));
    }
    return steps.shift();
  }

  return {
    by: undefined,
    formerly: new Set(),
    seek(name) {
      const one = { name, by: undefined };
      sought = one;
      return () => one.by;
    },
    isSought(name, by) {
      if (name !== sought?.name) return false;
      sought.by = by;
      return true;
    },
    note(changed) {
      if (begin === undefined) return;
      note(changed);
      if (waiting.size > 0) begin();
    },
    get isAnyPlace() {
      return filled.size + emptied.size > 0;
    },
    kernelKnows(place) {
      const one = filled.get(keyOf(place));
      if (one !== undefined) one.isKnownToKernel = true;
    },
    madeHere: (place) => void filled.delete(keyOf(place)),
    isToGo: (place) => emptied.has(keyOf(place)),
    mayBeWatched(folder) {
      if (begin === undefined || isUnknownShown || !isUnknown(folder)) return;
      isUnknownShown = true;
      begin();
    },
    onAny(next) {
      begin = next;
    },
    get isAny() {
      return pauses === 0 && (isUnknownShown || waiting.size + steps.length > 0);
    },
    asking() {
      asked += 1;
      const asOf = asked;
      isUnknownShown = false;
      return (inodes) => {
        answered = asOf;
        watched = inodes;
        for (const folder of watched) {
          if (folder !== EVERYTHING && isUnknown(folder))
            context.background("listing a folder that is watched", () => list(folder));
        }
      };
    },
    next() {
      current = pauses > 0 ? undefined : takeNext();
      isAskedAgain = false;
      if (waiting.size + steps.length === 0 && current === undefined) clearPlaces();
      return current;
    },
    get current() {
      return current;
    },
    async prepare(isCovered) {
      const of = current;
      if (of?.what !== "made" || isUnreported(of) || !canAskAgain(of) || isCovered()) return;
      const folder = metadata.inodes.get(of.folder);
      if (folder !== undefined) await cache.expireNow?.(folder.kernelNodeId, of.name);
      if (current === of) isAskedAgain = true;
    },
    isMaking(place) {
      if (current?.what !== "made" || keyOf(place) !== keyOf(current)) return false;
      return isAskedAgain ? isNew(place) : isUnreported(place);
    },
    failed(isFolder) {
      if (current === undefined) return;
      const { folder, name } = current;
      const id = inodeAt(current);
      const inode = id === undefined ? undefined : metadata.inodes.get(id);
      if (current.what === "made" && inode !== undefined) {
        // Either an answer that was under way told the kernel of the name again, or a program writes to the file by
        // now.
        const isOnceMore = repeated !== current && canAskAgain(current);
        repeated = current;
        steps = isOnceMore ? [current, ...steps] : stepsOfKnown(inode, { folder, name });
      }
      if (current.what === "moved") steps = movedAlready(current.inode, { folder, name }, current.to);
      // The rows do not know the kind of the entry any more, but the kernel may know that it was a folder.
      else if (current.what === "gone" && isFolder)
        steps.unshift({ ...current, kind: "folder", kernelNodeId: undefined });
    },
    drop() {
      current = undefined;
      steps = [];
      waiting.clear();
      clearPlaces();
      isUnknownShown = false;
    },
    pause() {
      pauses += 1;
      return () => {
        pauses -= 1;
        if (waiting.size + steps.length > 0) begin?.();
      };
    },
    isUnreported,
    pathOf(folder) {
      const names: string[] = [];
      for (let id = folder; id !== ROOT_INODE; ) {
        const entry = metadata.entries.firstOfInode(id);
        if (entry === undefined || !isShown(entry.name)) return undefined;
        names.unshift(entry.name);
        id = entry.parent;
      }
      return names.join("/");
    },
  };
}

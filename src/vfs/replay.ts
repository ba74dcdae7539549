/**
 * The kernel tells programs that watch files (inotify) of what comes through the mount, and of nothing else. So what
 * others did is done once more through it, by a process of its own (daemon/replayer.ts), which is answered as if that
 * were the change (replayed.ts). Here: what there is to be done again, from what a commit changed without the
 * kernel's having asked; only where somebody watches, and only what still holds when its turn comes.
 */
import type { Changed } from "../metadata/changed.ts";
import type { Inode, InodeKind } from "../metadata/inodes.ts";
import { ROOT_INODE } from "../metadata/metadata.ts";
import { inBackground } from "./byte-state.ts";
import type { Context } from "./context.ts";
import type { Lineage } from "./filesystem.ts";
import { completeFolder } from "./listing.ts";

/** A name in a folder (an inode). */
export interface Place {
  readonly folder: number;
  readonly name: string;
}

/** One call on one name. */
export type Replay = Place &
  (
    | { readonly what: "made"; readonly kind: InodeKind }
    /** `lineage`: what the kernel may know it by. */
    | { readonly what: "gone"; readonly kind: "file" | "folder"; readonly lineage: Lineage | undefined }
    | { readonly what: "moved"; readonly inode: number; readonly to: Place }
    /** As a write, a change of attributes, a close after writing would be told of; by the number the kernel may know the inode by. */
    | { readonly what: "written" | "attributes" | "closed"; readonly lineage: Lineage }
  );

/** What others changed, told of by one or several replays. */
type Change =
  | (Place & { readonly what: "name"; readonly before: number | null })
  | { readonly what: "move"; readonly inode: number; readonly from: Place; readonly to: Place }
  | { readonly what: "content" | "attributes"; readonly inode: number };

export interface Replays {
  /** The thread of the process that replays, as the kernel names it; undefined: there is none. */
  by: number | undefined;
  /** Of a daemon before this one: what it was about to do is not to be done. */
  formerly: number | undefined;
  /** Who looks up this name in the root next; undefined: nobody did so far. */
  seek(name: string): () => number | undefined;
  /** A name was looked up. */
  lookedUp(name: string, by: number): void;
  /** To be called with each commit. */
  note(changed: Changed): void;
  /** A program was shown a folder, and may watch it from now on. */
  shown(inode: number, kind: InodeKind): void;
  /** Called when there is something to replay, or who watches is to be found out; until then nothing is noted. */
  onAny(begin: () => void): void;
  readonly isAny: boolean;
  /** Inodes that somebody watches. What is to be heard in folders among them has to be known first: they are listed. */
  watch(inodes: ReadonlySet<number>): void;
  /** The next, which is under way until the one after it, or the end of them: undefined. */
  next(): Replay | undefined;
  readonly current: Replay | undefined;
  /** From the root, without a slash at either end; undefined: the folder has no path. */
  pathOf(folder: number): string | undefined;
}

/** More are not replayed: the kernel keeps no more for a program that does not listen either. */
const WAITING_MAX = 10_000;
/** Of the names and earlier lineages of one file. */
const EACH_MAX = 8;

export function createReplays(context: Context): Replays {
  const { metadata, log } = context;
  /** By what they are about: what changes again before its turn is told of once. */
  const waiting = new Map<string, Change>();
  let steps: Replay[] = [];
  let current: Replay | undefined;
  let watched: ReadonlySet<number> = new Set();
  /** A folder was shown since they were asked for of which it is not known what is in it. */
  let isUnknownShown = false;
  let begin: (() => void) | undefined;
  let sought: { readonly name: string; by: number | undefined } | undefined;

  function add(key: string, change: Change): void {
    if (waiting.size >= WAITING_MAX) return;
    if (waiting.size === WAITING_MAX - 1) log.warn({}, "more changes than are told to programs that watch for them");
    if (!waiting.has(key)) waiting.set(key, change);
  }

  function note({ names, inodes, made, switched }: Changed): void {
    const now = (folder: number, name: string) => metadata.entries.find(folder, name)?.inode;
    const left = new Map<number, Place>();
    const came: (Place & { inode: number })[] = [];
    for (const [folder, among] of names) {
      // A folder that fills for the first time: that is nobody's change.
      if ((metadata.inodes.get(folder)?.listed ?? null) === null) continue;
      for (const [name, before] of among) {
        const inode = now(folder, name);
        if (name.includes("/") || inode === (before ?? undefined)) continue;
        if (before !== null && inode === undefined) left.set(before, { folder, name });
        else if (before === null && inode !== undefined) came.push({ folder, name, inode });
        else add(`name ${folder}/${name}`, { what: "name", folder, name, before });
      }
    }
    const named = new Set(left.keys());
    for (const { folder, name, inode } of came) {
      const from = left.get(inode);
      named.add(inode);
      if (from === undefined) add(`name ${folder}/${name}`, { what: "name", folder, name, before: null });
      else add(`move ${inode} ${folder}/${name}`, { what: "move", inode, from, to: { folder, name } });
      left.delete(inode);
    }
    for (const [before, { folder, name }] of left)
      add(`name ${folder}/${name}`, { what: "name", folder, name, before });
    for (const inode of inodes) {
      if (switched.has(inode)) add(`content ${inode}`, { what: "content", inode });
      // A name more or less is told of already, and by the times of its folder.
      else if (!named.has(inode) && !made.has(inode) && metadata.inodes.get(inode)?.kind !== "folder") {
        add(`attributes ${inode}`, { what: "attributes", inode });
      }
    }
  }

  const isWatched = (inode: number | null) => inode !== null && watched.has(inode);

  function isUnknown(inode: number): boolean {
    const folder = metadata.inodes.get(inode);
    return folder?.kind === "folder" && folder.listed === null;
  }

  async function list(folder: number): Promise<void> {
    await completeFolder(context, folder, context.bytes.stopped.signal).catch((error: unknown) => {
      log.debug({ err: error, folder }, "a folder that is watched could not be listed");
    });
  }

  function stepsOf(change: Change): Replay[] {
    switch (change.what) {
      case "name":
        return isWatched(change.folder) || isWatched(change.before) ? stepsOfName(change) : [];
      case "move": {
        const { inode, from, to } = change;
        const isStill = metadata.entries.find(to.folder, to.name)?.inode === inode && isFree(from);
        const isHeard = isWatched(from.folder) || isWatched(to.folder) || isWatched(inode);
        return isStill && isHeard ? [{ what: "moved", ...from, inode, to }] : [];
      }
      case "content":
      case "attributes": {
        const names = metadata.entries.ofInode(change.inode).slice(0, EACH_MAX);
        const among = isWatched(change.inode) ? names : names.filter(({ parent }) => isWatched(parent));
        return among.flatMap(({ parent, name }) => stepsOfInode(change.inode, change.what, { folder: parent, name }));
      }
    }
  }

  const isFree = ({ folder, name }: Place) => metadata.entries.find(folder, name) === undefined;

  function stepsOfName({ folder, name, before }: Place & { readonly before: number | null }): Replay[] {
    const entry = metadata.entries.find(folder, name);
    const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
    if (inode === undefined) return before === null ? [] : [stepOfGone({ folder, name }, before)];
    // Another file in its place: to programs it was written, as by a rename over it.
    if (before !== null) return inode.kind === "file" ? stepsOfInode(inode.id, "content", { folder, name }) : [];
    return [{ what: "made", folder, name, kind: inode.kind }, ...closed(inode, { folder, name })];
  }

  function stepOfGone(place: Place, before: number): Replay {
    const former = metadata.inodes.get(before);
    const [elsewhere] = metadata.entries.ofInode(before);
    // It was moved, by two commits: who works in it is not to be told that it has gone.
    if (former?.linkGroup === null && elsewhere !== undefined) {
      const to = { folder: elsewhere.parent, name: elsewhere.name };
      return { what: "moved", ...place, inode: before, to };
    }
    const kind = former?.kind === "folder" ? "folder" : "file";
    // That it went has given it another (nameless.ts), which nobody was told of.
    const lineage = elsewhere === undefined ? metadata.inodes.lineages(before).at(-2) : undefined;
    return { what: "gone", ...place, kind, lineage: lineage ?? former?.lineage };
  }

  /** Who has it open, or watches it, may know it by the lineage it had before. */
  function stepsOfInode(id: number, what: "content" | "attributes", place: Place): Replay[] {
    const inode = metadata.inodes.get(id);
    if (inode === undefined) return [];
    const lineages = metadata.inodes.lineages(id).filter((lineage) => lineage !== inode.lineage);
    const all = [...lineages.slice(1 - EACH_MAX), inode.lineage];
    if (what === "attributes") return all.map((lineage) => ({ what, ...place, lineage }));
    const written = all.map((lineage): Replay => ({ what: "written", ...place, lineage }));
    return [...written, ...closed(inode, place)];
  }

  /** Not of a program: nobody could start it in the moment in which somebody seems to write to it. */
  function closed({ kind, lineage, attributes }: Inode, place: Place): Replay[] {
    const isWritable = kind === "file" && ((attributes.mode ?? 0) & 0o111) === 0;
    return isWritable ? [{ what: "closed", ...place, lineage }] : [];
  }

  return {
    by: undefined,
    formerly: undefined,
    seek(name) {
      const one = { name, by: undefined };
      sought = one;
      return () => one.by;
    },
    lookedUp(name, by) {
      if (name === sought?.name) sought.by = by;
    },
    note(changed) {
      if (begin === undefined) return;
      note(changed);
      if (waiting.size > 0) begin();
    },
    shown(inode, kind) {
      if (begin === undefined || kind !== "folder" || !isUnknown(inode)) return;
      isUnknownShown = true;
      begin();
    },
    onAny(next) {
      begin = next;
    },
    get isAny() {
      return isUnknownShown || waiting.size + steps.length > 0;
    },
    watch(inodes) {
      watched = inodes;
      isUnknownShown = false;
      for (const folder of watched) {
        if (isUnknown(folder)) inBackground(context, "listing a folder that is watched", () => list(folder));
      }
    },
    next() {
      current = steps.shift();
      while (current === undefined && waiting.size > 0) {
        const [first] = waiting;
        if (first === undefined) break;
        waiting.delete(first[0]);
        steps = stepsOf(first[1]);
        current = steps.shift();
      }
      return current;
    },
    get current() {
      return current;
    },
    pathOf(folder) {
      const names: string[] = [];
      for (let id = folder; id !== ROOT_INODE; ) {
        const entry = metadata.entries.firstOfInode(id);
        if (entry === undefined) return undefined;
        names.unshift(entry.name);
        id = entry.parent;
      }
      return names.join("/");
    },
  };
}

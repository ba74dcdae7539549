/**
 * A disk that loses power. It takes recorded changes in order and, at any moment, says what may be
 * on it after a cut: what was synced is there; of the rest each page of a file is in any of its
 * later states (torn at pages or sectors), a file has any of its later sizes, zeros where it grew
 * and nothing was written, and changes of names are there or not. Knows nothing of what the files are for.
 */
import type { Recorded } from "./log.ts";

export interface CutFile {
  /** To be called once: what was not synced is drawn. */
  read(): Uint8Array;
  /** Nanoseconds. */
  readonly mtime: bigint;
}

/** What is found after the cut, by path below the recorded folder; a folder is null. */
export type CutDisk = ReadonlyMap<string, CutFile | null>;

/** What becomes of what was not synced. Names: "journal" keeps an unbroken row of the oldest changes, as journals do. */
export interface Fate {
  readonly data: "lost" | "kept" | "torn" | "mixed";
  readonly names: "lost" | "kept" | "journal" | "any";
}

type ByteChange = (Recorded["change"] & { readonly kind: "write" | "truncate" | "allocate" }) & {
  readonly order: number;
};

interface File {
  readonly kind: "file";
  /** Synced: the first `size` bytes; behind them is room. */
  base: Uint8Array;
  size: number;
  pending: ByteChange[];
  mtime: bigint;
}

interface Folder {
  readonly kind: "folder";
  readonly current: Map<string, File | Folder>;
  readonly synced: Map<string, File | Folder>;
}

/** One change of names: all of its parts survive, or none. */
interface NameChange {
  readonly order: number;
  readonly parts: readonly { readonly folder: Folder; readonly name: string; readonly to: File | Folder | undefined }[];
}

const PAGE = 4096;
const SECTOR = 512;
const KEEP_SIZE = 1;

export interface PowerDisk {
  apply(recorded: Recorded): void;
  /** Without `fate`: as it is now, nothing lost. */
  cut(chance: () => number, fate?: Fate): CutDisk;
}

export function createPowerDisk(): PowerDisk {
  const root = makeFolder();
  const files = new Map<bigint, File>();
  const syncs = new Map<bigint, number>();
  let names: NameChange[] = [];
  let order = 0;

  function folderOf(path: string): { folder: Folder; name: string } {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    return { folder: folderAt(parts.join("/")), name };
  }

  function folderAt(path: string): Folder {
    let folder = root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      const next = folder.current.get(name);
      if (next?.kind !== "folder") throw new Error(`the record knows no folder ${path}`);
      folder = next;
    }
    return folder;
  }

  function rename(changes: readonly (readonly [string, File | Folder | undefined])[]): void {
    const parts = changes.map(([path, to]) => ({ ...folderOf(path), to }));
    for (const { folder, name, to } of parts) {
      if (to === undefined) folder.current.delete(name);
      else folder.current.set(name, to);
    }
    names.push({ order, parts });
  }

  function fileOf(inode: bigint): File {
    const file = files.get(inode);
    if (file === undefined) throw new Error(`the record knows no file ${inode}`);
    return file;
  }

  function syncNames(begun: number, isMeant: (change: NameChange) => boolean): void {
    names = names.filter((each) => {
      if (each.order > begun || !isMeant(each)) return true;
      keep(each, (of) => of.synced);
      return false;
    });
  }

  return {
    apply({ time, change }) {
      order += 1;
      switch (change.kind) {
        case "create": {
          const file: File = { kind: "file", base: new Uint8Array(), size: 0, pending: [], mtime: time };
          files.set(change.inode, file);
          return rename([[change.path, file]]);
        }
        case "write":
        case "truncate":
        case "allocate": {
          const file = fileOf(change.inode);
          file.pending.push({ ...change, order });
          file.mtime = time;
          return;
        }
        case "times":
          fileOf(change.inode).mtime = change.mtime;
          return;
        case "syncBegin":
        case "diskSyncBegin":
        case "folderSyncBegin":
          syncs.set(change.id, order);
          return;
        case "syncEnd":
          return syncFile(fileOf(change.inode), syncs.get(change.id) ?? 0);
        case "folderSyncEnd": {
          const folder = folderAt(change.path);
          return syncNames(syncs.get(change.id) ?? 0, (each) => each.parts.some((part) => part.folder === folder));
        }
        case "diskSyncEnd": {
          const begun = syncs.get(change.id) ?? 0;
          for (const file of files.values()) syncFile(file, begun);
          return syncNames(begun, () => true);
        }
        case "rename": {
          const { folder, name } = folderOf(change.from);
          return rename([
            [change.from, undefined],
            [change.to, folder.current.get(name)],
          ]);
        }
        case "makeFolder":
          return rename([[change.path, makeFolder()]]);
        case "unlink":
        case "removeFolder":
          return rename([[change.path, undefined]]);
      }
    },

    cut(chance, fate = { data: "kept", names: "kept" }) {
      const left = new Map<Folder, Map<string, File | Folder>>();
      const entriesOf = (folder: Folder) => {
        const entries = left.get(folder) ?? new Map(folder.synced);
        left.set(folder, entries);
        return entries;
      };
      const journaled = Math.floor(chance() * (names.length + 1));
      for (const [index, each] of names.entries()) {
        const isKept =
          fate.names === "kept" ||
          (fate.names === "journal" && index < journaled) ||
          (fate.names === "any" && chance() < 0.5);
        if (isKept) keep(each, entriesOf);
      }
      const found = new Map<string, CutFile | null>();
      const walk = (folder: Folder, path: string) => {
        for (const [name, child] of entriesOf(folder)) {
          if (child.kind === "folder") {
            found.set(path + name, null);
            walk(child, `${path}${name}/`);
          } else {
            found.set(path + name, { read: () => bytesLeft(child, fate.data, chance), mtime: child.mtime });
          }
        }
      };
      walk(root, "");
      return found;
    },
  };
}

function syncFile(file: File, begun: number): void {
  for (const change of file.pending) {
    if (change.order > begun) continue;
    const size = sizeAfter(file.size, change);
    if (size > file.base.length) {
      const roomier = new Uint8Array(2 * size);
      roomier.set(file.base.subarray(0, file.size));
      file.base = roomier;
    }
    // What is behind the end is zero, whatever was there before.
    if (size > file.size) file.base.fill(0, file.size, size);
    const { start, end } = reach(change, size);
    if (start < end) put(file.base, change, start, end);
    file.size = size;
  }
  file.pending = file.pending.filter((each) => each.order > begun);
}

function makeFolder(): Folder {
  return { kind: "folder", current: new Map(), synced: new Map() };
}

function keep({ parts }: NameChange, entriesOf: (folder: Folder) => Map<string, File | Folder>): void {
  for (const { folder, name, to } of parts) {
    if (to === undefined) entriesOf(folder).delete(name);
    else entriesOf(folder).set(name, to);
  }
}

function sizeAfter(size: number, change: ByteChange): number {
  if (change.kind === "truncate") return change.size;
  const end = change.kind === "write" ? change.offset + change.data.length : change.offset + change.length;
  if (change.kind === "allocate" && (change.mode & KEEP_SIZE) !== 0) return size;
  return Math.max(size, end);
}

/** Where the change puts bytes; behind a new end are zeros. */
function reach(change: ByteChange, end: number): { start: number; end: number } {
  if (change.kind === "truncate") return { start: change.size, end };
  if (change.kind === "write") return { start: change.offset, end: change.offset + change.data.length };
  // Space alone changes no byte.
  const isSpace = (change.mode & ~KEEP_SIZE) === 0;
  return { start: change.offset, end: isSpace ? change.offset : Math.min(end, change.offset + change.length) };
}

function put(bytes: Uint8Array, change: ByteChange, start: number, end: number): void {
  if (change.kind === "write") bytes.set(change.data.subarray(start - change.offset, end - change.offset), start);
  else bytes.fill(0, start, end);
}

function sizesOf(base: Uint8Array, changes: readonly ByteChange[]): number[] {
  const sizes = [base.length];
  for (const change of changes) sizes.push(sizeAfter(sizes.at(-1) ?? 0, change));
  return sizes;
}

function applied(base: Uint8Array, changes: readonly ByteChange[]): Uint8Array {
  if (changes.length === 0) return base;
  const sizes = sizesOf(base, changes);
  const bytes = new Uint8Array(Math.max(...sizes));
  bytes.set(base);
  for (const change of changes) {
    const { start, end } = reach(change, bytes.length);
    if (start < end) put(bytes, change, start, end);
  }
  return bytes.slice(0, sizes.at(-1));
}

function bytesLeft(file: File, data: Fate["data"], chance: () => number): Uint8Array {
  const { pending } = file;
  const base = file.base.slice(0, file.size);
  const fates = ["lost", "kept", "torn"] as const;
  const fate = data === "mixed" ? fates[Math.floor(chance() * fates.length)] : data;
  if (fate === "lost" || pending.length === 0) return base;
  if (fate === "kept") return applied(base, pending);
  const sizes = sizesOf(base, pending);
  const unit = chance() < 0.5 ? PAGE : SECTOR;
  const bytes = new Uint8Array(Math.ceil(Math.max(...sizes) / unit) * unit);
  bytes.set(base);
  const touched = new Map<number, number>();
  eachUnit(pending, bytes.length, unit, (at) => touched.set(at, (touched.get(at) ?? 0) + 1));
  for (const [at, count] of touched) touched.set(at, Math.floor(chance() * (count + 1)));
  eachUnit(pending, bytes.length, unit, (at, change, start, end) => {
    const left = touched.get(at) ?? 0;
    if (left === 0) return;
    touched.set(at, left - 1);
    put(bytes, change, start, end);
  });
  return bytes.slice(0, sizes[Math.floor(chance() * sizes.length)]);
}

function eachUnit(
  changes: readonly ByteChange[],
  length: number,
  unit: number,
  visit: (at: number, change: ByteChange, start: number, end: number) => void,
): void {
  for (const change of changes) {
    const { start, end } = reach(change, length);
    for (let at = Math.floor(start / unit); at * unit < end; at += 1) {
      visit(at, change, Math.max(start, at * unit), Math.min(end, (at + 1) * unit));
    }
  }
}

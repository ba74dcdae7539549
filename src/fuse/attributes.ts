/**
 * Writes a Stat into the kernel's structs: fuse_attr, fuse_entry_out, fuse_attr_out, fuse_statx_out. The tables give
 * the offsets. The fields are written one by one and not by the tables' loop, because listing a big folder does little
 * else.
 */
import type { Attributed, FileKind, Found, NegativeEntry, Stat } from "../engine/api/index.ts";
import { S_IFMT, STATX_MASK } from "./flags.ts";
import { LITTLE_ENDIAN, viewOf, writeU64 } from "./layout.ts";
import {
  ATTR,
  ATTR_OUT,
  ATTR_OUT_ATTR_AT,
  ENTRY_OUT,
  ENTRY_OUT_ATTR_AT,
  STATX,
  STATX_OUT,
  STATX_OUT_STAT_AT,
} from "./reply-structs.ts";

/** The buffer size that programs are told to use. */
const BLOCK_SIZE = 4096;

/** File type as the upper bits of a mode. Those bits >> 12 are the d_type of a directory entry. */
export const KIND_BITS = {
  fifo: 0o010000,
  character: 0o020000,
  folder: 0o040000,
  block: 0o060000,
  file: 0o100000,
  symlink: 0o120000,
  socket: 0o140000,
} as const satisfies Record<FileKind, number>;

const KINDS = new Map<number, FileKind>(Object.entries(KIND_BITS).map(([kind, bits]) => [bits, kind as FileKind]));

/**
 * The kind of file by the type bits of a mode. Without type bits it is a file, as in mknod(2). Undefined: there is no
 * such type.
 */
export function kindOfMode(mode: number): FileKind | undefined {
  return (mode & S_IFMT) === 0 ? "file" : KINDS.get(mode & S_IFMT);
}

/** The longest validity that is sent, in milliseconds. The kernel takes it as "for ever". */
const FOREVER_MS = 2 ** 31 * 1000;

/** Writes a validity in milliseconds as seconds and nanoseconds. NaN and negative values are written as 0. */
function writeValidity(view: DataView, secondsAt: number, nanosecondsAt: number, milliseconds: number): void {
  const kept = milliseconds > 0 ? Math.min(milliseconds, FOREVER_MS) : 0;
  const seconds = Math.floor(kept / 1000);
  writeU64(view, secondsAt, seconds);
  view.setUint32(nanosecondsAt, Math.floor((kept - seconds * 1000) * 1e6), LITTLE_ENDIAN);
}

const A = Object.fromEntries(Object.entries(ATTR.fields).map(([name, [at]]) => [name, at])) as Record<
  keyof typeof ATTR.fields,
  number
>;

function writeAttr(view: DataView, at: number, stat: Stat): void {
  writeU64(view, at + A.ino, stat.inode);
  writeU64(view, at + A.size, stat.size);
  writeU64(view, at + A.blocks, stat.blocks);
  writeU64(view, at + A.atime, stat.atime.seconds);
  writeU64(view, at + A.mtime, stat.mtime.seconds);
  writeU64(view, at + A.ctime, stat.ctime.seconds);
  view.setUint32(at + A.atimensec, stat.atime.nanoseconds, LITTLE_ENDIAN);
  view.setUint32(at + A.mtimensec, stat.mtime.nanoseconds, LITTLE_ENDIAN);
  view.setUint32(at + A.ctimensec, stat.ctime.nanoseconds, LITTLE_ENDIAN);
  view.setUint32(at + A.mode, KIND_BITS[stat.kind] | (stat.mode & 0o7777), LITTLE_ENDIAN);
  view.setUint32(at + A.nlink, stat.links, LITTLE_ENDIAN);
  view.setUint32(at + A.uid, stat.uid, LITTLE_ENDIAN);
  view.setUint32(at + A.gid, stat.gid, LITTLE_ENDIAN);
  view.setUint32(at + A.rdev, stat.rdev, LITTLE_ENDIAN);
  view.setUint32(at + A.blksize, BLOCK_SIZE, LITTLE_ENDIAN);
}

const E = Object.fromEntries(Object.entries(ENTRY_OUT.fields).map(([name, [at]]) => [name, at])) as Record<
  keyof typeof ENTRY_OUT.fields,
  number
>;

/** `isKept`: false where the kernel must not remember the entry, whatever the answer says. */
export function writeEntry(view: DataView, at: number, found: Found | NegativeEntry, isKept: boolean): void {
  writeValidity(view, at + E.entry_valid, at + E.entry_valid_nsec, isKept ? found.entryValidMs : 0);
  // Node id 0: there is no such name.
  if (found.kernelNodeId === undefined) return;
  // The generation stays 0, because a kernel node id is never used twice.
  writeU64(view, at + E.nodeid, found.kernelNodeId);
  writeValidity(view, at + E.attr_valid, at + E.attr_valid_nsec, isKept ? found.validMs : 0);
  writeAttr(view, at + ENTRY_OUT_ATTR_AT, found.stat);
}

/** Rewrites the entry at `at`, so that the kernel does not remember it. */
export function unkeepEntry(view: DataView, at: number): void {
  writeValidity(view, at + E.entry_valid, at + E.entry_valid_nsec, 0);
  writeValidity(view, at + E.attr_valid, at + E.attr_valid_nsec, 0);
}

export function encodeAttributes(attributed: Attributed, isKept: boolean): Uint8Array {
  const bytes = new Uint8Array(ATTR_OUT.size);
  const view = viewOf(bytes);
  const validMs = isKept ? attributed.validMs : 0;
  writeValidity(view, ATTR_OUT.fields.attr_valid[0], ATTR_OUT.fields.attr_valid_nsec[0], validMs);
  writeAttr(view, ATTR_OUT_ATTR_AT, attributed.stat);
  return bytes;
}

export function encodeStatx({ stat, validMs }: Attributed, isKept: boolean): Uint8Array {
  const bytes = new Uint8Array(STATX_OUT.size);
  const view = viewOf(bytes);
  writeValidity(view, STATX_OUT.fields.attr_valid[0], STATX_OUT.fields.attr_valid_nsec[0], isKept ? validMs : 0);
  STATX.write(view, STATX_OUT_STAT_AT, {
    mask: STATX_MASK,
    blksize: BLOCK_SIZE,
    nlink: stat.links,
    uid: stat.uid,
    gid: stat.gid,
    mode: KIND_BITS[stat.kind] | (stat.mode & 0o7777),
    ino: stat.inode,
    size: stat.size,
    blocks: stat.blocks,
    atime: stat.atime.seconds,
    atimensec: stat.atime.nanoseconds,
    btime: stat.btime.seconds,
    btimensec: stat.btime.nanoseconds,
    ctime: stat.ctime.seconds,
    ctimensec: stat.ctime.nanoseconds,
    mtime: stat.mtime.seconds,
    mtimensec: stat.mtime.nanoseconds,
    // The kernel's 32-bit form: minor 0-7, major 8-19, minor 20-31.
    rdev_major: (stat.rdev >>> 8) & 0xfff,
    rdev_minor: (stat.rdev & 0xff) | ((stat.rdev >>> 12) & 0xfff00),
  });
  return bytes;
}

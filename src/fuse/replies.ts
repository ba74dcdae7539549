/**
 * Encodes replies from plain objects to bytes: the parts that follow the header. There is one function per body shape,
 * without decisions.
 */
import {
  type Attributed,
  type Found,
  FsError,
  type NegativeEntry,
  type Opened,
  type SpaceInfo,
} from "../engine/api/index.ts";
import { encodeAttributes, encodeStatx, writeEntry } from "./attributes.ts";
import {
  FOPEN_CACHE_DIR,
  FOPEN_DIRECT_IO,
  FOPEN_KEEP_CACHE,
  FOPEN_NOFLUSH,
  FOPEN_PASSTHROUGH,
  SYMLINK_MAX,
} from "./flags.ts";
import { type Fields, type Struct, type Values, viewOf, writeU64 } from "./layout.ts";
import type { Listing } from "./listing.ts";
import {
  ENTRY_OUT,
  GETXATTR_OUT,
  IOCTL_OUT,
  KSTATFS,
  LSEEK_OUT,
  OPEN_OUT,
  OUT_HEADER,
  UNIQUE_AT,
  UNIQUE_SIZE,
  WRITE_OUT,
} from "./reply-structs.ts";
import { FILE_LOCK } from "./request-structs.ts";

export type Parts = Uint8Array[];

const NOTHING: Parts = [];

/**
 * Puts the header before the parts. `error` is 0, or a negative errno (then there must be no parts). `unique` is copied
 * from where it lies in the request.
 */
export function withHeader(request: Uint8Array, error: number, parts: Parts): Parts {
  const header = new Uint8Array(OUT_HEADER.size);
  let length = header.length;
  for (const part of parts) length += part.length;
  OUT_HEADER.write(viewOf(header), 0, { len: length, error });
  header.set(request.subarray(UNIQUE_AT, UNIQUE_AT + UNIQUE_SIZE), UNIQUE_AT);
  return [header, ...parts];
}

export function encodeNothing(): Parts {
  return NOTHING;
}

/** A body that is one struct and nothing else. */
export function encodeFixed<F extends Fields>(layout: Struct<F>): (values: Partial<Values<F>>) => Parts {
  return (values) => [layout.encode(values)];
}

export function encodeEntry(found: Found | NegativeEntry, isKept: boolean): Parts {
  const bytes = new Uint8Array(ENTRY_OUT.size);
  writeEntry(viewOf(bytes), 0, found, isKept);
  return [bytes];
}

export function encodeAttr(attributed: Attributed, isKept: boolean): Parts {
  return [encodeAttributes(attributed, isKept)];
}

export function encodeStatxReply(attributed: Attributed, isKept: boolean): Parts {
  return [encodeStatx(attributed, isKept)];
}

export function encodeOpen(opened: Opened): Parts {
  const bytes = new Uint8Array(OPEN_OUT.size);
  writeOpen(viewOf(bytes), 0, opened);
  return [bytes];
}

/**
 * The kernel may cache the listing of a folder that was listed before and has not changed. It must not cache the first
 * listing: a program that seeks in the folder would see names from the cache that were removed meanwhile.
 */
export function encodeOpenFolder({ handle, keepCache }: Opened): Parts {
  const open_flags = keepCache ? FOPEN_CACHE_DIR | FOPEN_KEEP_CACHE : 0;
  return [OPEN_OUT.encode({ fh: handle, open_flags })];
}

export function encodeCreate(created: Found & Opened, isKept: boolean): Parts {
  const bytes = new Uint8Array(ENTRY_OUT.size + OPEN_OUT.size);
  const view = viewOf(bytes);
  writeEntry(view, 0, created, isKept);
  writeOpen(view, ENTRY_OUT.size, created);
  return [bytes];
}

function writeOpen(view: DataView, at: number, opened: Opened): void {
  const { handle, keepCache, backing, noFlush = false, direct = false } = opened;
  // Cached pages and a backing file exclude each other: the kernel refuses both flags together.
  const cached = keepCache ? FOPEN_KEEP_CACHE : 0;
  const way = backing === undefined ? cached : FOPEN_PASSTHROUGH;
  const flags = way | (noFlush ? FOPEN_NOFLUSH : 0) | (direct ? FOPEN_DIRECT_IO : 0);
  OPEN_OUT.write(view, at, { fh: handle, open_flags: flags, backing_id: backing ?? 0 });
}

export function encodeData(data: Uint8Array): Parts {
  return [data];
}

export function encodeText(target: string): Parts {
  const bytes = Buffer.from(target);
  if (bytes.length > SYMLINK_MAX)
    throw new FsError("ENAMETOOLONG", `a target of ${bytes.length} bytes: at most ${SYMLINK_MAX}`);
  return [bytes];
}

export function encodeWritten(size: number): Parts {
  return [WRITE_OUT.encode({ size })];
}

export function encodeOffset(offset: number): Parts {
  const bytes = new Uint8Array(LSEEK_OUT.size);
  writeU64(viewOf(bytes), 0, offset);
  return [bytes];
}

/** The value, or its length in bytes when that was asked for (size 0). */
export type XattrReply = { readonly value: Uint8Array } | { readonly size: number };

export function encodeXattr(reply: XattrReply): Parts {
  return "value" in reply ? [reply.value] : [GETXATTR_OUT.encode({ size: reply.size })];
}

export function encodeListing(listing: Listing, isKept: boolean): Parts {
  if (!isKept) listing.unkeep();
  return [listing.bytes];
}

export function encodeSpace(space: SpaceInfo): Parts {
  return [
    KSTATFS.encode({
      blocks: space.blocks,
      bfree: space.free,
      bavail: space.available,
      files: space.files,
      ffree: space.filesFree,
      bsize: space.blockSize,
      namelen: space.nameLength,
      frsize: space.blockSize,
    }),
  ];
}

export const encodeLock = encodeFixed(FILE_LOCK);

export function encodeIoctl(reply: { result: number; data: Uint8Array }): Parts {
  return [IOCTL_OUT.encode({ result: reply.result }), reply.data];
}

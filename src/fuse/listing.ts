/**
 * A READDIR or READDIRPLUS reply: whole records, padded to 8 bytes, in a buffer of the requested size. It never exceeds
 * that size, and it reports the kernel node ids that it contains.
 */
import type { FolderEntry, Found } from "../engine/api/index.ts";
import { KIND_BITS, unkeepEntry, writeEntry } from "./attributes.ts";
import { LITTLE_ENDIAN, viewOf, writeU64 } from "./layout.ts";
import { DIRENT, DIRENTPLUS_DIRENT_AT } from "./reply-structs.ts";

export interface Listing {
  readonly bytes: Uint8Array;
  /** The entries of the reply. The kernel counts a lookup for each. */
  readonly granted: readonly Found[];
  /** Sets all validities to 0: the kernel must not remember these entries. */
  unkeep(): void;
}

/** The usual length of a name in a folder, in bytes. */
const USUAL_NAME = 24;

interface ListingWriter {
  /** False: there was no room, and nothing was written. */
  add(entry: FolderEntry): boolean;
  /** About how many entries with names of usual length still fit. */
  room(): number;
  isEmpty(): boolean;
  finish(): Listing;
}

export function createListing(size: number, withAttributes: boolean): ListingWriter {
  const bytes = Buffer.from(new ArrayBuffer(size));
  const view = viewOf(bytes);
  const granted: Found[] = [];
  const grantedAt: number[] = [];
  const direntAt = withAttributes ? DIRENTPLUS_DIRENT_AT : 0;
  let used = 0;
  return {
    add(entry) {
      const nameAt = used + direntAt + DIRENT.size;
      const nameLength = Buffer.byteLength(entry.name);
      const end = padded(nameAt + nameLength);
      if (end > size) return false;
      if (withAttributes && entry.found !== undefined && !isDots(entry.name)) {
        writeEntry(view, used, entry.found, true);
        granted.push(entry.found);
        grantedAt.push(used);
      }
      const at = used + direntAt;
      writeU64(view, at, entry.inode);
      writeU64(view, at + DIRENT.fields.off[0], entry.cookie);
      view.setUint32(at + DIRENT.fields.namelen[0], nameLength, LITTLE_ENDIAN);
      view.setUint32(at + DIRENT.fields.type[0], KIND_BITS[entry.kind] >> 12, LITTLE_ENDIAN);
      bytes.write(entry.name, nameAt, "utf8");
      used = end;
      return true;
    },
    room: () => Math.floor((size - used) / (direntAt + DIRENT.size + USUAL_NAME)),
    isEmpty: () => used === 0,
    finish: () => ({
      bytes: bytes.subarray(0, used),
      granted,
      unkeep() {
        for (const at of grantedAt) unkeepEntry(view, at);
      },
    }),
  };
}

/** The kernel does not count these two, whatever is sent with them. */
export function isDots(name: string): boolean {
  return name === "." || name === "..";
}

function padded(size: number): number {
  return Math.ceil(size / 8) * 8;
}

/** Reads what recorder.c wrote: every change below a folder, in the order of its effects. */
import { z } from "zod";

export type Change =
  | { readonly kind: "create"; readonly inode: bigint; readonly path: string }
  | { readonly kind: "write"; readonly inode: bigint; readonly offset: number; readonly data: Uint8Array }
  | { readonly kind: "truncate"; readonly inode: bigint; readonly size: number }
  | {
      readonly kind: "allocate";
      readonly inode: bigint;
      readonly offset: number;
      readonly length: number;
      readonly mode: number;
    }
  | { readonly kind: "syncBegin" | "syncEnd"; readonly inode: bigint; readonly id: bigint }
  | { readonly kind: "diskSyncBegin" | "diskSyncEnd"; readonly id: bigint }
  | { readonly kind: "folderSyncBegin" | "folderSyncEnd"; readonly path: string; readonly id: bigint }
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  | { readonly kind: "unlink" | "makeFolder" | "removeFolder"; readonly path: string }
  | { readonly kind: "times"; readonly inode: bigint; readonly mtime: bigint }
  /** Said by a program or the gateway: what it was promised, what it has. */
  | { readonly kind: "mark"; readonly value: unknown };

export interface Recorded {
  /** Nanoseconds of the wall clock. */
  readonly time: bigint;
  readonly change: Change;
}

const HEADER_BYTES = 48;
const MARK = 15;

/** What a program appends to the record, whole in one write, to have it read as a mark. */
export function markBytes(value: unknown, now: bigint): Buffer {
  const data = Buffer.from(JSON.stringify(value));
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(MARK, 0);
  header.writeUInt32LE(data.length, 8);
  header.writeBigUInt64LE(now, 16);
  return Buffer.concat([header, data]);
}

/** The same for a Python program: `mark(value)`, with the record's path in WSFS_POWER_MARKS. */
export const PYTHON_MARK = `
import json, os, struct, time
_marks = os.open(os.environ["WSFS_POWER_MARKS"], os.O_WRONLY | os.O_APPEND)
def mark(**value):
    data = json.dumps(value).encode()
    os.write(_marks, struct.pack("<IIIIQQQQ", ${MARK}, 0, len(data), 0, time.time_ns(), 0, 0, 0) + data)
`;

export function parseRecord(record: Buffer): Recorded[] {
  const recorded: Recorded[] = [];
  for (let at = 0; at < record.length; ) {
    const [type, nameLength, dataLength, mode] = [0, 4, 8, 12].map((offset) => record.readUInt32LE(at + offset));
    if (type === undefined || nameLength === undefined || dataLength === undefined || mode === undefined) break;
    const time = record.readBigUInt64LE(at + 16);
    const inode = record.readBigUInt64LE(at + 24);
    const a = record.readBigUInt64LE(at + 32);
    const b = record.readBigUInt64LE(at + 40);
    const nameAt = at + HEADER_BYTES;
    const dataAt = nameAt + nameLength;
    at = dataAt + dataLength;
    if (at > record.length) throw new Error("the record breaks off");
    const path = record.toString("utf8", nameAt, dataAt);
    const data = record.subarray(dataAt, at);
    recorded.push({ time, change: decode(type, { path, data, inode, a, b, mode }) });
  }
  return recorded;
}

interface Fields {
  readonly path: string;
  readonly data: Buffer;
  readonly inode: bigint;
  readonly a: bigint;
  readonly b: bigint;
  readonly mode: number;
}

function decode(type: number, { path, data, inode, a, b, mode }: Fields): Change {
  switch (type) {
    case 1:
      return { kind: "create", inode, path };
    case 2:
      return { kind: "write", inode, offset: Number(a), data };
    case 3:
      return { kind: "truncate", inode, size: Number(a) };
    case 4:
      return { kind: "allocate", inode, offset: Number(a), length: Number(b), mode };
    case 5:
      return { kind: "syncBegin", inode, id: a };
    case 6:
      return { kind: "syncEnd", inode, id: a };
    case 7:
      return { kind: "rename", from: path, to: data.toString() };
    case 8:
      return { kind: "unlink", path };
    case 9:
      return { kind: "makeFolder", path };
    case 10:
      return { kind: "removeFolder", path };
    case 12:
      return { kind: "times", inode, mtime: a };
    case 13:
      return { kind: "folderSyncBegin", path, id: a };
    case 14:
      return { kind: "folderSyncEnd", path, id: a };
    case 17:
      return { kind: "diskSyncBegin", id: a };
    case 18:
      return { kind: "diskSyncEnd", id: a };
    case MARK:
      return { kind: "mark", value: z.unknown().parse(JSON.parse(data.toString())) };
    default:
      throw new Error(`the record cannot be complete: ${path === "" ? `kind ${type}` : path}`);
  }
}

/**
 * One message from the kernel: its header, and a cursor over its body. All data from outside are checked once, here and
 * in `requests.ts`. This file knows no opcode.
 */
import { FsError, type FsErrorCode, type KernelNodeId, kernelNodeId } from "../engine/api/index.ts";
import { NAME_MAX, SYMLINK_MAX } from "./flags.ts";
import {
  type Fields,
  isResent,
  isZero64,
  LITTLE_ENDIAN,
  readId,
  readU64,
  type Struct,
  type Values,
  viewOf,
} from "./layout.ts";
import { IN_HEADER } from "./request-structs.ts";

/** The bytes are no message of the protocol. The kernel never sends such bytes; tests do. */
export class MalformedError extends FsError {
  constructor(message: string) {
    super("EINVAL", message);
    this.name = "MalformedError";
  }
}

/** The only fields that can be trusted in a message that is too short for its header. */
const UNIQUE_AT = 8;
export const MIN_ANSWERABLE = 16;

export interface Message {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly opcode: number;
  /** The request's number without its resent bit. */
  readonly id: number;
  readonly resent: boolean;
  /** True if the message has a `unique` for the reply. */
  readonly answerable: boolean;
  readonly nodeid: KernelNodeId;
  readonly uid: number;
  readonly gid: number;
  /** The calling thread. 0: the kernel acts by itself. */
  readonly pid: number;
  /** The offset at which the body ends and the extensions begin. */
  readonly bodyEnd: number;
}

/** @throws MalformedError when the header does not fit the bytes. */
export function parseMessage(bytes: Uint8Array): Message {
  if (bytes.length < IN_HEADER.size)
    throw new MalformedError(`message of ${bytes.length} bytes: shorter than its header (${IN_HEADER.size})`);
  const view = viewOf(bytes);
  const length = view.getUint32(0, LITTLE_ENDIAN);
  if (length !== bytes.length) throw new MalformedError(`message of ${bytes.length} bytes says it has ${length}`);
  const bodyEnd = length - 8 * view.getUint16(36, LITTLE_ENDIAN);
  if (bodyEnd < IN_HEADER.size) throw new MalformedError(`extensions of ${length - bodyEnd} bytes in ${length}`);
  return {
    bytes,
    view,
    opcode: opcodeOf(view),
    id: readId(view, UNIQUE_AT),
    resent: isResent(view, UNIQUE_AT),
    answerable: !isZero64(view, UNIQUE_AT),
    nodeid: nodeIdAt(view, 16),
    uid: view.getUint32(24, LITTLE_ENDIAN),
    gid: view.getUint32(28, LITTLE_ENDIAN),
    pid: view.getUint32(32, LITTLE_ENDIAN),
    bodyEnd,
  };
}

/** The ids of requests that may get an answer. */
export function idsIn(messages: readonly Uint8Array[]): number[] {
  return messages.flatMap((bytes) => {
    if (bytes.length < MIN_ANSWERABLE) return [];
    const view = viewOf(bytes);
    return isZero64(view, UNIQUE_AT) ? [] : [readId(view, UNIQUE_AT)];
  });
}

export function opcodeOf(view: DataView): number {
  return view.getUint32(4, LITTLE_ENDIAN);
}

/** A node id of this mount. All of them are below 2^53. @throws MalformedError for a larger number */
export function nodeIdAt(view: DataView, at: number): KernelNodeId {
  const value = readU64(view, at);
  if (!Number.isSafeInteger(value)) throw new MalformedError(`node id ${value}: over 2^53, never given out`);
  return kernelNodeId(value);
}

/** The fixed part at the start of the body; `size` bytes of it if that is given. */
export function fixedPart<F extends Fields>(message: Message, layout: Struct<F>, size = layout.size): Values<F> {
  need(message, IN_HEADER.size, size, layout.name);
  return layout.read(message.view, IN_HEADER.size);
}

export function need(message: Message, at: number, size: number, what: string): void {
  if (at + size > message.bodyEnd)
    throw new MalformedError(`${what}: ${size} bytes expected, ${Math.max(0, message.bodyEnd - at)} left`);
}

/** Takes NUL-terminated strings from the front, one after the other. */
interface Cursor {
  at: number;
}

export function cursorAfter(fixedSize: number): Cursor {
  return { at: IN_HEADER.size + fixedSize };
}

/** A name in a folder. @throws FsError ENAMETOOLONG, EILSEQ; MalformedError when it is none. */
export function takeName(message: Message, cursor: Cursor): string {
  const name = takeString(message, cursor, NAME_MAX, "ENAMETOOLONG");
  if (name === "" || name === "." || name === ".." || name.includes("/"))
    throw new MalformedError(`name "${name}": not a name in a folder`);
  return name;
}

export function takeSymlinkTarget(message: Message, cursor: Cursor): string {
  return takeString(message, cursor, SYMLINK_MAX, "ENAMETOOLONG");
}

export function takeXattrName(message: Message, cursor: Cursor): string {
  const name = takeString(message, cursor, NAME_MAX, "ERANGE");
  if (name === "") throw new MalformedError("an extended attribute without a name");
  return name;
}

export function takeString(message: Message, cursor: Cursor, limit: number, tooLong: FsErrorCode): string {
  const { bytes, bodyEnd } = message;
  const start = cursor.at;
  let ascii = true;
  let end = start;
  for (; end < bodyEnd; end += 1) {
    const byte = bytes[end];
    if (byte === 0) break;
    if (byte !== undefined && byte >= 0x80) ascii = false;
  }
  if (end >= bodyEnd) throw new MalformedError("a string without its terminating NUL");
  cursor.at = end + 1;
  if (end - start > limit) throw new FsError(tooLong, `a string of ${end - start} bytes: at most ${limit}`);
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
  return ascii ? raw.toString("latin1") : decodeUtf8(raw);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(raw: Uint8Array): string {
  try {
    return utf8.decode(raw);
  } catch (cause) {
    throw new FsError("EILSEQ", "a name that is not UTF-8", { cause });
  }
}

/**
 * Decodes requests from bytes to plain objects, with one function per body shape and without decisions. Fields of the
 * fixed part keep the kernel's names; names and data that follow it get their own.
 *
 * Every function throws MalformedError when the message is too short for its body, and the errors of `message.ts` for
 * names.
 */
import type { KernelNodeId } from "../engine/api/index.ts";
import { type Extensions, parseExtensions } from "./extensions.ts";
import { type Fields, LITTLE_ENDIAN, type Struct, type Values } from "./layout.ts";
import {
  cursorAfter,
  fixedPart,
  MalformedError,
  type Message,
  need,
  nodeIdAt,
  takeName,
  takeString,
  takeSymlinkTarget,
  takeXattrName,
} from "./message.ts";
import {
  BATCH_FORGET_IN,
  CREATE_IN,
  FILE_LOCK,
  FORGET_ONE,
  GETXATTR_IN,
  IN_HEADER,
  INIT_IN,
  INIT_IN_SIZE_BEFORE_36,
  IOCTL_IN,
  LINK_IN,
  LK_IN,
  LK_IN_LOCK_AT,
  MKDIR_IN,
  MKNOD_IN,
  NOTIFY_RETRIEVE_IN,
  REMOVEMAPPING_IN,
  REMOVEMAPPING_ONE,
  RENAME_IN,
  RENAME2_IN,
  SETXATTR_IN,
  SETXATTR_IN_SIZE_SHORT,
  WRITE_IN,
} from "./request-structs.ts";

/** Results of INIT that change the form of later messages. */
export interface WireVersion {
  /** SETXATTR has 16 bytes instead of 8. */
  readonly setxattrExtended: boolean;
}

/** A body that is one struct and nothing else. */
export function fixed<F extends Fields>(layout: Struct<F>): (message: Message) => Values<F> {
  return (message) => fixedPart(message, layout);
}

export function decodeNothing(): Record<string, never> {
  return {};
}

export function decodeInit(message: Message) {
  const short = message.bodyEnd < IN_HEADER.size + INIT_IN.size;
  if (!short) return fixedPart(message, INIT_IN);
  need(message, IN_HEADER.size, INIT_IN_SIZE_BEFORE_36, INIT_IN.name);
  const whole = new DataView(new ArrayBuffer(INIT_IN.size));
  for (let at = 0; at < INIT_IN_SIZE_BEFORE_36; at += 1) whole.setUint8(at, message.view.getUint8(IN_HEADER.size + at));
  return INIT_IN.read(whole, 0);
}

export interface NameRequest {
  readonly name: string;
}

export function decodeName(message: Message): NameRequest {
  return { name: takeName(message, cursorAfter(0)) };
}

export interface ForgetOne {
  readonly nodeid: KernelNodeId;
  readonly nlookup: number;
}

export function decodeBatchForget(message: Message): { forgets: ForgetOne[] } {
  const { count } = fixedPart(message, BATCH_FORGET_IN);
  const start = IN_HEADER.size + BATCH_FORGET_IN.size;
  need(message, start, count * FORGET_ONE.size, "fuse_forget_one list");
  const forgets: ForgetOne[] = new Array(count);
  for (let index = 0; index < count; index += 1)
    forgets[index] = FORGET_ONE.read(message.view, start + index * FORGET_ONE.size);
  return { forgets };
}

export function decodeSymlink(message: Message): { name: string; target: string; extensions: Extensions } {
  const cursor = cursorAfter(0);
  const name = takeName(message, cursor);
  return { name, target: takeSymlinkTarget(message, cursor), extensions: parseExtensions(message) };
}

/** A fixed part, one name, and extensions: MKNOD, MKDIR, CREATE. */
function withNewName<F extends Fields>(layout: Struct<F>) {
  return (message: Message): Values<F> & { name: string; extensions: Extensions } => ({
    ...fixedPart(message, layout),
    name: takeName(message, cursorAfter(layout.size)),
    extensions: parseExtensions(message),
  });
}

export const decodeMknod = withNewName(MKNOD_IN);
export const decodeMkdir = withNewName(MKDIR_IN);
export const decodeCreate = withNewName(CREATE_IN);

/** Like CREATE. Its name says nothing ("/"). */
export function decodeTmpfile(message: Message): Values<typeof CREATE_IN.fields> & { extensions: Extensions } {
  const values = fixedPart(message, CREATE_IN);
  takeString(message, cursorAfter(CREATE_IN.size), 255, "ENAMETOOLONG");
  return { ...values, extensions: parseExtensions(message) };
}

export interface RenameRequest {
  readonly newdir: KernelNodeId;
  readonly flags: number;
  readonly oldName: string;
  readonly newName: string;
}

export function decodeRename(message: Message): RenameRequest {
  need(message, IN_HEADER.size, RENAME_IN.size, RENAME_IN.name);
  return { newdir: nodeIdAt(message.view, IN_HEADER.size), flags: 0, ...twoNames(message, RENAME_IN.size) };
}

export function decodeRename2(message: Message): RenameRequest {
  const { flags } = fixedPart(message, RENAME2_IN);
  return { newdir: nodeIdAt(message.view, IN_HEADER.size), flags, ...twoNames(message, RENAME2_IN.size) };
}

function twoNames(message: Message, fixedSize: number): { oldName: string; newName: string } {
  const cursor = cursorAfter(fixedSize);
  const oldName = takeName(message, cursor);
  return { oldName, newName: takeName(message, cursor) };
}

export function decodeLink(message: Message): { oldnodeid: KernelNodeId; name: string } {
  need(message, IN_HEADER.size, LINK_IN.size, LINK_IN.name);
  return { oldnodeid: nodeIdAt(message.view, IN_HEADER.size), name: takeName(message, cursorAfter(LINK_IN.size)) };
}

export type WriteRequest = Values<typeof WRITE_IN.fields> & { readonly data: Uint8Array };

export function decodeWrite(message: Message): WriteRequest {
  const values = fixedPart(message, WRITE_IN);
  return { ...values, data: takeRest(message, WRITE_IN.size, values.size, "data to write") };
}

export type SetxattrRequest = Values<typeof SETXATTR_IN.fields> & { readonly name: string; readonly value: Uint8Array };

export function decodeSetxattr(message: Message, version: WireVersion): SetxattrRequest {
  const fixedSize = version.setxattrExtended ? SETXATTR_IN.size : SETXATTR_IN_SIZE_SHORT;
  // With a name of one byte and its NUL, the message may be shorter than the long form.
  need(message, IN_HEADER.size, fixedSize, SETXATTR_IN.name);
  const { view } = message;
  const { size, flags, setxattr_flags } = SETXATTR_IN.fields;
  const at = (field: readonly [number, string]) => view.getUint32(IN_HEADER.size + field[0], LITTLE_ENDIAN);
  const cursor = cursorAfter(fixedSize);
  const name = takeXattrName(message, cursor);
  return {
    size: at(size),
    flags: at(flags),
    setxattr_flags: version.setxattrExtended ? at(setxattr_flags) : 0,
    name,
    value: takeRest(message, cursor.at - IN_HEADER.size, at(size), "value"),
  };
}

export function decodeGetxattr(message: Message): { size: number; name: string } {
  const { size } = fixedPart(message, GETXATTR_IN);
  return { size, name: takeXattrName(message, cursorAfter(GETXATTR_IN.size)) };
}

export function decodeXattrName(message: Message): NameRequest {
  return { name: takeXattrName(message, cursorAfter(0)) };
}

type LockRequest = Values<typeof LK_IN.fields> & { readonly lock: Values<typeof FILE_LOCK.fields> };

export function decodeLock(message: Message): LockRequest {
  const values = fixedPart(message, LK_IN);
  return { ...values, lock: FILE_LOCK.read(message.view, IN_HEADER.size + LK_IN_LOCK_AT) };
}

export function decodeIoctl(message: Message): Values<typeof IOCTL_IN.fields> & { data: Uint8Array } {
  const values = fixedPart(message, IOCTL_IN);
  return { ...values, data: takeRest(message, IOCTL_IN.size, values.in_size, "ioctl data") };
}

export function decodeNotifyReply(message: Message): { offset: number; data: Uint8Array } {
  const { offset, size } = fixedPart(message, NOTIFY_RETRIEVE_IN);
  return { offset, data: takeRest(message, NOTIFY_RETRIEVE_IN.size, size, "cached data") };
}

export function decodeRemoveMapping(message: Message) {
  const { count } = fixedPart(message, REMOVEMAPPING_IN);
  const start = IN_HEADER.size + REMOVEMAPPING_IN.size;
  need(message, start, count * REMOVEMAPPING_ONE.size, "fuse_removemapping_one list");
  const mappings = Array.from({ length: count }, (_, index) =>
    REMOVEMAPPING_ONE.read(message.view, start + index * REMOVEMAPPING_ONE.size),
  );
  return { mappings };
}

/** Exactly `size` bytes, from `offset` of the body to its end, not copied. */
function takeRest(message: Message, offset: number, size: number, what: string): Uint8Array {
  const start = IN_HEADER.size + offset;
  const left = message.bodyEnd - start;
  if (left !== size) throw new MalformedError(`${what}: ${size} bytes announced, ${left} came`);
  return message.bytes.subarray(start, start + size);
}

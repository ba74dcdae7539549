/**
 * Extensions of CREATE, MKNOD, MKDIR, SYMLINK and TMPFILE: security labels and groups, in records behind the body. INIT
 * does not ask for them. They are parsed so that a kernel that sends them is understood.
 */
import { EXT_GROUPS, EXT_MAX_SECCTX } from "./flags.ts";
import { LITTLE_ENDIAN } from "./layout.ts";
import { MalformedError, type Message } from "./message.ts";
import { EXT_HEADER, SECCTX } from "./request-structs.ts";

interface SecurityContext {
  readonly name: string;
  readonly label: Uint8Array;
}

export interface Extensions {
  readonly securityContexts: readonly SecurityContext[];
  readonly groups: readonly number[];
}

/** @throws MalformedError when a record does not fit. Records of an unknown type are skipped. */
export function parseExtensions(message: Message): Extensions {
  const securityContexts: SecurityContext[] = [];
  const groups: number[] = [];
  const end = message.bytes.length;
  let at = message.bodyEnd;
  while (at < end) {
    if (at + EXT_HEADER.size > end) throw new MalformedError(`extension header: ${end - at} bytes left`);
    const { size, type } = EXT_HEADER.read(message.view, at);
    if (size < EXT_HEADER.size || at + size > end) throw new MalformedError(`extension of ${size} bytes at ${at}`);
    const from = at + EXT_HEADER.size;
    if (type <= EXT_MAX_SECCTX) securityContexts.push(...parseContexts(message, from, at + size, type));
    else if (type === EXT_GROUPS) groups.push(...parseGroups(message, from, at + size));
    at += Math.ceil(size / 8) * 8;
  }
  return { securityContexts, groups };
}

/** Each context: a header with the label's size, the name with NUL, the label, padded to 8 bytes. */
function parseContexts(message: Message, from: number, end: number, count: number): SecurityContext[] {
  const contexts: SecurityContext[] = [];
  let at = from;
  for (let index = 0; index < count; index += 1) {
    if (at + SECCTX.size > end) throw new MalformedError(`security context ${index + 1} of ${count} is missing`);
    const { size } = SECCTX.read(message.view, at);
    const nameAt = at + SECCTX.size;
    const nameEnd = message.bytes.indexOf(0, nameAt);
    if (nameEnd < 0 || nameEnd + 1 + size > end) throw new MalformedError(`security context of ${size} bytes at ${at}`);
    contexts.push({
      name: Buffer.from(message.bytes.subarray(nameAt, nameEnd)).toString("latin1"),
      label: message.bytes.subarray(nameEnd + 1, nameEnd + 1 + size),
    });
    at = from + Math.ceil((nameEnd + 1 + size - from) / 8) * 8;
  }
  return contexts;
}

function parseGroups(message: Message, from: number, end: number): number[] {
  if (from + 4 > end) throw new MalformedError("groups without their number");
  const count = message.view.getUint32(from, LITTLE_ENDIAN);
  if (count > (end - from - 4) / 4) throw new MalformedError(`${count} groups in ${end - from} bytes`);
  return Array.from({ length: count }, (_, index) => message.view.getUint32(from + 4 + 4 * index, LITTLE_ENDIAN));
}

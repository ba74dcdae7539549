/**
 * Notifications to the kernel: a header with unique 0 and the code in the place of a reply's error, then the body.
 * kernel-cache.ts sends these, and never from the JS thread: the write may wait for requests that we have yet to
 * answer.
 */
import type { KernelNodeId } from "../engine/api/index.ts";
import { viewOf, writeU64 } from "./layout.ts";
import type { Parts } from "./replies.ts";
import {
  NOTIFY_DELETE_OUT,
  NOTIFY_INVAL_ENTRY_OUT,
  NOTIFY_INVAL_INODE_OUT,
  NOTIFY_POLL_OUT,
  NOTIFY_PRUNE_OUT,
  NOTIFY_RETRIEVE_OUT,
  NOTIFY_STORE_OUT,
  OUT_HEADER,
} from "./reply-structs.ts";

export const NOTIFY = {
  POLL: 1,
  INVAL_INODE: 2,
  INVAL_ENTRY: 3,
  STORE: 4,
  RETRIEVE: 5,
  DELETE: 6,
  RESEND: 7,
  INC_EPOCH: 8,
  PRUNE: 9,
} as const;

const EXPIRE_ONLY = 1 << 0;

export function notifyPoll(kh: number): Parts {
  return notification(NOTIFY.POLL, [NOTIFY_POLL_OUT.encode({ kh })]);
}

/** Offset < 0: attributes only. Length <= 0: to the end. */
export function notifyInvalInode(kernelNodeId: KernelNodeId, offset: number, length: number): Parts {
  return notification(NOTIFY.INVAL_INODE, [
    NOTIFY_INVAL_INODE_OUT.encode({ ino: kernelNodeId, off: offset, len: length }),
  ]);
}

/** `expireOnly`: the name is looked up again, but nothing that uses it is torn down. */
export function notifyInvalEntry(parent: KernelNodeId, name: string, expireOnly: boolean): Parts {
  const bytes = terminated(name);
  const flags = expireOnly ? EXPIRE_ONLY : 0;
  return notification(NOTIFY.INVAL_ENTRY, [
    NOTIFY_INVAL_ENTRY_OUT.encode({ parent, namelen: bytes.length - 1, flags }),
    bytes,
  ]);
}

export function notifyDelete(parent: KernelNodeId, child: KernelNodeId, name: string): Parts {
  const bytes = terminated(name);
  return notification(NOTIFY.DELETE, [NOTIFY_DELETE_OUT.encode({ parent, child, namelen: bytes.length - 1 }), bytes]);
}

/** Puts bytes into the page cache. */
export function notifyStore(kernelNodeId: KernelNodeId, offset: number, data: Uint8Array): Parts {
  return notification(NOTIFY.STORE, [
    NOTIFY_STORE_OUT.encode({ nodeid: kernelNodeId, offset, size: data.length }),
    data,
  ]);
}

/** Asks for bytes of the page cache. They come as NOTIFY_REPLY whose `unique` is `id`. */
export function notifyRetrieve(id: number, kernelNodeId: KernelNodeId, offset: number, size: number): Parts {
  return notification(NOTIFY.RETRIEVE, [
    NOTIFY_RETRIEVE_OUT.encode({ notify_unique: id, nodeid: kernelNodeId, offset, size }),
  ]);
}

/** Asks for every request that was read and not answered. It comes again, marked as resent. */
export function notifyResend(): Parts {
  return notification(NOTIFY.RESEND, []);
}

/** Invalidates the attributes of all these nodes: one message each, one after the other. */
export function notifyExpireInodes(kernelNodeIds: readonly KernelNodeId[]): Uint8Array {
  const len = OUT_HEADER.size + NOTIFY_INVAL_INODE_OUT.size;
  const bytes = new Uint8Array(len * kernelNodeIds.length);
  const view = viewOf(bytes);
  for (const [index, ino] of kernelNodeIds.entries()) {
    OUT_HEADER.write(view, index * len, { len, error: NOTIFY.INVAL_INODE, unique: 0 });
    NOTIFY_INVAL_INODE_OUT.write(view, index * len + OUT_HEADER.size, { ino, off: -1, len: 0 });
  }
  return bytes;
}

/**
 * Makes the kernel drop every known name at its next use, as with INVAL_ENTRY without EXPIRE_ONLY. So mounts inside are
 * unmounted in every mount namespace, also where /proc/self/mountinfo does not show them.
 */
export function notifyIncEpoch(): Parts {
  return notification(NOTIFY.INC_EPOCH, []);
}

/** Asks the kernel to forget inodes that nothing uses. */
export function notifyPrune(kernelNodeIds: readonly KernelNodeId[]): Parts {
  const list = new Uint8Array(8 * kernelNodeIds.length);
  const view = viewOf(list);
  for (const [index, kernelNodeId] of kernelNodeIds.entries()) writeU64(view, 8 * index, kernelNodeId);
  return notification(NOTIFY.PRUNE, [NOTIFY_PRUNE_OUT.encode({ count: kernelNodeIds.length }), list]);
}

function notification(code: number, body: Parts): Parts {
  const len = body.reduce((sum, part) => sum + part.length, OUT_HEADER.size);
  return [OUT_HEADER.encode({ len, error: code, unique: 0 }), ...body];
}

function terminated(name: string): Uint8Array {
  return Buffer.from(`${name}\0`);
}

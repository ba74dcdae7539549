/**
 * The fast path: the addon moves bytes between the kernel and local files by itself. The interface; `fuse/fast-path.ts`
 * implements it, `files/fast-path.ts` decides when. The addon never does so while JavaScript runs, so a lease ends in
 * the same moment in which it is revoked.
 */
import type { HandleId } from "./filesystem.ts";

export interface FastPath {
  /** READs of the handle are answered from this file descriptor, until the handle ends or the lease is revoked. */
  grantRead(handle: HandleId, descriptor: number): void;
  /** WRITEs of the handle go to this file descriptor, for `milliseconds` at most. */
  grantWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  /** From now on the READs of every handle with this descriptor come to JavaScript again. */
  revokeReads(descriptor: number): void;
  /** From now on the WRITEs of every handle with this descriptor come to JavaScript again. */
  revokeWrites(descriptor: number): void;
  /** The handle was released. */
  end(handle: HandleId): void;
}

/**
 * The fast path: the device itself moves bytes between the kernel and local files. The interface; `fuse/fast-path.ts`
 * implements it, `files/fast-path.ts` says when. The device never does it while JavaScript runs, and a lease that is
 * revoked ends at once.
 */
import type { HandleId } from "./filesystem.ts";

export interface FastPath {
  /** READs of the handle are answered from the file, until the handle ends or the lease is revoked. */
  grantRead(handle: HandleId, descriptor: number): void;
  /** WRITEs of the handle go to the file, for so many milliseconds at most. */
  grantWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  /** From now on READs of this file come to us again, of every handle. */
  revokeReads(descriptor: number): void;
  /** From now on WRITEs of this file come to us again, of every handle. */
  revokeWrites(descriptor: number): void;
  /** The handle was released. */
  end(handle: HandleId): void;
}

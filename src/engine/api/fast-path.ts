/**
 * The device's way to move bytes between kernel and local files by itself, as the flows see it; `fuse/fast-path.ts` is the
 * real one. It never does so while one of us runs, and no longer from when it is told. See let-move.ts.
 */
import type { HandleId } from "./filesystem.ts";

export interface FastPath {
  /** READs of the handle are answered out of the file, until its end. */
  grantRead(handle: HandleId, descriptor: number): void;
  /** WRITEs of the handle go to the file, for so many milliseconds. */
  grantWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  /** From here on READs of this file come to us again, whichever handle they are of … */
  revokeReads(descriptor: number): void;
  /** … and WRITEs to it. */
  revokeWrites(descriptor: number): void;
  /** The handle is no more. */
  end(handle: HandleId): void;
}

export const NO_FAST_PATH: FastPath = {
  grantRead: () => {},
  grantWrite: () => {},
  revokeReads: () => {},
  revokeWrites: () => {},
  end: () => {},
};

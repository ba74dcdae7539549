/**
 * Passthrough: the kernel reads, writes and maps a local file by itself. The interface; `fuse/passthrough.ts`
 * implements it, `files/passthrough.ts` decides when.
 */
import type { Brand } from "../../lib/brand.ts";

/** The number (> 0) under which the kernel reads, writes and maps a registered file. */
export type BackingId = number & Brand<"BackingId">;

export const backingId = (id: number): BackingId => id as BackingId;

export interface Passthrough {
  /** True: files can be registered now. */
  readonly isOn: boolean;
  /** True: two changes of a file with a stat in between never leave the same times (from Linux 6.13 on). */
  readonly timesAreExact: boolean;
  /** The backing id of the open file; undefined: the kernel refuses it. */
  register(descriptor: number): BackingId | undefined;
  /** No new open can use the backing id; opens that use it go on. */
  unregister(id: BackingId): void;
}

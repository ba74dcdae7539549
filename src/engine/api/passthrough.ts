/**
 * Passthrough: the kernel reads, writes and maps a local file by itself. The interface; `fuse/passthrough.ts`
 * implements it, `files/passthrough.ts` decides when.
 */

export interface Passthrough {
  /** True: files can be registered now. */
  readonly isOn: boolean;
  /** True: two changes of a file with a stat in between never leave the same times (from Linux 6.13 on). */
  readonly timesAreExact: boolean;
  /**
   * The backing id (> 0) under which the kernel reads, writes and maps the open file; undefined: the kernel refuses it.
   */
  register(descriptor: number): number | undefined;
  /** No new open can use the backing id; opens that use it go on. */
  unregister(id: number): void;
}

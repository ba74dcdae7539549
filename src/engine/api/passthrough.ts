/**
 * Passthrough: the kernel reads, writes and maps a local file by itself. The interface; `fuse/passthrough.ts`
 * implements it, `files/passthrough.ts` says when.
 */

export interface Passthrough {
  /** The kernel takes files now. */
  readonly isOn: boolean;
  /** Two changes of a file with a stat between them never leave the same times (Linux 6.13). */
  readonly timesAreExact: boolean;
  /**
   * The backing id (> 0) under which the kernel reads, writes and maps the open file; undefined: the kernel refuses it.
   */
  register(descriptor: number): number | undefined;
  /** No new open can use the backing id; opens that use it go on. */
  unregister(id: number): void;
}

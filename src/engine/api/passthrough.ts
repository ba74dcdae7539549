/** The kernel's door to local files, as the flows see it; `fuse/passthrough.ts` is the real one. See pass-on.ts. */

export interface Passthrough {
  /** The kernel takes files now. */
  readonly isOn: boolean;
  /** No two changes of a file with a look at it between them leave the same times (Linux 6.13). */
  readonly timesAreExact: boolean;
  /** An id for the open file, under which the kernel reads, writes and maps it; undefined: it does not take it. */
  register(descriptor: number): number | undefined;
  /** Opens that use the id go on. */
  unregister(id: number): void;
}

export const NO_PASSTHROUGH: Passthrough = {
  isOn: false,
  timesAreExact: true,
  register: () => undefined,
  unregister: () => {},
};

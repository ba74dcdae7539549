/** The kernel's handles of a cache file, and the state of write detection for passthrough writers. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { FileStat } from "../../lib/files.ts";
import type { BackingId } from "../api/index.ts";

/** A stat of the file, for a later comparison. */
export interface KnownStat {
  readonly stat: FileStat;
  readonly at: ElapsedTime;
  /** True: any change made after the stat shows in size and times. */
  readonly isExact: boolean;
}

export class PassthroughUse {
  #kernelHandles = 0;
  #backingId: BackingId | undefined;
  #writers = 0;
  #isMapped = false;
  #admitting: Promise<void> | undefined;
  #lastStat: KnownStat | undefined;
  #isStatCurrent = false;
  #durableStat: FileStat | undefined;

  /** How many handles the kernel has. */
  get kernelHandles() {
    return this.#kernelHandles;
  }
  /**
   * The id under which the kernel reads and writes the file by itself; undefined: we serve it. Decided with the first
   * handle.
   */
  get backingId() {
    return this.#backingId;
  }
  /** How many writable handles the kernel serves by itself. */
  get writers() {
    return this.#writers;
  }
  /** All descriptors of passthrough writers are closed, and one of them still has the file mapped; see mapping-wait.ts. */
  get isMapped() {
    return this.#isMapped;
  }
  get isAdmitting() {
    return this.#admitting !== undefined;
  }
  /** The stat of the last write detection; undefined: there is no passthrough writer. */
  get lastStat() {
    return this.#lastStat;
  }
  /** True within `whileStatIsCurrent`: `lastStat` is the present state of the file. */
  get isStatCurrent() {
    return this.#isStatCurrent;
  }
  /** The stat of `lastStat` when the file was last synced: the content of that moment is durable. */
  get durableStat() {
    return this.#durableStat;
  }

  /** Before the first handle: the kernel is to serve the file under this id. Undefined: it cannot. */
  register(backingId: BackingId | undefined): void {
    this.#backingId = backingId;
  }
  /** Counts a handle. True: it is one of a passthrough writer. */
  attach(write: boolean): boolean {
    this.#kernelHandles += 1;
    const isWriter = write && this.#backingId !== undefined;
    if (isWriter) this.#writers += 1;
    return isWriter;
  }
  /** Ends a handle. Returns the backing id to give up, after the last handle. */
  detach(write: boolean): BackingId | undefined {
    if (this.#backingId !== undefined && write) this.#writers -= 1;
    this.#kernelHandles -= 1;
    if (this.#kernelHandles > 0) return undefined;
    const backingId = this.#backingId;
    this.#backingId = undefined;
    return backingId;
  }
  /** Admits a writer. Writers that come at the same time share the run. */
  admitOnce(admit: () => Promise<void>): Promise<void> {
    this.#admitting ??= admit().finally(() => {
      this.#admitting = undefined;
    });
    return this.#admitting;
  }
  /** A takeover: the kernel has these handles. */
  resumed(kernelHandles: number, backingId: BackingId | undefined, writers: number): void {
    this.#kernelHandles = kernelHandles;
    this.#backingId = backingId;
    if (backingId !== undefined) this.#writers = writers;
  }

  setMapped(isMapped: boolean): void {
    this.#isMapped = isMapped;
  }
  statTaken(taken: KnownStat): void {
    this.#lastStat = taken;
  }
  whileStatIsCurrent(work: () => void): void {
    this.#isStatCurrent = true;
    try {
      work();
    } finally {
      this.#isStatCurrent = false;
    }
  }
  /** `stat`: the state that was synced; undefined: a change may have come since. */
  synced(stat: FileStat | undefined): void {
    this.#durableStat = stat;
  }
  noWriterLeft(): void {
    this.#lastStat = undefined;
    this.#durableStat = undefined;
  }
}

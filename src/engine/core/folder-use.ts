/**
 * Notes which folders programs use, for the order in which names are dropped (ops/drop-names.ts). The written time is
 * coarse: a folder in constant use costs one change of its row in two minutes. It is written in a commit that happens
 * anyway. A crash loses the latest uses: the names of such a folder may be dropped early, and are listed again.
 */
import { minus, plus, type RowTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { RowClockRuntime } from "../host/index.ts";
import type { Request } from "./request.ts";

/** A use within this many request times after the written one is not written. */
const STEP = 2;
/** Longer than a request may take. */
const REQUEST_MS = 60_000;
/** With this many uses to write, they get a commit of their own. */
const NOTED_MAX = 256;

export class FolderUse {
  readonly #metadata: Metadata<Request>;
  readonly #runtime: Pick<RowClockRuntime, "now">;
  /** The uses that are to be written. */
  readonly #noted = new Map<InodeId, RowTime>();
  /** Milliseconds within which the kernel has taken in an answer that was given. */
  readonly requestMs: number;

  constructor(metadata: Metadata<Request>, runtime: Pick<RowClockRuntime, "now">, requestMs = REQUEST_MS) {
    this.#metadata = metadata;
    this.#runtime = runtime;
    this.requestMs = requestMs;
    metadata.beforeCommit(() => this.#write());
  }

  /** A program uses the names of this folder. Never fails. */
  note(folder: InodeId): void {
    const used = this.#metadata.inodes.get(folder)?.used;
    const now = this.#runtime.now();
    if (used === undefined || (used !== null && used !== "never" && minus(now, used) < STEP * this.requestMs)) return;
    if (this.#noted.size >= NOTED_MAX && !this.#noted.has(folder)) this.#writeNow();
    if (this.#noted.size < NOTED_MAX || this.#noted.has(folder)) this.#noted.set(folder, now);
  }

  /** True: the latest use of the folder is still to be written. */
  isNoted(folder: InodeId): boolean {
    return this.#noted.has(folder);
  }

  /**
   * If a folder is not noted, and its written use is not after this time, the kernel has taken in every answer about
   * its names.
   */
  longAgo(): RowTime {
    return plus(this.#runtime.now(), -(STEP + 1) * this.requestMs);
  }

  #writeNow(): void {
    try {
      this.#metadata.transaction(() => this.#write());
    } catch {
      // The disk has told of it. While the rows take no changes, no names are dropped either.
    }
  }

  /** The transaction may run again, so the uses are kept until it is committed. */
  #write(): void {
    const { inodes } = this.#metadata;
    if (this.#noted.size === 0) return;
    for (const [folder, used] of this.#noted) if (inodes.get(folder) !== undefined) inodes.update(folder, { used });
    this.#metadata.afterCommit(() => this.#noted.clear());
  }
}

/** The changes of programs to a cache file, and how much of them the rows, the kernel and the disk know. */
import { type ElapsedTime, laterOf } from "../../lib/clocks.ts";
import { compareTimes, type Time } from "../../lib/time.ts";

/**
 * A number: at least the size that the kernel was told last. truncated: the kernel has truncated the file since then.
 * unknown: the kernel may have been told any size.
 */
type ShownSize = number | "truncated" | "unknown";

/** The state of a file in the rows when it is opened. */
interface FirstChanges {
  readonly isContentDirty: boolean;
  readonly isDurable: boolean;
  /** Bytes. */
  readonly size: number;
  readonly at: ElapsedTime;
}

export class FileChanges {
  #isContentDirty: boolean;
  #isDurable: boolean;
  #hasUnpersistedStat = false;
  #shownSize: ShownSize;
  /** The mtime that the kernel was told together with the size; undefined: not known. */
  #shownTime: Time | undefined;
  #writes = 0;
  #inFlight = 0;
  #timesSet = 0;
  #firstWriteAt: ElapsedTime | undefined;
  #lastWriteAt: ElapsedTime;

  constructor({ isContentDirty, isDurable, size, at }: FirstChanges) {
    this.#isContentDirty = isContentDirty;
    this.#isDurable = isDurable;
    this.#shownSize = size;
    this.#lastWriteAt = at;
  }

  /** The row says that the content has changed since the last snapshot or clean state: its hash is null. */
  get isContentDirty() {
    return this.#isContentDirty;
  }
  /**
   * The row, in memory or on the disk, says that the content is durable. Before another byte changes, the row on the
   * disk must say that the content is not durable.
   */
  get isDurable() {
    return this.#isDurable;
  }
  /** Size and times in the rows may be older than the file's. */
  get hasUnpersistedStat() {
    return this.#hasUnpersistedStat;
  }
  /** How many changes programs have begun. */
  get writes() {
    return this.#writes;
  }
  /** How many of the changes that programs have begun are not done yet. */
  get inFlight() {
    return this.#inFlight;
  }
  /** How many times programs have set the file's mtime. */
  get timesSet() {
    return this.#timesSet;
  }
  /** The time of the first change since the last snapshot. Undefined: there was none. */
  get firstWriteAt() {
    return this.#firstWriteAt;
  }
  /** The time of the last change; before the first one, the time at which the file was opened here. */
  get lastWriteAt() {
    return this.#lastWriteAt;
  }

  /** The first writer is admitted. `size`: the size in the rows; undefined: the file may have another one. */
  firstWriter(isContentDirty: boolean, size: number | undefined, at: ElapsedTime): void {
    this.#isContentDirty = isContentDirty;
    // The quiet before the next snapshot is counted from here.
    this.#lastWriteAt = at;
    // While there was no writer, the kernel was told the size in the rows.
    this.shown(size ?? "unknown", undefined);
  }
  begin(): void {
    this.#inFlight += 1;
  }
  end(): void {
    this.#inFlight -= 1;
  }
  /** Counts a change. Before the first one since the last snapshot or clean state, call `contentIsDirty`. */
  count(at: ElapsedTime): void {
    this.#hasUnpersistedStat = true;
    this.#writes += 1;
    this.#lastWriteAt = laterOf(this.#lastWriteAt, at);
    this.#firstWriteAt ??= this.#lastWriteAt;
  }
  /** The rows say that the content has changed. */
  contentIsDirty(): void {
    this.#isContentDirty = true;
    this.#firstWriteAt = undefined;
  }
  /** A snapshot has everything that was written so far. */
  contentIsClean(isDurable: boolean): void {
    this.#isContentDirty = false;
    this.#isDurable = isDurable;
    this.#firstWriteAt = undefined;
  }
  setDurable(isDurable: boolean): void {
    this.#isDurable = isDurable;
  }
  timeWasSet(): void {
    this.#timesSet += 1;
  }
  statIsPersisted(): void {
    this.#hasUnpersistedStat = false;
  }
  /**
   * The changes of a writer are not known. So a snapshot under way must not count as the present content.
   */
  mayHaveChanged(): void {
    this.#hasUnpersistedStat = true;
    this.#writes += 1;
  }
  noWriterLeft(): void {
    this.#firstWriteAt = undefined;
  }

  /** A takeover: a writer may have changed the file until now. */
  resumed(isContentDirty: boolean, at: ElapsedTime): void {
    this.#isContentDirty = isContentDirty;
    if (!isContentDirty) return;
    this.#hasUnpersistedStat = true;
    this.#lastWriteAt = at;
    this.#firstWriteAt = at;
  }

  // The size and time that the kernel was told

  /** An answer about this file alone tells the kernel this size, and this mtime if one is given. */
  shown(size: ShownSize, time: Time | undefined): void {
    this.#shownSize = size;
    this.#shownTime = time;
  }
  /** An answer tells the kernel this size, which it may ignore. */
  mayBeShown(size: number): void {
    if (this.isLongerThanShown(size)) this.#shownSize = size;
    this.#shownTime = undefined;
  }
  shownUnknown(): void {
    this.#shownSize = "unknown";
  }
  kernelTruncated(): void {
    this.#shownSize = "truncated";
  }
  /** True: the kernel was not told yet that the file is this long. */
  isLongerThanShown(size: number): boolean {
    return this.#shownSize === "truncated" || (this.#shownSize !== "unknown" && size > this.#shownSize);
  }
  /** True: the kernel was told just this size and mtime. */
  isShown(size: number, mtime: Time): boolean {
    return size === this.#shownSize && this.#shownTime !== undefined && compareTimes(mtime, this.#shownTime) === 0;
  }
}

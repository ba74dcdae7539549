/**
 * Missing and unverified ranges of an open cache file. Memory has the ranges that are missing now; the row has the
 * persisted missing ranges, which count after a crash.
 * - The row may name more than is missing: after a crash those bytes are fetched again.
 * - The row never names a byte that a program wrote.
 * - The row forgets a range only after its bytes are in the file.
 *
 * Unverified ranges are bytes of the origin in a changed file, here or missing, that verify.ts has yet to check. The
 * three rules hold for them too.
 */
import type { RunningHash } from "../../lib/files.ts";
import { createRangeLock, type RangeLock } from "../../lib/range-lock.ts";
import {
  addRange,
  clipRanges,
  intersectRanges,
  listRanges,
  NO_RANGES,
  type Ranges,
  rangeOf,
  subtractRange,
  touchesRange,
} from "../../lib/ranges.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Rows } from "../core/index.ts";
import type { Download } from "./download.ts";
import type { FileOnDisk } from "./file-on-disk.ts";
import { DownloadHash } from "./running-hash.ts";

/** The version that the missing ranges belong to. */
export interface Origin {
  readonly node: string;
  readonly version: string;
}

/** The ranges as they are when the file is found on the disk. */
export interface FoundRanges {
  readonly origin: Origin | undefined;
  readonly originHash: string | null;
  readonly originSize: number;
  readonly missing: Ranges;
  readonly persistedMissing: Ranges;
  readonly unverified: Ranges;
  readonly truncatedTo: number | undefined;
  readonly isOriginal: boolean;
}

/** The ranges as they are now. `isChecked`: the bytes of the origin that are here are known to be right. */
type Known = { -readonly [Field in keyof FoundRanges]: FoundRanges[Field] } & { isChecked: boolean };

type CacheFileRows = Rows["metadata"]["cacheFiles"];

export class OriginRanges {
  /**
   * Held while bytes of the origin are being written, while a program's bytes are being written in their place, and
   * while bytes of the origin are read to be checked.
   */
  readonly lock: RangeLock = createRangeLock();
  readonly #rows: CacheFileRows;
  readonly #kernelNodeId: KernelNodeId;
  readonly #runningHash = new DownloadHash();
  readonly #downloads = new Set<Download>();
  /** Functions that are called whenever `missing` or the downloads change. */
  readonly #waiting = new Set<() => void>();
  #verification: Download | undefined;
  #check: Promise<boolean> | undefined;
  #now: Known;

  constructor(rows: CacheFileRows, kernelNodeId: KernelNodeId, found: FoundRanges) {
    this.#rows = rows;
    this.#kernelNodeId = kernelNodeId;
    this.#now = knownOf(found);
  }

  get origin() {
    return this.#now.origin;
  }
  /** SHA-256 of the origin version, also when the file has changed since; null when not known. */
  get originHash() {
    return this.#now.originHash;
  }
  /** Size of the origin version in bytes. Known while the file is that version, or while a range is unverified. */
  get originSize() {
    return this.#now.originSize;
  }
  /** Missing ranges: bytes of the origin that are not here yet. */
  get missing() {
    return this.#now.missing;
  }
  /** Persisted missing ranges, as the row has them. Never less than `missing`. After a crash they count. */
  get persistedMissing() {
    return this.#now.persistedMissing;
  }
  /**
   * Unverified ranges: bytes of the origin in a changed file, here or missing, that were not checked against the
   * origin's hash yet.
   */
  get unverified() {
    return this.#now.unverified;
  }
  /** Every byte is the origin's, so the whole file can be checked against the origin's hash. */
  get isOriginal() {
    return this.#now.isOriginal;
  }
  /** The bytes of the origin that are here are known to be right. */
  get isChecked() {
    return this.#now.isChecked;
  }
  /** The check of the complete file against the hash; resolves to true if it matches. Undefined: not begun. */
  get check() {
    return this.#check;
  }
  /** The downloads under way. */
  get downloads(): ReadonlySet<Download> {
    return this.#downloads;
  }
  /** The download that verifies the unverified ranges; undefined: none is under way. */
  get verification() {
    return this.#verification !== undefined && this.#downloads.has(this.#verification) ? this.#verification : undefined;
  }

  /** The file was found anew while it is open. Downloads and their readers go on. */
  foundAnew(found: FoundRanges): void {
    this.#runningHash.stop();
    this.#now = knownOf(found);
    this.#check = undefined;
  }

  // Readers and downloads

  /** `look` is called whenever `missing` or the downloads change, until `unwatch`. */
  watch(look: () => void): void {
    this.#waiting.add(look);
  }
  unwatch(look: () => void): void {
    this.#waiting.delete(look);
  }
  #wakeReaders(): void {
    for (const look of [...this.#waiting]) look();
  }

  beginDownload(download: Download): void {
    this.#downloads.add(download);
  }
  endDownload(download: Download): void {
    this.#downloads.delete(download);
    this.#wakeReaders();
  }
  verifyBy(download: Download): void {
    this.#verification = download;
  }

  /** These bytes of the origin are in the file. */
  arrived(start: number, end: number): void {
    this.#now.missing = subtractRange(this.#now.missing, start, end);
    this.#wakeReaders();
  }

  /**
   * Records fetched ranges in the row. The row says that a file is whole only once the file is checked. A file that a
   * program has changed is synced first: its hash is not known, so bytes that power loss took would not be noticed.
   * Rejects with the error of the disk or the rows.
   */
  async recordArrived(disk: Pick<FileOnDisk, "isKept" | "sync">): Promise<void> {
    const isUnchecked = this.#now.isOriginal && this.#now.originHash !== null && !this.#now.isChecked;
    const missing = this.#now.missing;
    if (!disk.isKept || (isUnchecked && missing.length === 0)) return;
    if (!this.#now.isOriginal && missing !== this.#now.persistedMissing) await disk.sync();
    // Bytes that arrived during the sync are not synced. Bytes that were lost during it are missing again. Ranges that a
    // program wrote during it are not persisted any more.
    this.#record(intersectRanges(unite(missing, this.#now.missing), this.#now.persistedMissing), this.#now.unverified);
  }

  /** Makes these ranges missing: they have to be fetched again. */
  lost(missing: Ranges): void {
    this.#now.isChecked = false;
    this.#now.missing = missing;
    // Bytes that are fetched again may differ from those that were hashed.
    this.#runningHash.stop();
    this.#record(missing, this.#now.unverified);
    this.#wakeReaders();
  }

  // Changes by programs

  /**
   * A program's bytes are in the file. After this, no crash leads to a fetch over these bytes, or to their being
   * checked as the origin's.
   */
  overwritten(start: number, end: number): void {
    const [persisted, unverified] = [this.#now.persistedMissing, this.#now.unverified];
    if (touchesRange(this.#now.missing, start, end)) this.arrived(start, end);
    if (touchesRange(persisted, start, end) || touchesRange(unverified, start, end)) {
      this.#record(subtractRange(persisted, start, end), subtractRange(unverified, start, end));
    }
  }

  /** The file ends at `size` now: missing bytes behind it are not wanted any more. */
  truncated(size: number): void {
    this.#now.missing = clipRanges(this.#now.missing, size);
    this.#now.unverified = clipRanges(this.#now.unverified, size);
    this.#now.truncatedTo = Math.min(size, this.#now.truncatedTo ?? size);
    for (const download of this.#downloads) {
      if (download.start >= size) download.abort();
    }
    this.#wakeReaders();
    this.persistTruncation();
  }

  /**
   * Records a truncation in the row: new bytes behind that size are not the origin's. If the row could not be changed
   * at the truncation, no further change is acknowledged before it is. Once the file has grown again, its size does not
   * tell where it was truncated.
   */
  persistTruncation(): void {
    if (this.#now.truncatedTo === undefined) return;
    this.#record(clipRanges(this.#now.persistedMissing, this.#now.truncatedTo), this.#now.unverified);
    this.#now.truncatedTo = undefined;
  }

  /**
   * Before the first byte of the file changes: bytes that were not checked yet become unverified in the row. Returns
   * the unverified ranges, for `contentChanged`. Call it in the transaction that sets the content dirty. That
   * transaction may fail, so the state in memory changes after it.
   */
  leaveOrigin(): Ranges {
    if (!this.#now.isOriginal) return this.#now.unverified;
    const isKnownRight = this.#now.originHash === null || (this.#now.isChecked && this.#now.missing.length === 0);
    if (isKnownRight || this.#rows.get(this.#kernelNodeId) === undefined) return NO_RANGES;
    const unverified = rangeOf(0, this.#now.originSize);
    this.#rows.update(this.#kernelNodeId, {
      originHash: this.#now.originHash,
      originSize: this.#now.originSize,
      unverified,
    });
    return unverified;
  }
  /** The rows call the content dirty. `unverified`: what `leaveOrigin` returned. */
  contentChanged(unverified: Ranges): void {
    this.#now.unverified = unverified;
    this.#now.isChecked &&= unverified.length === 0;
  }
  /** Not every byte is the origin's any more. */
  noLongerOriginal(): void {
    this.#now.isOriginal = false;
  }

  /**
   * No version has this content any more, so nothing is compared with an origin any more. For programs that have the
   * file open, the content counts as changed already.
   */
  leaveOriginForGood(): void {
    this.#now.origin = undefined;
    this.#now.originHash = null;
    this.#now.isOriginal = false;
    this.#now.unverified = NO_RANGES;
  }

  /** The content equals this version too. Missing ranges are fetched from it from now on. */
  comesFrom(origin: Origin): void {
    this.#now.origin = origin;
  }

  // Checks

  /** True: the bytes of the origin that are here are known to be right. */
  setChecked(isChecked: boolean): void {
    this.#now.isChecked = isChecked;
  }
  /** The complete file is being checked. A check that fails to run is forgotten. */
  beginCheck(check: Promise<boolean>): void {
    this.#check = check;
    check.catch(() => this.forgetCheck());
  }
  forgetCheck(): void {
    this.#check = undefined;
  }
  /** Ends the unverified ranges: the bytes of the origin are synced and known to be right, or cannot be checked. */
  markVerified(): void {
    this.#record(this.#now.persistedMissing, NO_RANGES);
  }

  /** Call it after bytes of the origin have arrived. `begin`: begins a hash of the file, from its first byte on. */
  hashArrived(begin: () => RunningHash): void {
    const isWanted = this.#now.isOriginal && this.#now.originHash !== null && !this.#now.isChecked;
    if (isWanted) this.#runningHash.reach(this.#now.missing[0] ?? this.#now.originSize, begin);
    else this.#runningHash.stop();
  }
  /** Takes the hash of the arrived bytes, to finish it. Undefined: the file has to be hashed as a whole. */
  takeHash(): RunningHash | undefined {
    return this.#runningHash.take();
  }
  stopHash(): void {
    this.#runningHash.stop();
  }

  #record(persistedMissing: Ranges, unverified: Ranges): void {
    const isRow = this.#rows.get(this.#kernelNodeId) !== undefined;
    if (isRow) this.#rows.update(this.#kernelNodeId, { missing: persistedMissing, unverified });
    this.#now.persistedMissing = persistedMissing;
    this.#now.unverified = unverified;
  }
}

function knownOf(found: FoundRanges): Known {
  return { ...found, isChecked: found.missing.length === 0 && found.unverified.length === 0 };
}

function unite(one: Ranges, other: Ranges): Ranges {
  let all = one;
  for (const { start, end } of listRanges(other)) all = addRange(all, start, end);
  return all;
}

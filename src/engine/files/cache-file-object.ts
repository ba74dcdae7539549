/**
 * An open cache file: its state (cache-file.ts) together with its interface for other rooms (core/cache-file.ts). Each
 * call is a flow of this room.
 */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { FileStat } from "../../lib/files.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Caller, HandleId } from "../api/index.ts";
import { type Host, type Kernel, type Remote, type Rows, SnapshotPacing, type Uploads } from "../core/index.ts";
import type { FirstState, OpenCacheFile } from "./cache-file.ts";
import { fetchAll, prefetchSmall } from "./fetch-all.ts";
import type { FileChanges } from "./file-changes.ts";
import type { FileOnDisk } from "./file-on-disk.ts";
import type { FileUse } from "./file-use.ts";
import { makeDurable } from "./make-durable.ts";
import { closePassthrough } from "./mapping-wait.ts";
import { closeCacheFile, persistStat, syncName } from "./open-close.ts";
import type { OriginRanges } from "./origin-ranges.ts";
import { attachPassthrough, detachPassthrough } from "./passthrough.ts";
import { PassthroughUse } from "./passthrough-use.ts";
import { threadWentOn, untilTruncateKnown } from "./pending-truncate.ts";
import { readBytes, seekBytes } from "./read-bytes.ts";
import { createReader } from "./readahead.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import type { LocalFiles } from "./room.ts";
import { setContentDirty } from "./set-dirty.ts";
import { hashCacheFile } from "./snapshot-source.ts";
import { allocateBytes, truncateBytes, writeBytes } from "./write-bytes.ts";
import { detectWrites, isExact } from "./write-detection.ts";

export class CacheFileObject implements OpenCacheFile {
  readonly kernelNodeId: KernelNodeId;
  readonly inode: InodeId;
  readonly path: string;
  readonly ranges: OriginRanges;
  readonly disk: FileOnDisk;
  readonly use: FileUse;
  readonly changes: FileChanges;
  readonly passthrough = new PassthroughUse();
  readonly pacing = new SnapshotPacing();
  readonly #room: Rows & LocalFiles & Kernel & Remote & Uploads & Host;

  constructor(room: Rows & LocalFiles & Kernel & Remote & Uploads & Host, first: FirstState) {
    this.#room = room;
    this.kernelNodeId = first.kernelNodeId;
    this.inode = first.inode;
    this.path = first.path;
    this.ranges = first.ranges;
    this.disk = first.disk;
    this.use = first.use;
    this.changes = first.changes;
  }

  get writers() {
    return this.use.writers;
  }
  get isUsed() {
    return this.use.opens > 1 || this.use.isUsed;
  }
  get backingId() {
    return this.passthrough.backingId;
  }
  get hasPassthroughWriter() {
    return this.passthrough.lastStat !== undefined;
  }
  get mayHaveUndetectedWrites() {
    return this.passthrough.lastStat !== undefined && !this.passthrough.isStatCurrent;
  }
  get isKept() {
    return this.disk.isKept;
  }
  get isWhole() {
    return this.ranges.missing.length === 0;
  }
  get isContentDirty() {
    return this.changes.isContentDirty;
  }
  get mayHaveUnpersistedStat() {
    return this.changes.hasUnpersistedStat || this.hasPassthroughWriter;
  }
  get writes() {
    return this.changes.writes;
  }
  get firstWriteAt() {
    return this.changes.firstWriteAt;
  }
  get lastWriteAt() {
    return this.changes.lastWriteAt;
  }

  createReader() {
    const reader = createReader();
    return {
      read: (handle: HandleId, offset: number, size: number, caller: Pick<Caller, "signal" | "answerFrom">) =>
        readBytes(this.#room, handle, this, reader, offset, size, caller),
    };
  }
  seek(kind: "data" | "hole", offset: number) {
    return seekBytes(this, kind, offset);
  }
  write(handle: HandleId, offset: number, data: Uint8Array) {
    return writeBytes(this.#room, handle, this, offset, data);
  }
  truncate(caller: Caller, size: number) {
    return truncateBytes(this.#room, caller, this, size);
  }
  allocate(mode: number, offset: number, length: number) {
    return allocateBytes(this.#room, this, mode, offset, length);
  }
  threadWentOn(caller: Pick<Caller, "pid">) {
    threadWentOn(this.#room, caller, this.kernelNodeId);
  }
  untilTruncateKnown(signal: AbortSignal) {
    return untilTruncateKnown(this.#room, this.kernelNodeId, signal);
  }

  async detectWrites() {
    await detectWrites(this.#room, this);
  }
  whileStatIsCurrent(work: () => void) {
    this.passthrough.whileStatIsCurrent(work);
  }
  persistStat() {
    return persistStat(this.#room, this);
  }
  makeDurable() {
    return makeDurable(this.#room, this);
  }
  sync() {
    return this.disk.sync();
  }
  syncName() {
    return syncName(this.#room, this);
  }
  nameIsDurable() {
    this.disk.nameIsDurable();
  }
  stat() {
    return this.disk.file.stat();
  }
  isExact(stat: FileStat) {
    return isExact(this.#room, stat);
  }

  fetchAll(signal: AbortSignal) {
    return fetchAll(this.#room, this, signal);
  }
  prefetchSmall(signal: AbortSignal) {
    return prefetchSmall(this.#room, this, signal);
  }
  leaveOriginForGood() {
    this.ranges.leaveOriginForGood();
  }

  revokeWriteLeases() {
    revokeWriteLeases(this.#room, this);
  }
  beginSnapshot() {
    this.revokeWriteLeases();
    return this.changes.inFlight > 0 ? undefined : this.changes.writes;
  }
  hash(expected: number, signal: AbortSignal) {
    return hashCacheFile(this.#room, this, expected, signal);
  }
  setContentDirty(at?: ElapsedTime) {
    setContentDirty(this.#room, this, at);
  }
  setContentClean(isDurable: boolean) {
    this.changes.contentIsClean(isDurable);
  }

  shown(size: number, time?: Time) {
    this.changes.shown(size, time);
  }
  mayBeShown(size: number) {
    this.changes.mayBeShown(size);
  }
  shownUnknown() {
    this.changes.shownUnknown();
  }

  attach(write: boolean) {
    return attachPassthrough(this.#room, this, write);
  }
  detach(write: boolean) {
    detachPassthrough(this.#room, this, write);
  }
  close(options: { write: boolean }) {
    return closeCacheFile(this.#room, this, options);
  }
  closePassthrough() {
    return closePassthrough(this.#room, this);
  }
}

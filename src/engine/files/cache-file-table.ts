/** The open cache files by kernel node id, with the interface CacheFiles for other rooms (core/cache-file.ts). */
import type { Time } from "../../lib/time.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { BackingId } from "../api/index.ts";
import { quarantineFile, rowOfNewFile } from "./backing-file.ts";
import type { FirstState, OpenCacheFile } from "./cache-file.ts";
import { CacheFileObject } from "./cache-file-object.ts";
import { hasNoWriter, leaveToDetachedWriters, withPassthroughWriters } from "./detached-writers.ts";
import { removeLeft } from "./file-removal.ts";
import { alone, stopBytes } from "./file-state.ts";
import { isStill } from "./is-unchanged.ts";
import { cacheFileStat, openCacheFile, setCacheFileTimes } from "./open-close.ts";
import type { Origin } from "./origin-ranges.ts";
import { whileTruncating } from "./pending-truncate.ts";
import { resumeFile, resumeMapped } from "./resume.ts";
import type { OpenCacheFiles, Parts } from "./room.ts";
import { fetchVersionRange, type VersionContent } from "./uncached-read.ts";
import { closeKept, keepOpenForUpload } from "./without-folder.ts";

export class CacheFileTable implements OpenCacheFiles {
  readonly #open = new Map<KernelNodeId, OpenCacheFile>();
  readonly #room: () => Parts;

  constructor(room: () => Parts) {
    this.#room = room;
  }

  get size() {
    return this.#open.size;
  }
  has(kernelNodeId: KernelNodeId) {
    return this.#open.has(kernelNodeId);
  }
  get(kernelNodeId: KernelNodeId) {
    return this.#open.get(kernelNodeId);
  }
  values() {
    return this.#open.values();
  }
  make(first: FirstState) {
    return new CacheFileObject(this.#room(), first);
  }
  set(kernelNodeId: KernelNodeId, cacheFile: OpenCacheFile) {
    this.#open.set(kernelNodeId, cacheFile);
  }
  delete(kernelNodeId: KernelNodeId) {
    this.#open.delete(kernelNodeId);
  }

  open(kernelNodeId: KernelNodeId, options: Parameters<OpenCacheFiles["open"]>[1]) {
    return openCacheFile(this.#room(), kernelNodeId, options);
  }
  rowOfNewFile(kernelNodeId: KernelNodeId) {
    return rowOfNewFile(this.#room(), kernelNodeId);
  }
  whileTruncating<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>) {
    return whileTruncating(this.#room(), kernelNodeId, work);
  }
  fetchVersion(of: VersionContent, part: { readonly start: number; readonly end: number }, signal: AbortSignal) {
    return fetchVersionRange(this.#room(), of, part, signal);
  }

  writersOf(inode: Inode) {
    return this.#open.get(inode.kernelNodeId)?.use.writers ?? 0;
  }
  stat(inode: Inode) {
    return cacheFileStat(this.#room(), inode);
  }
  setTimes(inode: Inode, mtime: Time) {
    return setCacheFileTimes(this.#room(), inode, mtime);
  }
  comesFrom(kernelNodeId: KernelNodeId, origin: Origin) {
    const { cacheFiles } = this.#room().metadata;
    const row = { originNode: origin.node, originVersion: origin.version };
    if (cacheFiles.get(kernelNodeId) !== undefined) cacheFiles.update(kernelNodeId, row);
    this.#open.get(kernelNodeId)?.ranges.comesFrom(origin);
  }

  resume(kernelNodeId: KernelNodeId, handles: readonly { write: boolean; backing: BackingId | undefined }[]) {
    return resumeFile(this.#room(), kernelNodeId, handles);
  }
  resumeMapped(kernelNodeId: KernelNodeId) {
    return resumeMapped(this.#room(), kernelNodeId);
  }
  isStill(inode: Inode, hash: string) {
    return isStill(this.#room(), inode, hash);
  }
  hasNoWriter(kernelNodeId: KernelNodeId) {
    return hasNoWriter(this.#room(), kernelNodeId);
  }
  leaveToDetachedWriters(kernelNodeId: KernelNodeId) {
    return leaveToDetachedWriters(this.#room(), kernelNodeId);
  }

  passthroughWritten() {
    return withPassthroughWriters(this.#room());
  }
  revokeWriteLeases() {
    for (const cacheFile of this.#open.values()) cacheFile.revokeWriteLeases();
  }
  alone<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>) {
    return alone(this.#room(), kernelNodeId, work);
  }
  keepOpenForUpload() {
    keepOpenForUpload(this.#room());
  }
  quarantine(path: string, name: string) {
    return quarantineFile(this.#room(), path, name);
  }
  removeLeft() {
    return removeLeft(this.#room());
  }
  closeKept() {
    return closeKept(this.#room());
  }
  stop() {
    return stopBytes(this.#room());
  }
}

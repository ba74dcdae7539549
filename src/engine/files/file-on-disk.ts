/** The file on the disk of an open cache file, or its stand-in while the disk has no room (backing-file.ts). */
import type { OpenFile } from "../../lib/files.ts";
import { shareRuns } from "../../lib/shared-run.ts";

/** The file, as it was found or made. */
export interface FoundOnDisk {
  readonly file: OpenFile;
  readonly isKept: boolean;
  readonly isNew: boolean;
}

export class FileOnDisk {
  #file: OpenFile;
  /** Files that were open here before `file`. Reads may still use them, so they are closed together with `file`. */
  readonly #former: OpenFile[] = [];
  #isKept: boolean;
  #isNew: boolean;
  #uncachedBytes: { readonly start: number; readonly bytes: Uint8Array } | undefined;

  constructor({ file, isKept, isNew }: FoundOnDisk) {
    this.#file = file;
    this.#isKept = isKept;
    this.#isNew = isNew;
  }

  get file() {
    return this.#file;
  }
  /** False: there is no file, or none that can be written. Missing ranges are then read uncached. */
  get isKept() {
    return this.#isKept;
  }
  /** The file's name may not survive power loss yet. */
  get isNew() {
    return this.#isNew;
  }
  /** The bytes of the last uncached read, for the next one. */
  get uncachedBytes() {
    return this.#uncachedBytes;
  }

  /** The real file takes the place of a stand-in, or of a file that cannot be written. */
  replace({ file, isKept, isNew }: FoundOnDisk): void {
    this.#former.push(this.#file);
    this.#uncachedBytes = undefined;
    this.#file = file;
    this.#isKept = isKept;
    this.#isNew = isNew;
  }
  keepUncached(bytes: { readonly start: number; readonly bytes: Uint8Array } | undefined): void {
    this.#uncachedBytes = bytes;
  }
  nameIsDurable(): void {
    this.#isNew = false;
  }

  /** fdatasync. Callers that come while one runs share the next one. */
  readonly sync = shareRuns(() => this.#file.sync());

  /** Rejects with the error of the disk. */
  async close(): Promise<void> {
    await Promise.all([this.#file, ...this.#former].map((file) => file.close()));
  }
}

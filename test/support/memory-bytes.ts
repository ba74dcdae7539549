/** The bytes of one file in memory, in pages that may be missing (holes), as ext4 keeps them. */

export const PAGE = 4096;

/** null: allocated, never written; reads as zeros and counts as a hole. */
type Page = Uint8Array | null;

export class MemoryBytes {
  size = 0;
  readonly #pages = new Map<number, Page>();

  get allocated(): number {
    return this.#pages.size * PAGE;
  }

  copy(): MemoryBytes {
    const copy = new MemoryBytes();
    copy.size = this.size;
    for (const [index, page] of this.#pages) copy.#pages.set(index, page?.slice() ?? null);
    return copy;
  }

  /** How much would be allocated anew if [position, position + length) were written. */
  growth(position: number, length: number): number {
    let pages = 0;
    for (const index of pagesOf(position, length)) if (!this.#pages.has(index)) pages++;
    return pages * PAGE;
  }

  read(buffer: Uint8Array, position: number): number {
    const length = Math.max(0, Math.min(buffer.length, this.size - position));
    for (const { index, from, to } of pieces(position, length)) {
      const target = index * PAGE + from - position;
      const page = this.#pages.get(index);
      if (page) buffer.set(page.subarray(from, to), target);
      else buffer.fill(0, target, target + to - from);
    }
    return length;
  }

  write(bytes: Uint8Array, position: number): void {
    for (const { index, from, to } of pieces(position, bytes.length)) {
      const source = index * PAGE + from - position;
      this.#written(index).set(bytes.subarray(source, source + to - from), from);
    }
    if (bytes.length > 0) this.size = Math.max(this.size, position + bytes.length);
  }

  truncate(size: number): void {
    if (size < this.size) {
      for (const index of this.#pages.keys()) if (index * PAGE >= size) this.#pages.delete(index);
      if (size % PAGE !== 0) this.#pages.get(Math.floor(size / PAGE))?.fill(0, size % PAGE);
    }
    this.size = size;
  }

  /** Allocates what is missing, writing nothing. */
  preallocate(position: number, length: number): void {
    for (const index of pagesOf(position, length)) if (!this.#pages.has(index)) this.#pages.set(index, null);
  }

  /** Zeros; whole pages are freed or, with `keep`, stay allocated. */
  clear(position: number, length: number, keep: boolean): void {
    if (keep) this.preallocate(position, length);
    for (const { index, from, to } of pieces(position, length)) {
      if (to - from < PAGE) this.#pages.get(index)?.fill(0, from, to);
      else if (keep) this.#pages.set(index, null);
      else this.#pages.delete(index);
    }
  }

  seek(kind: "data" | "hole", offset: number): number | undefined {
    if (offset >= this.size) return undefined;
    for (let index = Math.floor(offset / PAGE); index * PAGE < this.size; index++) {
      const isData = this.#pages.get(index) instanceof Uint8Array;
      if (isData === (kind === "data")) return Math.max(offset, index * PAGE);
    }
    return kind === "hole" ? this.size : undefined;
  }

  #written(index: number): Uint8Array {
    let page = this.#pages.get(index);
    if (!page) {
      page = new Uint8Array(PAGE);
      this.#pages.set(index, page);
    }
    return page;
  }
}

function* pagesOf(position: number, length: number): Generator<number> {
  if (length <= 0) return;
  const last = Math.floor((position + length - 1) / PAGE);
  for (let index = Math.floor(position / PAGE); index <= last; index++) yield index;
}

/** [position, position + length) cut at page borders; from and to count within the page. */
function* pieces(position: number, length: number): Generator<{ index: number; from: number; to: number }> {
  for (const index of pagesOf(position, length)) {
    const start = index * PAGE;
    yield { index, from: Math.max(0, position - start), to: Math.min(PAGE, position + length - start) };
  }
}

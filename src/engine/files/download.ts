/** A download of bytes of the origin that is under way. */
import type { Range } from "../../lib/ranges.ts";

/**
 * The bytes that a download fetches. everything: all of the content, whatever its size is. nothing: it compares bytes
 * with the origin and brings none into the file.
 */
type Wanted = Range | "everything" | "nothing";

/** Larger than the size of any content. */
const END = Number.MAX_SAFE_INTEGER;

export class Download {
  /** True: no program had asked for these bytes when the download began. No program gets its failure. */
  readonly isPrefetch: boolean;
  readonly #controller = new AbortController();
  #wanted: Wanted;
  #failure: Error | undefined;
  #done: Promise<void> = Promise.resolve();

  constructor(wanted: Wanted, isPrefetch: boolean) {
    this.#wanted = wanted;
    this.isPrefetch = isPrefetch;
  }

  get start(): number {
    return typeof this.#wanted === "string" ? 0 : this.#wanted.start;
  }
  /** The end of its bytes, exclusive. */
  get end(): number {
    if (this.#wanted === "everything") return END;
    return this.#wanted === "nothing" ? 0 : this.#wanted.end;
  }
  get isOfEverything() {
    return this.#wanted === "everything";
  }
  /** Aborted when the bytes are not wanted any more. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  /** Why it failed; undefined: it is under way, or has brought its bytes. */
  get failure() {
    return this.#failure;
  }
  /** Resolves when the download is over. Never rejects. */
  get done() {
    return this.#done;
  }

  /** `work` never rejects. */
  runs(work: Promise<void>): void {
    this.#done = work;
  }
  /** The gateway answers with the whole content: the download takes all of it. */
  takeEverything(): void {
    this.#wanted = "everything";
  }
  fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
  }
  abort(): void {
    this.#controller.abort();
  }
}

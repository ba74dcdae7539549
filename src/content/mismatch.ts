/** The bytes do not match the announced size or hash. */
export class ContentMismatch extends Error {
  override readonly name = "ContentMismatch";
  readonly what: "size" | "hash";
  readonly expected: number | string;
  readonly actual: number | string;

  /** `actual` of a size may be a lower bound, because reading stops at the first byte too many. */
  constructor(subject: string, what: "size" | "hash", expected: number | string, actual: number | string) {
    super(
      what === "size"
        ? `${subject}: expected ${expected} bytes, got ${actual}`
        : `${subject}: expected content with sha-256 ${expected}, got ${actual}`,
    );
    this.what = what;
    this.expected = expected;
    this.actual = actual;
  }
}

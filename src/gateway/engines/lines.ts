/** Cuts the output of a program into lines, whatever pieces it comes in. Pure: no files, no time. */

/** A longer line is cut into pieces of at most this many bytes. No cut lies within a character. */
export const LINE_MAX_BYTES = 16 * 1024;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const NOTHING = new Uint8Array(0);

interface LineCutter {
  /**
   * Returns the lines that end in these bytes, without their ends ("\n" or "\r\n"). They stay valid until the bytes
   * change.
   */
  push(bytes: Uint8Array): Uint8Array[];
  /** Returns the last line, if it has no end. */
  rest(): Uint8Array[];
}

export function createLineCutter(maxBytes = LINE_MAX_BYTES): LineCutter {
  /** The line that has no end yet, without its complete pieces. */
  let begun: Uint8Array = NOTHING;
  return {
    push(bytes) {
      const lines: Uint8Array[] = [];
      let from = 0;
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
        const line = joined(begun, bytes.subarray(from, end));
        begun = NOTHING;
        from = end + 1;
        pieces(line.at(-1) === RETURN ? line.subarray(0, -1) : line, maxBytes, 0, lines);
      }
      // The last byte of the rest may be the "\r" of its line's end, which belongs to no piece. The rest is copied,
      // because the bytes of the caller may change.
      begun = Uint8Array.from(pieces(joined(begun, bytes.subarray(from)), maxBytes, 1, lines));
      return lines;
    },
    rest() {
      const lines: Uint8Array[] = [];
      if (begun.length > 0) pieces(begun, maxBytes, 0, lines);
      begun = NOTHING;
      return lines;
    },
  };
}

function joined(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  return before.length === 0 ? bytes : Buffer.concat([before, bytes]);
}

/**
 * Adds the pieces of a line. `spare` 1: the line goes on, so its last piece is not added but returned, together with a
 * byte that may be part of the end of the line.
 */
function pieces(line: Uint8Array, maxBytes: number, spare: 0 | 1, into: Uint8Array[]): Uint8Array {
  let rest = line;
  while (rest.length > maxBytes + spare) {
    const end = pieceEnd(rest, maxBytes);
    into.push(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
  if (spare === 0) into.push(rest);
  return rest;
}

/**
 * Returns the end of a piece, before a character that would be cut. A continuation byte of a character begins with the
 * bits 10; a character has at most three of them.
 */
function pieceEnd(line: Uint8Array, maxBytes: number): number {
  for (let end = maxBytes; end > maxBytes - 4; end -= 1) {
    if (((line[end] ?? 0) & 0xc0) !== 0x80) return end;
  }
  return maxBytes;
}

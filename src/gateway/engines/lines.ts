/** Lines of what a program prints, however it comes in pieces. Pure: no files, no time. */

/** A longer line is cut into pieces of at most so many bytes, none of them within a character. */
export const LINE_MAX_BYTES = 16 * 1024;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const NOTHING = new Uint8Array(0);

export interface LineCutter {
  /** Lines that end in these bytes, without their ends ("\n" or "\r\n"); they hold until the bytes change. */
  push(bytes: Uint8Array): Uint8Array[];
  /** The line that has no end. */
  rest(): Uint8Array[];
}

export function createLineCutter(maxBytes = LINE_MAX_BYTES): LineCutter {
  /** Of the line that has no end yet, less than what is surely more than a piece. */
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
      // Its last byte may be the "\r" of its end, which belongs to no piece.
      // And it is copied: the caller's bytes may change.
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
 * Adds the pieces of a line. With `spare`, of a line that goes on: all but the last one, which is answered, as are bytes that
 * could be the line's end.
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

/** Before a character that would be cut; a byte that goes on with one has the bits 10 first, of which there are at most three. */
function pieceEnd(line: Uint8Array, maxBytes: number): number {
  for (let end = maxBytes; end > maxBytes - 4; end -= 1) {
    if (((line[end] ?? 0) & 0xc0) !== 0x80) return end;
  }
  return maxBytes;
}

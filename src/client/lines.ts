/** A body as lines of text. It knows neither operations nor profiles. */
import { RemoteError } from "./errors.ts";

/** Characters of the longest line. A gateway that sends more does not follow the contract. */
const LINE_LENGTH_MAX = 1024 * 1024;

/**
 * The returned function takes a chunk and returns the lines that it completes. Bytes after the last line break of a
 * body are no line. Throws a RemoteError "malformed" for a line that is too long.
 */
export function createLines(): (chunk: Uint8Array) => readonly string[] {
  const decoder = new TextDecoder();
  let rest = "";
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_LENGTH_MAX)
      throw new RemoteError("malformed", `a line is longer than ${LINE_LENGTH_MAX} characters`);
    return lines;
  };
}

/** The body with each line translated. */
export function rewordLines(
  body: AsyncIterable<Uint8Array>,
  reword: (line: string) => string,
): AsyncIterable<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  const linesIn = createLines();
  // Not a generator, because return() must reach the connection even if next() was never called.
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const result = await chunks.next();
      if (result.done === true) return result;
      return {
        done: false,
        value: Buffer.from(
          linesIn(result.value)
            .map((line) => `${reword(line)}\n`)
            .join(""),
        ),
      };
    },
    async return() {
      await chunks.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Connections that read into large buffers of their own and use these again and again. A fast transfer then comes in
 * few large pieces, and none of them is allocated, cleared and collected. Node itself reads 64 KiB at most, into a new
 * buffer each time.
 */
import type { OnReadOpts, Socket } from "node:net";
import type { buildConnector } from "undici";

const BUFFER_BYTES = 256 * 1024;
/**
 * Smaller pieces are copied. A transfer in such pieces is not fast anyway. The copies also serve the parser, which
 * keeps pieces of an answer's headers until it has them all: headers are smaller than this (undici takes 16 KiB).
 */
const LENT_BYTES = 32 * 1024;

type Build = typeof buildConnector;

/**
 * For plain HTTP. A chunk of such a connection is valid until the end of the turn in which it came. A reader that needs
 * it longer copies it.
 */
export function withReadBuffers(build: Build): Build {
  // undici passes options that it does not know on to net.connect.
  return (options) => (connection, callback) =>
    build({ ...options, onread: readBuffers() } as typeof options)(connection, callback);
}

function readBuffers(): OnReadOpts {
  const allocate = () => Buffer.allocUnsafeSlow(BUFFER_BYTES);
  let next = allocate();
  let former = allocate();
  return {
    buffer: () => next,
    callback(this: Socket, length: number, bytes: Uint8Array): boolean {
      if (length < LENT_BYTES) return this.push(Buffer.from(bytes.subarray(0, length)));
      // While the parser has unread bytes of the former buffer, that buffer is not free.
      const isFormerFree = this.readableLength === 0;
      const goesOn = this.push(bytes.subarray(0, length));
      [former, next] = [next, isFormerFree ? former : allocate()];
      return goesOn;
    },
  };
}

/**
 * The program of a hashing thread, as text, so that it starts in the same way from TypeScript sources, from compiled
 * files and from one bundled file. It reads with one buffer of 1 MiB. Messages in: {path, stop}; out: {hash, size},
 * {stopped} or {error}. `stop` is shared memory, because a thread receives no messages while it hashes.
 */
export const HASH_WORKER = `
"use strict";
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { parentPort } = require("node:worker_threads");

const buffer = Buffer.allocUnsafeSlow(1 << 20);

parentPort.on("message", ({ path, stop }) => {
  let answer;
  try {
    answer = hashFile(path, new Int32Array(stop));
  } catch ({ message, code, errno, syscall }) {
    answer = { error: { message, code, errno, syscall, path } };
  }
  parentPort.postMessage(answer);
});

function hashFile(path, stop) {
  const fd = fs.openSync(path, "r");
  try {
    const hash = createHash("sha256");
    let size = 0;
    while (Atomics.load(stop, 0) === 0) {
      const read = fs.readSync(fd, buffer, 0, buffer.length, size);
      if (read === 0) return { hash: hash.digest("hex"), size };
      hash.update(buffer.subarray(0, read));
      size += read;
    }
    return { stopped: true };
  } finally {
    fs.closeSync(fd);
  }
}
`;

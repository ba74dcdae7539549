/**
 * The program of a hashing thread, as text: so it starts the same way from TypeScript sources,
 * from the compiled files and from one bundled file. It reads with one buffer of 1 MiB, whatever
 * the size of the file. Messages: {path, state} in; {hash, size}, {stopped} or {error} out. `state`
 * is shared memory, since a thread that hashes receives no messages: STOP, BEGUN, ANSWERED.
 */
export const STOP = 0;
export const BEGUN = 1;
export const ANSWERED = 2;

export const HASH_WORKER = `
"use strict";
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { parentPort } = require("node:worker_threads");

const buffer = Buffer.allocUnsafeSlow(1 << 20);

parentPort.on("message", ({ path, state }) => {
  const words = new Int32Array(state);
  Atomics.store(words, ${BEGUN}, 1);
  let answer;
  try {
    answer = hashFile(path, words);
  } catch ({ message, code, errno, syscall }) {
    answer = { error: { message, code, errno, syscall, path } };
  }
  Atomics.store(words, ${ANSWERED}, 1);
  parentPort.postMessage(answer);
});

function hashFile(path, words) {
  const fd = fs.openSync(path, "r");
  try {
    const hash = createHash("sha256");
    let size = 0;
    while (Atomics.load(words, ${STOP}) === 0) {
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

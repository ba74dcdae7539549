/**
 * The program of the thread of running hashes, as text for the same reason as hash-worker.ts. Messages in: {id, path,
 * end}. The thread hashes that file up to `end`, while the bytes are still in the page cache. `end` null: the hash is
 * not needed any more. `end` Infinity: up to the end of the file. Only this is answered: {id, hash, size} or {id,
 * error}.
 */
export const RUNNING_HASH_WORKER = `
"use strict";
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { parentPort } = require("node:worker_threads");

const buffer = Buffer.allocUnsafeSlow(1 << 18);
const running = new Map();

parentPort.on("message", ({ id, path, end }) => {
  if (!running.has(id)) running.set(id, { fd: undefined, hash: createHash("sha256"), size: 0, error: undefined });
  const state = running.get(id);
  if (end !== null && state.error === undefined) goOn(state, path, end);
  if (end !== null && end !== Infinity) return;
  running.delete(id);
  if (state.fd !== undefined) fs.closeSync(state.fd);
  if (end === null) return;
  const { hash, size, error } = state;
  parentPort.postMessage(error === undefined ? { id, hash: hash.digest("hex"), size } : { id, error });
});

function goOn(state, path, end) {
  try {
    state.fd ??= fs.openSync(path, "r");
    while (state.size < end) {
      const read = fs.readSync(state.fd, buffer, 0, Math.min(buffer.length, end - state.size), state.size);
      if (read === 0) return;
      state.hash.update(buffer.subarray(0, read));
      state.size += read;
    }
  } catch ({ message, code, errno, syscall }) {
    state.error = { message, code, errno, syscall, path };
  }
}
`;

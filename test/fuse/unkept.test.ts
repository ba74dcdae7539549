/** Answers that may be older than what the kernel was told meanwhile: given, and not to be remembered. */
import { describe, expect, it } from "vitest";
import type { Caller, FileSystem } from "../../src/engine/api/index.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const OP = { LOOKUP: 1, GETATTR: 3, READDIRPLUS: 44 };
const GETATTR_BODY = [0, 0, 0n];

describe("an answer that was begun before the kernel was told of a change", () => {
  const ENTRY_VALID = 16;
  const ATTR_VALID = 24;

  /** A file system in which something changes while it is asked. */
  function changing() {
    const memory = createMemoryFileSystem();
    const state = { changes: 0, isChanging: true };
    const meanwhile = async <T>(answer: Promise<T>): Promise<T> => {
      const done = await answer;
      if (state.isChanging) state.changes += 1;
      return done;
    };
    const fileSystem: FileSystem = {
      ...memory,
      get changes() {
        return state.changes;
      },
      lookup: (caller, parent, name) => meanwhile(memory.lookup(caller, parent, name)),
      getattr: (caller, kernelNodeId) => meanwhile(memory.getattr(caller, kernelNodeId)),
      readdir: (...all) => meanwhile(memory.readdir(...all)),
    };
    return { state, memory, kernel: startFakeKernel({ fileSystem }) };
  }
  const caller: Caller = { uid: 0, gid: 0, pid: 1, signal: new AbortController().signal };

  it("is not kept: names, attributes and what a listing says", async () => {
    const { memory, kernel, state } = changing();
    await memory.mkdir(caller, kernelNodeId(1), "a", 0o755);
    const { handle } = await memory.opendir(caller, kernelNodeId(1));
    const ask = async () => {
      const found = (await kernel.call(OP.LOOKUP, 1, "a")).body;
      const attributes = (await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).body;
      const listing = (await kernel.call(OP.READDIRPLUS, 1, BigInt(handle), 0n, 4096, 0, 0n, 0, 0)).body;
      // "." and ".." are one padded record each; then "a".
      const at = 2 * (152 + 8);
      return [
        found.readBigUInt64LE(ENTRY_VALID),
        found.readBigUInt64LE(ATTR_VALID),
        attributes.readBigUInt64LE(0),
        listing.readBigUInt64LE(at + ENTRY_VALID),
        listing.readBigUInt64LE(at + ATTR_VALID),
      ];
    };
    expect(await ask()).toEqual([0n, 0n, 0n, 0n, 0n]);
    state.isChanging = false;
    expect(await ask()).toEqual([1n, 1n, 1n, 1n, 1n]);
  });
});

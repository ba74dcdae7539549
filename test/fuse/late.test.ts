/** A result that comes after its request was answered with EIO: what it may have changed the kernel asks for again. */
import { expect, it } from "vitest";
import type { FileSystem } from "../../src/engine/api/index.ts";
import { gate, settled, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

it.each([
  ["LOOKUP", 1, { kernelNodeId: undefined, entryValidMs: 0 }, 0],
  ["READLINK", 5, "target", 0],
  ["UNLINK", 10, undefined, 1],
] as const)("only of what changes something: %s", async (_, opcode, result, expected) => {
  const late = gate<never>();
  let unheard = 0;
  const fileSystem: FileSystem = {
    ...createMemoryFileSystem(),
    lookup: () => late.promise,
    readlink: () => late.promise,
    unlink: () => late.promise,
    unheard() {
      unheard += 1;
    },
  };
  const kernel = startFakeKernel({ fileSystem });
  kernel.send(opcode, 1, ...(opcode === 5 ? [] : ["x"]));
  kernel.clock.advance(60_000);
  late.open(result as never);
  await settled();
  expect(kernel.replies.map(({ error }) => error)).toEqual([-5]);
  expect(kernel.lines.filter(({ message }) => message === "late result dropped")).toHaveLength(1);
  expect(unheard).toBe(expected);
});

it("says of each request how long it was at hand, and whether the gateway may be why", async () => {
  const slow = gate<undefined>();
  const told: [number, boolean][] = [];
  const fileSystem: FileSystem = {
    ...createMemoryFileSystem(),
    unlink: () => slow.promise,
    releasedir: () => slow.promise,
    noteProgramTime: (milliseconds, mayAsk) => void told.push([milliseconds, mayAsk]),
  };
  const kernel = startFakeKernel({ fileSystem });
  kernel.send(10, 1, "x");
  kernel.clock.advance(30);
  kernel.send(29, 1, new Uint8Array(24));
  kernel.clock.advance(12);
  expect(told).toEqual([]);
  slow.open(undefined);
  await settled();
  expect(told.toSorted(([a], [b]) => b - a)).toEqual([
    [42, true],
    [12, false],
  ]);
});

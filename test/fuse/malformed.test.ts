/** Whatever bytes come in, the loop goes on, and nobody who waits is left without an answer. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../src/fuse/opcodes.ts";
import { SEED } from "../support/seed.ts";
import { type Header, type Part, requestBytes, settled, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const EINVAL = 22;
const NO_REPLY = new Set([2, 36, 41, 42]);

const start = () => startFakeKernel({ fileSystem: createMemoryFileSystem(), level: "warn" });

describe("a malformed message", () => {
  it.each<[string, Uint8Array]>([
    ["too short for its header", requestBytes({ opcode: 3 }).subarray(0, 39)],
    ["saying it is longer than it is", requestBytes({ opcode: 3, length: 57 }, 0, 0, 0n)],
    ["saying it is shorter than it is", requestBytes({ opcode: 3, length: 56 }, 0, 0, 0n, 0n)],
    ["with more extensions than bytes", requestBytes({ opcode: 9, extensions: 9 }, 0, 0, "d")],
    ["with a node id over 2^53", requestBytes({ opcode: 3, nodeid: 2n ** 60n }, 0, 0, 0n)],
    ["with half its body", requestBytes({ opcode: 3 }, 0, 0)],
    ["with a name without its end", requestBytes({ opcode: 1 }, Buffer.from("name"))],
    ["with one name of two", requestBytes({ opcode: 12 }, 1n, "a")],
    ["with a new folder's id over 2^53", requestBytes({ opcode: 12 }, 2n ** 60n, "a", "b")],
    ["with less data than it says", requestBytes({ opcode: 16 }, 1n, 0n, 5, 0, 0n, 0, 0, Buffer.from("1234"))],
    ["with more data than it says", requestBytes({ opcode: 16 }, 1n, 0n, 3, 0, 0n, 0, 0, Buffer.from("1234"))],
    ["with a value shorter than it says", requestBytes({ opcode: 21 }, 9, 0, 0, 0, "user.a", Buffer.from("v"))],
    ["with an extension longer than what is left", requestBytes({ opcode: 9, extensions: 1 }, 0, 0, "d", 99, 32)],
    ["with an extension of no length", requestBytes({ opcode: 9, extensions: 1 }, 0, 0, "d", 0, 99)],
    ["with more groups than bytes", requestBytes({ opcode: 9, extensions: 2 }, 0, 0, "d", 16, 32, 1000, 0)],
    ["with a label longer than its record", requestBytes({ opcode: 9, extensions: 3 }, 0, 0, "d", 24, 1, 99, 0, 0n)],
  ])("%s is answered EINVAL and logged", async (_, bytes) => {
    const kernel = start();
    kernel.sendRaw(bytes);
    expect(kernel.replies).toMatchObject([{ id: 2, error: -EINVAL }]);
    expect(kernel.replies[0]?.body).toHaveLength(0);
    expect(kernel.lines).toMatchObject([{ level: "warn", message: "malformed message" }]);
    expect((await kernel.call(3, 1, 0, 0, 0n)).error).toBe(0);
  });

  it.each<[string, Uint8Array]>([
    ["too short for a unique", requestBytes({ opcode: 3 }).subarray(0, 15)],
    ["empty", new Uint8Array(0)],
    ["with unique 0", requestBytes({ opcode: 3, id: 0n }, 0)],
    ["a FORGET without its count", requestBytes({ opcode: 2 })],
    ["a BATCH_FORGET of more than there are", requestBytes({ opcode: 42 }, 1000, 0, 5n, 1n)],
    ["a BATCH_FORGET of four billion", requestBytes({ opcode: 42 }, 0xffff_ffff, 0)],
    ["an INTERRUPT of nothing", requestBytes({ opcode: 36 })],
    ["a FORGET too short for its header", requestBytes({ opcode: 2 }).subarray(0, 30)],
  ])("%s is only logged", async (_, bytes) => {
    const kernel = start();
    kernel.sendRaw(bytes);
    await settled();
    expect(kernel.replies).toEqual([]);
    expect(kernel.lines).toMatchObject([{ level: "warn", message: "malformed message" }]);
  });

  it("does not keep those behind it from being served", async () => {
    const kernel = start();
    kernel.sendRaw(new Uint8Array(3), requestBytes({ opcode: 1 }), requestBytes({ opcode: 3, id: 8n }, 0, 0, 0n));
    expect((await kernel.replyTo(8)).error).toBe(0);
  });
});

describe("random bytes", () => {
  /** Sends them and checks what must hold of every reply. */
  async function send(messages: Uint8Array[]): Promise<void> {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), level: "debug" });
    kernel.sendRaw(...messages);
    kernel.clock.advance(60_000);
    await kernel.session.drained();
    expect(kernel.replies.length).toBeLessThanOrEqual(messages.length);
    for (const { error, body } of kernel.replies) {
      expect(error).toBeLessThanOrEqual(0);
      expect(error).toBeGreaterThan(-512);
      if (error !== 0) expect(body).toHaveLength(0);
    }
    expect(kernel.lines.filter(({ level }) => level === "error")).toEqual([]);
  }

  it("never throw and give at most one reply", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), (bytes) => send([bytes])),
      { seed: SEED, numRuns: 500 },
    );
  });

  const header = fc.record<Header>({
    opcode: fc.oneof(fc.constantFrom(...OPERATIONS.keys()), fc.integer({ min: 0, max: 60 })),
    id: fc.constantFrom(0n, 2n, 4n, 6n, 2n ** 63n + 4n, 2n ** 64n - 1n),
    nodeid: fc.constantFrom(0, 1, 2, 99),
    extensions: fc.constantFrom(0, 0, 0, 1, 2, 65535),
  });
  const part: fc.Arbitrary<Part> = fc.oneof(
    fc.constantFrom<Part>(0, 1, 8, 4096, 0xffff_ffff, 0n, 1n, 2n ** 53n, 2n ** 64n - 1n, "a", "name", "", "a/b"),
    fc.uint8Array({ maxLength: 40 }),
  );

  it("behind a true header never throw, and exactly those are answered that wait", async () => {
    const message = fc.tuple(header, fc.array(part, { maxLength: 12 }));
    await fc.assert(
      fc.asyncProperty(message, async ([head, body]) => {
        const bytes = requestBytes(head, ...body);
        const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), level: "error" });
        kernel.sendRaw(bytes);
        await kernel.session.drained();
        const waits = !NO_REPLY.has(head.opcode) && head.id !== 0n;
        expect(kernel.replies).toHaveLength(waits ? 1 : 0);
        expect(kernel.lines).toEqual([]);
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  it("in batches never give more replies than requests", async () => {
    const message = fc
      .tuple(header, fc.array(part, { maxLength: 8 }))
      .map(([head, body]) => requestBytes(head, ...body));
    await fc.assert(fc.asyncProperty(fc.array(message, { maxLength: 10 }), send), { seed: SEED, numRuns: 300 });
  });
});

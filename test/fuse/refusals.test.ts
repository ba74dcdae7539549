/** What is answered with an error before the file system is asked, or because its answer cannot be sent. */
import { describe, expect, it } from "vitest";
import { EMPTY, FOUND, READ, recorder } from "./call-recorder.ts";
import { bytesOf, type Part } from "./fake-kernel.ts";

describe("what we do not serve", () => {
  const COPY: Part[] = [1n, 0n, 2n, 3n, 0n, 10n, 0n];
  const LOCK: Part[] = [1n, 2n, 0n, 9n, 1, 77, 0, 0];
  it.each<[string, number, Part[], number]>([
    ["GETLK", 31, LOCK, 38],
    ["SETLK", 32, LOCK, 38],
    ["SETLKW", 33, LOCK, 38],
    ["BMAP", 37, [1n, 512, 0], 38],
    ["IOCTL", 39, [1n, 0, 0x5401, 0n, 0, 0], 25],
    ["POLL", 40, [1n, 2n, 0, 0], 38],
    ["COPY_FILE_RANGE", 47, COPY, 38],
    ["SETUPMAPPING", 48, [1n, 0n, 1n, 0n, 0n], 38],
    ["REMOVEMAPPING", 49, [1, bytesOf(0n, 1n)], 38],
    ["SYNCFS", 50, [0n], 38],
    ["TMPFILE", 51, [2, 0o100600, 0, 0, "/"], 38],
    ["COPY_FILE_RANGE_64", 53, COPY, 38],
  ])("%s", async (_, opcode, body, errno) => {
    const { calls, kernel } = recorder({});
    expect(await kernel.call(opcode, 1, ...body)).toMatchObject({ error: -errno, body: EMPTY });
    expect(calls).toEqual([]);
  });
});

describe("what a file system cannot mean is refused before it is asked", () => {
  const long = "n".repeat(256);
  const raw = (...bytes: number[]) => Buffer.from([...bytes, 0]);
  it.each<[string, number, Part[], number]>([
    ["a name over 255 bytes", 1, [long], 36],
    ["a name of 255 characters but more bytes", 1, [`${"n".repeat(254)}ä`], 36],
    ["a name over 255 bytes to make", 9, [0, 0, long], 36],
    ["the second of two names over 255 bytes", 12, [1n, "a", long], 36],
    ["a name that is not UTF-8", 1, [raw(0x61, 0xff)], 84],
    ["a name cut within a character", 10, [raw(0xc3)], 84],
    ["a surrogate in a name", 1, [raw(0xed, 0xa0, 0x80)], 84],
    ["a target that is not UTF-8", 6, ["n", raw(0xff)], 84],
    ["a target over 4095 bytes", 6, ["n", "t".repeat(4096)], 36],
    ["a name with a slash", 1, ["a/b"], 22],
    ["no name", 1, [""], 22],
    ["the name .", 1, ["."], 22],
    ["the name ..", 11, [".."], 22],
    ["RENAME2 WHITEOUT", 45, [1n, 4, 0, "a", "b"], 22],
    ["RENAME2 NOREPLACE and EXCHANGE", 45, [1n, 3, 0, "a", "b"], 22],
    ["MKNOD of a folder", 8, [0o040755, 0, 0, 0, "d"], 22],
    ["MKNOD of no known type", 8, [0o030644, 0, 0, 0, "d"], 22],
    ["LSEEK to neither data nor hole", 46, [1n, 0n, 2, 0], 22],
    ["LSEEK over 2^53", 46, [1n, 2n ** 60n, 3, 0], 6],
    ["WRITE over 2^53", 16, [1n, 2n ** 60n, 1, 0, 0n, 0, 0, Buffer.from("x")], 27],
    ["WRITE that ends over 2^53", 16, [1n, 2n ** 53n - 1n, 1, 0, 0n, 0, 0, Buffer.from("x")], 27],
    ["FALLOCATE over 2^53", 43, [1n, 2n ** 53n - 1n, 2n, 0, 0], 27],
    ["a size over 2^53", 4, [8, 0, 0n, 2n ** 60n, 0n, 0n, 0n, 0n, 0, 0, 0, 0, 0, 0, 0, 0], 27],
    ["a billion nanoseconds", 4, [0x20, 0, 0n, 0n, 0n, 0n, 0n, 0n, 0, 1_000_000_000, 0, 0, 0, 0, 0, 0], 22],
    ["unknown xattr flags", 21, [0, 4, 0, 0, "user.a"], 22],
    ["a cookie over 2^53", 28, READ(1n, 2n ** 60n, 4096), 22],
  ])("%s", async (_, opcode, body, errno) => {
    const { calls, kernel } = recorder({});
    expect((await kernel.call(opcode, 1, ...body)).error).toBe(-errno);
    expect(calls).toEqual([]);
  });

  it("but a name of 255 bytes passes, and one that begins with a byte order mark keeps it", async () => {
    const { calls, kernel } = recorder({ lookup: FOUND });
    await kernel.call(1, 1, "n".repeat(255));
    await kernel.call(1, 1, "\ufeffa");
    expect(calls.map(([, , name]) => name)).toEqual(["n".repeat(255), "\ufeffa"]);
  });
});

describe("answers that cannot be sent", () => {
  it.each<[string, number, Part[], Record<string, unknown>, number]>([
    ["a value longer than asked", 22, [4, 0, "user.a"], { getxattr: Buffer.from("value") }, 34],
    ["a list longer than asked", 23, [4, 0], { listxattr: ["user.a"] }, 34],
    ["nothing found by LSEEK", 46, [1n, 0n, 3, 0], { seek: undefined }, 6],
    ["a target over 4095 bytes", 5, [], { readlink: "t".repeat(4096) }, 36],
  ])("%s", async (_, opcode, body, answers, errno) => {
    expect((await recorder(answers).kernel.call(opcode, 1, ...body)).error).toBe(-errno);
  });
});

/** The system calls that Node lacks, on files of the temp folder. */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import {
  clone,
  copyFileRange,
  fallocate,
  getxattr,
  KEEP_SIZE,
  listxattr,
  lockFile,
  PUNCH_HOLE,
  readNow,
  removexattr,
  seek,
  setTimes,
  setxattr,
  spreadFolders,
} from "../../src/content/system-calls.ts";

const MIB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), "wsfs-calls-"));
afterAll(() => rmSync(folder, { recursive: true }));

const opened: number[] = [];
afterEach(() => {
  for (const fd of opened.splice(0)) closeSync(fd);
});

let count = 0;
function path(): string {
  return join(folder, `file-${count++}`);
}

function open(name = path(), flags = "w+"): number {
  const fd = openSync(name, flags);
  opened.push(fd);
  return fd;
}

/** 1 MiB of data at 4 MiB, holes before it and (to 12 MiB) after it. */
function fileWithHoles(): number {
  const fd = open();
  writeSync(fd, Buffer.alloc(MIB, "d"), 0, MIB, 4 * MIB);
  ftruncateSync(fd, 12 * MIB);
  return fd;
}

/** A file elsewhere: not on the disk of the temp folder, so that no copy is possible inside one. */
const otherDisk = statSync("/dev/shm", { throwIfNoEntry: false })?.dev;
const hasOtherDisk = otherDisk !== undefined && otherDisk !== statSync(folder).dev;
const hasXattrs = (() => {
  const name = path();
  writeFileSync(name, "");
  try {
    setxattr(name, "user.wsfs.test", Buffer.from("x"));
    return true;
  } catch {
    return false;
  }
})();

function content(fd: number): Buffer {
  return readFileSync(`/proc/self/fd/${fd}`);
}

describe("setTimes", () => {
  it.each([
    [1_700_000_000, 123_456_789],
    [0, 0],
    [-5, 999_999_999],
    [4_000_000_000, 1],
  ])("keeps %i s %i ns", (seconds, nanoseconds) => {
    const fd = open();
    setTimes(fd, { seconds: seconds + 1, nanoseconds }, { seconds, nanoseconds });
    const { atimeNs, mtimeNs } = fstatSync(fd, { bigint: true });
    expect(mtimeNs).toBe(BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds));
    expect(atimeNs).toBe(BigInt(seconds + 1) * 1_000_000_000n + BigInt(nanoseconds));
  });

  it("leaves the time that is null", () => {
    const name = path();
    const fd = open(name);
    utimesSync(name, 1000, 2000);
    setTimes(fd, null, { seconds: 3000, nanoseconds: 7 });
    expect(fstatSync(fd, { bigint: true })).toMatchObject({
      atimeNs: 1000n * 10n ** 9n,
      mtimeNs: 3000n * 10n ** 9n + 7n,
    });
    setTimes(fd, { seconds: 4000, nanoseconds: 9 }, null);
    expect(fstatSync(fd, { bigint: true })).toMatchObject({
      atimeNs: 4000n * 10n ** 9n + 9n,
      mtimeNs: 3000n * 10n ** 9n + 7n,
    });
  });

  it("refuses nanoseconds that are none", () => {
    expect(() => setTimes(open(), null, { seconds: 1, nanoseconds: 1_000_000_000 })).toThrow(
      expect.objectContaining({ code: "EINVAL", syscall: "futimens" }),
    );
    expect(() => setTimes(open(), null, { seconds: 1, nanoseconds: 0x3fffffff })).toThrow(
      expect.objectContaining({ code: "EINVAL" }),
    );
  });
});

describe("readNow", () => {
  it("reads what is in memory, up to the end, and nothing beyond it", () => {
    const fd = open();
    writeSync(fd, "0123456789");
    const buffer = Buffer.alloc(8, "-");
    expect([readNow(fd, buffer, 4), buffer.toString()]).toEqual([6, "456789--"]);
    expect([readNow(fd, buffer.subarray(0, 2), 0), buffer.toString()]).toEqual([2, "016789--"]);
    expect(readNow(fd, buffer, 10)).toBe(0);
  });

  it("throws a system error for a descriptor that is not open", () => {
    expect(() => readNow(9999, Buffer.alloc(1), 0)).toThrow(
      expect.objectContaining({ code: "EBADF", errno: -9, syscall: "preadv2" }),
    );
  });
});

describe("seek", () => {
  it("finds data and holes, and undefined beyond them", () => {
    const fd = fileWithHoles();
    expect(seek(fd, "data", 0)).toBe(4 * MIB);
    expect(seek(fd, "hole", 4 * MIB)).toBe(5 * MIB);
    expect(seek(fd, "data", 5 * MIB)).toBeUndefined();
    expect(seek(fd, "hole", 12 * MIB)).toBeUndefined();
  });

  it("throws a system error for a descriptor that is not open", () => {
    expect(() => seek(9999, "data", 0)).toThrow(
      expect.objectContaining({
        code: "EBADF",
        errno: -9,
        syscall: "lseek",
        message: expect.stringContaining("EBADF"),
      }),
    );
  });
});

describe("fallocate", () => {
  it("reserves room beyond the end without changing the size", async () => {
    const fd = open();
    await fallocate(fd, KEEP_SIZE, 0, 2 * MIB);
    expect(fstatSync(fd).size).toBe(0);
    expect(fstatSync(fd).blocks * 512).toBeGreaterThanOrEqual(2 * MIB);
  });

  it("punches a hole", async () => {
    const fd = open();
    writeSync(fd, Buffer.alloc(4 * MIB, "x"));
    await fallocate(fd, KEEP_SIZE | PUNCH_HOLE, MIB, MIB);
    expect(seek(fd, "hole", 0)).toBe(MIB);
    expect(seek(fd, "data", MIB)).toBe(2 * MIB);
    expect(fstatSync(fd).size).toBe(4 * MIB);
  });

  it("works beyond 4 GiB", async () => {
    const fd = open();
    await fallocate(fd, 0, 5 * 1024 * MIB, 4096);
    expect(fstatSync(fd).size).toBe(5 * 1024 * MIB + 4096);
  });

  it("rejects with a system error", async () => {
    await expect(fallocate(open(), 0, 0, 0)).rejects.toMatchObject({
      code: "EINVAL",
      errno: -22,
      syscall: "fallocate",
    });
    await expect(fallocate(9999, 0, 0, 1)).rejects.toMatchObject({ code: "EBADF" });
  });
});

describe("clone", () => {
  it("copies content and holes, and replaces what was there", async () => {
    const from = fileWithHoles();
    const to = open();
    writeSync(to, Buffer.alloc(20 * MIB, "o"));
    await clone(from, to);
    expect(fstatSync(to).size).toBe(12 * MIB);
    expect(content(to).equals(content(from))).toBe(true);
    expect(seek(to, "data", 0)).toBe(4 * MIB);
    expect(seek(to, "hole", 4 * MIB)).toBe(5 * MIB);
    expect(fstatSync(to).blocks * 512).toBeLessThan(2 * MIB);
  });

  it("makes an independent copy", async () => {
    const from = open();
    writeSync(from, "before");
    const to = open();
    await clone(from, to);
    writeSync(from, "after!", 0);
    expect(content(to).toString()).toBe("before");
  });

  it("copies an empty file, and one that is all hole", async () => {
    const to = open();
    writeSync(to, "old");
    await clone(open(), to);
    expect(fstatSync(to).size).toBe(0);
    const hole = open();
    ftruncateSync(hole, 3 * MIB);
    await clone(hole, to);
    expect(fstatSync(to)).toMatchObject({ size: 3 * MIB, blocks: 0 });
  });

  it.skipIf(!hasOtherDisk)("copies by hand to another disk (/dev/shm), holes included", async () => {
    const elsewhere = mkdtempSync("/dev/shm/wsfs-calls-");
    try {
      const from = fileWithHoles();
      const to = open(join(elsewhere, "copy"));
      await clone(from, to);
      expect(content(to).equals(content(from))).toBe(true);
      expect(seek(to, "data", 0)).toBe(4 * MIB);
      expect(fstatSync(to).blocks * 512).toBeLessThan(2 * MIB);
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  it("refuses to clone a file onto itself, which would empty it", async () => {
    const name = path();
    writeFileSync(name, "precious");
    await expect(clone(open(name, "r+"), open(name, "r+"))).rejects.toMatchObject({ code: "EINVAL", syscall: "clone" });
    expect(readFileSync(name, "utf8")).toBe("precious");
  });

  it("rejects when the target cannot be written", async () => {
    const name = path();
    writeFileSync(name, "read only");
    await expect(clone(fileWithHoles(), open(name, "r"))).rejects.toMatchObject({ code: "EINVAL" });
    expect(readFileSync(name, "utf8")).toBe("read only");
  });
});

describe("copyFileRange", () => {
  it("copies the range and answers how much there was", async () => {
    const from = open();
    writeSync(from, "0123456789");
    const to = open();
    writeSync(to, "abcdefghij");
    expect(await copyFileRange(from, 2, to, 5, 3)).toBe(3);
    expect(content(to).toString()).toBe("abcde234ij");
    expect(await copyFileRange(from, 8, to, 0, 100)).toBe(2);
    expect(content(to).toString()).toBe("89cde234ij");
    expect(await copyFileRange(from, 10, to, 0, 100)).toBe(0);
  });

  it("copies more than one system call takes", async () => {
    const from = open();
    const bytes = Buffer.from(Array.from({ length: 3 * MIB + 17 }, (_, i) => i % 253));
    writeSync(from, bytes);
    const to = open();
    expect(await copyFileRange(from, 0, to, 0, 10 * MIB)).toBe(bytes.length);
    expect(content(to).equals(bytes)).toBe(true);
  });

  it("copies from a file whose size the kernel does not tell", async () => {
    const to = open();
    expect(await copyFileRange(open("/proc/version", "r"), 0, to, 0, MIB)).toBeGreaterThan(10);
    expect(content(to).toString()).toBe(readFileSync("/proc/version", "utf8"));
  });
});

describe.skipIf(!hasXattrs)("extended attributes (on a disk that has them)", () => {
  it("keep any bytes, and list their names", () => {
    const name = path();
    writeFileSync(name, "");
    expect(listxattr(name)).toEqual([]);
    const value = Buffer.from([0, 255, 1, 0]);
    setxattr(name, "user.first", value);
    setxattr(name, "user.empty", Buffer.alloc(0));
    expect(getxattr(name, "user.first")).toEqual(value);
    expect(getxattr(name, "user.empty")).toHaveLength(0);
    expect(listxattr(name).sort()).toEqual(["user.empty", "user.first"]);
    removexattr(name, "user.first");
    expect(listxattr(name)).toEqual(["user.empty"]);
    expect(() => getxattr(name, "user.first")).toThrow(expect.objectContaining({ code: "ENODATA" }));
  });

  it("are made or replaced only, when asked so", () => {
    const name = path();
    writeFileSync(name, "");
    expect(() => setxattr(name, "user.a", Buffer.from("1"), "replace")).toThrow(
      expect.objectContaining({ code: "ENODATA" }),
    );
    setxattr(name, "user.a", Buffer.from("1"), "create");
    expect(() => setxattr(name, "user.a", Buffer.from("2"), "create")).toThrow(
      expect.objectContaining({ code: "EEXIST" }),
    );
    setxattr(name, "user.a", Buffer.from("3"), "replace");
    expect(getxattr(name, "user.a").toString()).toBe("3");
  });

  it("are those of a symbolic link, not of its target", () => {
    const name = path();
    const link = path();
    writeFileSync(name, "");
    setxattr(name, "user.a", Buffer.from("1"));
    symlinkSync(name, link);
    expect(() => getxattr(link, "user.a")).toThrow();
    expect(listxattr(link)).toEqual([]);
  });

  it("refuse a path with a null character instead of using another file", () => {
    expect(() => getxattr(`${path()}\0x`, "user.a")).toThrow(TypeError);
  });
});

describe("lockFile", () => {
  it("refuses a second holder in this process and in another one, until the first closes", () => {
    const name = path();
    const first = openSync(name, "w+");
    expect(lockFile(first)).toBe(true);
    expect(lockFile(first)).toBe(true);
    const second = open(name, "r+");
    expect(lockFile(second)).toBe(false);
    const other = () => spawnSync("flock", ["--nonblock", name, "true"]).status;
    expect(other()).toBe(1);
    closeSync(first);
    expect(other()).toBe(0);
    expect(lockFile(second)).toBe(true);
  });
});

describe("spreadFolders", () => {
  const EXT4 = 0xef53;

  it.skipIf(statfsSync(folder).type !== EXT4)(
    "has ext4 keep folders made in one apart (the temp folder on ext4)",
    () => {
      const parent = path();
      mkdirSync(parent);
      const flags = () => spawnSync("lsattr", ["-d", parent], { encoding: "utf8" }).stdout.split(" ")[0];
      expect(flags()).not.toContain("T");
      spreadFolders(open(parent, "r"));
      expect(flags()).toContain("T");
      spreadFolders(open(parent, "r"));
      expect(flags()).toContain("T");
    },
  );

  it("throws a system error where it cannot", () => {
    expect(() => spreadFolders(open("/proc", "r"))).toThrow(expect.objectContaining({ syscall: "ioctl" }));
    expect(() => spreadFolders(9999)).toThrow(expect.objectContaining({ code: "EBADF", syscall: "ioctl" }));
  });
});

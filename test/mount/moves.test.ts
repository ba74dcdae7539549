/**
 * Where the daemon serves all bytes, most READs and WRITEs are answered without its JavaScript
 * (src/engine/files/fast-path.ts). What programs see is the same as ever, whatever comes in between.
 */
import { readFileSync, statfsSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { run, until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { daemonOf } from "./support/replaced.ts";

const EXT4 = 0xef53;
const [major = 0, minor = 0] = release().split(".").map(Number);
/** Linux 6.5 or later, and a file system that reads nothing from the disk when told to. */
const KNOWS_WHAT_IS_IN_MEMORY = statfsSync(tmpdir()).type === EXT4 && (major > 6 || (major === 6 && minor >= 5));

let place: Place;
let gateway: TestGateway;
beforeEach(async () => {
  place = createPlace();
  gateway = await place.gateway();
});
afterEach(() => place.cleanUp());

const mounted = (name = "mount") => place.mount(gateway, { name, args: ["--no-passthrough"] });
const drained = async (mount: TestMount) =>
  void check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));

async function operations(mount: TestMount): Promise<Record<string, number>> {
  return (await mount.status()).operations as Record<string, number>;
}

async function hashAtGateway({ baseUrl, token }: TestGateway, name: string): Promise<string> {
  const answer = await fetch(`${baseUrl}/v1/files/${name}`, { headers: { Authorization: `Bearer ${token}` } });
  return ((await answer.json()) as { contentHash: string }).contentHash;
}

/** Writes numbered lines, over and over, until it is told to end, and keeps a copy beside the mount; says when it is well under way. */
const WRITER = `
import os, sys, time
fd = os.open("f", os.O_RDWR | os.O_CREAT)
with open("../copy", "wb") as copy:
    for i in range(10_000_000):
        line = b"%07d\\n" % i * 512
        at = i % 300 * 4096
        assert os.pwrite(fd, line, at) == 4096
        os.pwrite(copy.fileno(), line, at)
        if i % 7 == 0: assert os.pread(fd, 4096, at) == line
        if i == 300: print("going", flush=True)
        if i % 50 == 0:
            if os.path.exists("../end"): break
        if i % 400 == 399: time.sleep(0.2)
os.close(fd)
`;

interface Writer {
  end(): Promise<void>;
}

async function startWriter(mount: TestMount): Promise<Writer> {
  const ended = mount.sh(`exec python3 -c '${WRITER}' > ../said`, { timeoutMs: 120_000 });
  await until("the writer is under way", async () => (await place.sh("grep -q going said")).code === 0);
  return {
    async end() {
      check(await place.sh("touch end"));
      check(await ended);
      const sums = check(await place.sh("sha256sum < copy; sha256sum < mount/f")).stdout.split("\n");
      expect(sums[1]).toBe(sums[0]);
      await drained(mount);
      expect(`${await hashAtGateway(gateway, "f")}  -`).toBe(sums[0]);
    },
  };
}

it("every READ and WRITE is counted, whoever answers it", async () => {
  const mount = await mounted();
  const before = await operations(mount);
  check(await mount.sh("dd if=/dev/zero of=f bs=4k count=2000 status=none"));
  const { WRITE = 0 } = await operations(mount);
  expect(WRITE - (before.WRITE ?? 0)).toBe(2000);
  // Directly: what the kernel has cached is asked for again.
  check(await mount.sh("dd if=f iflag=direct of=/dev/null bs=4k status=none"));
  const { READ = 0 } = await operations(mount);
  expect(READ - (before.READ ?? 0)).toBeGreaterThanOrEqual(2000);
});

it("a file that is written all the time has a whole snapshot taken again and again, and arrives", {
  timeout: 120_000,
}, async () => {
  const mount = await mounted();
  const writer = await startWriter(mount);
  // A snapshot is taken in one of the writer's pauses, or not in time.
  for (let i = 0; i < 2; i += 1) await place.wsfs(["drain", mount.dir, "--timeout", "3"], { timeoutMs: 60_000 });
  check(await mount.sh("sync f; touch -d @1 f; cat f > /dev/null"));
  await writer.end();
});

it("a program that writes sees no reload, and no death of its daemon", { timeout: 120_000 }, async () => {
  const mount = await mounted();
  const writer = await startWriter(mount);
  check(await place.wsfs(["reload", mount.dir], { timeoutMs: 60_000 }));
  const second = daemonOf(place, mount);
  expect(second).not.toBe(mount.pid);
  process.kill(second, "SIGKILL");
  await until("a third daemon serves", () => ![mount.pid, second].includes(daemonOf(place, mount)));
  await writer.end();
});

it("what somebody else writes meanwhile shows in no handle that was open before", { timeout: 60_000 }, async () => {
  const far = await mounted("far");
  check(await far.sh("head -c 300000 /dev/zero | tr '\\0' a > f"));
  await drained(far);
  const mount = await mounted();
  const script = `
import os, time
fd = os.open("f", os.O_RDONLY | os.O_DIRECT)
import mmap
page = mmap.mmap(-1, 4096)
def look(fd, at):
    os.preadv(fd, [page], at)
    return page[:1]
for at in range(0, 40960, 4096): assert look(fd, at) == b"a"
print("open", flush=True)
for i in range(3000):
    new = os.open("f", os.O_RDONLY | os.O_DIRECT)
    now = look(new, 0)
    os.close(new)
    for at in range(0, 40960, 4096): assert look(fd, at) == b"a"
    if now == b"b": break
    time.sleep(0.01)
assert now == b"b"
print("replaced", flush=True)
`;
  const reading = mount.sh(`exec python3 -c '${script}' > ../said`, { timeoutMs: 50_000 });
  await until("it is open", async () => (await place.sh("grep -q open said")).code === 0);
  check(await far.sh("head -c 300000 /dev/zero | tr '\\0' b > f"));
  await drained(far);
  check(await reading);
});

it.skipIf(process.getuid?.() !== 0)("a full disk is what the program hears", { timeout: 60_000 }, async () => {
  const disk = place.path("mount.state");
  check(await run("mkdir", [disk]));
  check(await run("mount", ["-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs", disk]));
  try {
    const mount = await mounted();
    const { stderr } = await mount.sh("dd if=/dev/zero of=f bs=4k count=20000", { timeoutMs: 50_000 });
    expect(stderr).toContain("No space left on device");
    const size = Number(check(await mount.sh("stat -c %s f")).stdout);
    expect(size).toBeGreaterThan(1024 ** 2);
    expect(check(await mount.sh("tr -d '\\0' < f | wc -c")).stdout.trim()).toBe("0");
    check(await mount.sh("rm f"));
    await mount.umount();
  } finally {
    await run("umount", ["-l", disk]);
  }
});

/** Reads `g`, whose every 8 bytes say where they are, in pieces of up to a MiB, and looks at each. */
const LONG_READS = `
import mmap, os, random, struct, sys
SIZE = 8 * 1024 * 1024 + 7000
fd = os.open("g", os.O_RDONLY | os.O_DIRECT)
other = os.open("f", os.O_RDONLY | os.O_DIRECT) if os.path.exists("f") else None
place = mmap.mmap(-1, 1024 * 1024)
random.seed(7)
for i in range(int(sys.argv[1])):
    length = 4096 * random.randint(1, 256)
    at = 4096 * random.randint(0, SIZE // 4096)
    got = os.preadv(fd, [memoryview(place)[:length]], at)
    assert got == min(length, SIZE - at), (at, length, got)
    for near in (0, got // 2 & ~7, got - 8 & ~7): assert struct.unpack_from("<Q", place, near)[0] == at + near, (at, near)
    if other is not None:
        got = os.preadv(other, [memoryview(place)[:length]], at % (1024 * 1024))
        assert place[:got].count(b"a") + place[:got].count(bytes(1)) == got, "neither"
`;
const MAKE = `python3 -c '
import struct
open("g", "wb").write(b"".join(struct.pack("<Q", at) for at in range(0, 8 * 1024 * 1024 + 7000, 8)))'`;

/** What read(2) and its like have brought the daemon, in bytes. */
const readBy = (pid: number) => Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);

it("what is read in long pieces is right, and does not pass through the daemon's memory", async () => {
  const mount = await mounted();
  check(await mount.sh(MAKE));
  const before = readBy(mount.pid);
  const { READ: asked = 0 } = await operations(mount);
  check(await mount.sh(`exec python3 -c '${LONG_READS}' 300`, { timeoutMs: 60_000 }));
  const { READ = 0 } = await operations(mount);
  expect(READ - asked).toBeGreaterThanOrEqual(300);
  // Some 150 MiB were read. A disk that cannot tell what is in memory has them copied.
  if (KNOWS_WHAT_IS_IN_MEMORY) expect(readBy(mount.pid) - before).toBeLessThan(30 * 1024 ** 2);
});

it("a file that is cut short while it is read spoils nobody's answer", { timeout: 60_000 }, async () => {
  const mount = await mounted();
  check(await mount.sh(`${MAKE}; head -c 1048576 /dev/zero | tr '\\0' a > f`));
  const cutter = `
import os
while not os.path.exists("../end"):
    for size in range(100000, 1000000, 30011): os.truncate("f", size)
    with open("f", "r+b") as f: f.write(b"a" * 1048576)
`;
  const cutting = mount.sh(`exec python3 -c '${cutter}'`, { timeoutMs: 50_000 });
  check(await mount.sh(`exec python3 -c '${LONG_READS}' 1000`, { timeoutMs: 40_000 }));
  check(await place.sh("touch end"));
  check(await cutting);
});

/**
 * Local files are read, written and mapped by the kernel without a request, and what was written
 * arrives all the same. Needs a kernel with passthrough (6.9) and the right to use it.
 */
import { writeFileSync } from "node:fs";
import { release } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { hashOf } from "../engine/support/bytes-world.ts";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** One file by every way to write, and read back; the last line is what it should hold. */
const PROGRAM = `
import hashlib, mmap, os
fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
for i in range(64): os.pwrite(fd, bytes([i]) * 4096, i * 4096)
os.fsync(fd)
with mmap.mmap(fd, 64 * 4096) as m:
    m[10:14] = b"maps"
    m.flush()
    m[20:24] = b"late"
    os.close(fd)
    # Closed, and mapped still.
    m[30:34] = b"past"
with open("f", "ab") as f: f.write(b"appended")
os.truncate("f", 100000)
with open("f", "r+b") as f:
    f.seek(5000); f.write(b"over")
content = open("f", "rb").read()
assert content[10:14] + content[20:24] + content[30:34] + content[5000:5004] == b"mapslatepastover", content[:40]
assert len(content) == os.stat("f").st_size == 100000
print(hashlib.sha256(content).hexdigest())
`;

interface Moved {
  readonly READ: number;
  readonly WRITE: number;
}

/** How many came, and how many of them the device answered without JavaScript. */
async function requests(mount: TestMount): Promise<{ all: Moved; moved: Moved }> {
  const { operations, moved } = await mount.status();
  const { READ = 0, WRITE = 0 } = operations as Record<string, number>;
  return { all: { READ, WRITE }, moved: moved as Moved };
}

function hasPassthrough(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return major > 6 || (major === 6 && minor >= 9);
}

async function nodeOf({ baseUrl, token }: TestGateway): Promise<{ contentHash: string; size: number }> {
  const answer = await fetch(`${baseUrl}/v1/files/f`, { headers: { Authorization: `Bearer ${token}` } });
  return (await answer.json()) as { contentHash: string; size: number };
}

it("every way to write arrives, with no READ and no WRITE", async (context) => {
  if (!hasPassthrough()) return context.skip("passthrough needs Linux 6.9");
  const gateway = await place.gateway();
  for (const args of [[], ["--no-passthrough"]]) {
    const mount = await place.mount(gateway, { args });
    const isPassing = args.length === 0;
    expect((await mount.status()).passthrough).toBe(isPassing);
    const { stdout } = check(await mount.sh(`rm -f f; python3 -c '${PROGRAM}'`));
    const { all, moved } = await requests(mount);
    expect([all.READ === 0, all.WRITE === 0]).toEqual([isPassing, isPassing]);
    expect(moved.READ <= all.READ && moved.WRITE <= all.WRITE).toBe(true);
    check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
    expect(await nodeOf(gateway)).toMatchObject({ contentHash: stdout.trim(), size: 100_000 });
    await mount.umount();
  }
});

it("where the kernel does not read and write by itself, bytes pass JavaScript by", async () => {
  const mount = await place.mount(await place.gateway(), { args: ["--no-passthrough"] });
  // Where the disk was slow nothing is moved for a while.
  await until("READs and WRITEs are moved", async () => {
    const { stdout } = check(await mount.sh("seq 20000 > f; dd if=f of=g bs=1000 status=none; md5sum < g"));
    expect(stdout).toMatch(/^[0-9a-f]{32}/);
    const { moved } = await requests(mount);
    return moved.READ > 0 && moved.WRITE > 0;
  });
});

/** Mapped by a descriptor that is closed, and written to after that: by mmap(2) itself, for Python's keeps a copy. */
const MAPPED = `
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open("f", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 8192)
at = libc.mmap(None, 8192, 3, 1, fd, 0)
ctypes.memmove(at, b"first", 5)
os.close(fd)
os.chdir("/")
print("closed", flush=True)
for i in range(40):
    time.sleep(0.1)
    ctypes.memmove(at + 4096, b"%05d" % i, 5)
`;

it("what is written through a mapping arrives, however long after close", async () => {
  const gateway = await place.gateway();
  const mount = await place.mount(gateway);
  check(await mount.sh(`python3 -c '${MAPPED}'`, { timeoutMs: 60_000 }));
  const { stdout } = check(await mount.sh("sha256sum f; head -c 4101 f | tail -c 5"));
  expect(stdout).toMatch(/00039$/);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  expect((await nodeOf(gateway)).contentHash).toBe(stdout.slice(0, 64));
  // Again, of a file that is clean. A mapping keeps the mount busy.
  const mapping = mount.sh(`exec python3 -c '${MAPPED}' > ../mapped`, { timeoutMs: 60_000 });
  await until("it is closed", async () => (await place.sh("grep -q closed mapped")).code === 0);
  const { code, stderr } = await place.wsfs(["umount", mount.dir]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/is busy: used by python3 .*mapped file/)]);
  check(await mapping);
  const { stdout: now } = check(await mount.sh("sha256sum f"));
  await mount.umount("--drain=60");
  expect((await nodeOf(gateway)).contentHash).toBe(now.slice(0, 64));
});

it("a file changes between served by the daemon and passthrough without an old page", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway, { name: "first" });
  check(await first.sh("printf 'first version' > f"));
  await first.umount("--drain=60");
  const mount = await place.mount(gateway, { name: "other" });
  // Not here yet: served, and cached by the kernel. Then passthrough, then served again for the bits of its mode.
  const script =
    "show() { cat f; echo; }; show; printf SECOND 1<>f; show; chmod u+s f; show; printf 'third!' 1<>f; show";
  const { stdout } = check(await mount.sh(script));
  expect(stdout.trim().split("\n")).toEqual(["first version", "SECONDversion", "SECONDversion", "third!version"]);
  const { READ } = (await requests(mount)).all;
  expect(READ).toBeGreaterThan(0);
  await mount.umount();
});

it("what was written and not closed survives the daemon; what is written to a mount that is gone stays there", async () => {
  const gateway = await place.gateway();
  const mount = await place.mount(gateway, { args: ["--no-restart"] });
  check(await mount.sh("printf 'saved' > f"));
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  const flag = place.path("flag");
  const writer = `
import os, signal, time
fd = os.open("f", os.O_WRONLY)
os.pwrite(fd, b"W", 0)
os.kill(${mount.pid}, signal.SIGKILL)
while not os.path.exists("${flag}"): time.sleep(0.05)
os.pwrite(fd, b"LATE", 1)
`;
  const written = mount.sh(`python3 -c '${writer}'`, { timeoutMs: 60_000 });
  await until("the mount is gone", async () => (await place.wsfs(["status", mount.dir])).code !== 0);
  const again = await place.mount(gateway);
  expect(check(await again.sh("cat f")).stdout).toBe("Waved");
  writeFileSync(flag, "");
  await written;
  expect(check(await again.sh("cat f")).stdout).toBe("Waved");
  await again.umount("--drain=60");
  expect((await nodeOf(gateway)).contentHash).toBe(hashOf(Buffer.from("Waved")));
});

/**
 * A state disk that is full, or gone, under a real mount: a small tmpfs. What programs hear is what
 * local disks say, and nothing that was acknowledged is lost.
 */
import { mkdtempSync, renameSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run, until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

const isRoot = process.getuid?.() === 0;

let place: Place;
let mounted: string[] = [];
beforeEach(() => {
  place = createPlace();
});
afterEach(async () => {
  try {
    await place.cleanUp();
  } finally {
    for (const folder of mounted) {
      await run("umount", ["-l", folder], { timeoutMs: 20_000 });
      rmdirSync(folder);
    }
    mounted = [];
  }
});

/** A state dir on a disk of its own. */
async function mountOnSmallDisk(size: string, args: readonly string[] = []): Promise<[TestGateway, TestMount]> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-disk-"));
  symlinkSync(folder, place.path("mount.state"));
  check(await run("mount", ["-t", "tmpfs", "-o", `size=${size},mode=700`, "tmpfs", folder], { timeoutMs: 20_000 }));
  mounted.push(folder);
  const gateway = await place.gateway();
  return [gateway, await place.mount(gateway, { args })];
}

interface Status {
  readonly dirty: number;
  readonly parked: number;
  readonly cacheBytes: number;
  readonly bytesPending: number;
  readonly disk: { state: string; reason?: string; reserve: number; available: number; total: number };
}

const statusOf = async (mount: TestMount) => (await mount.status()) as unknown as Status;

async function untilStatus(mount: TestMount, what: string, isSo: (status: Status) => boolean): Promise<Status> {
  let last = await statusOf(mount);
  await until(
    what,
    async () => {
      last = await statusOf(mount);
      return isSo(last);
    },
    120_000,
  );
  return last;
}

/** Writes until the disk is full, with what each call said; then looks at what is left. */
const FILL = `
import errno, hashlib, os, sys
size, said = 0, []
fd = os.open("big", os.O_CREAT | os.O_WRONLY, 0o644)
sha = hashlib.sha256()
block = os.urandom(1 << 20)
try:
    while size < 1 << 30:
        done = os.write(fd, block)
        sha.update(block[:done]); size += done
except OSError as error: said.append(errno.errorcode[error.errno])
for what in (os.fsync, os.close):
    try: what(fd)
    except OSError as error: said.append(what.__name__ + " " + errno.errorcode[error.errno])
with open("big", "rb") as f: data = f.read()
same = len(data) == size and hashlib.sha256(data).digest() == sha.digest()
print(" ".join(said), same, size > 8 << 20)
`;

describe.skipIf(!isRoot)("on a small disk of its own (needs root, for a tmpfs)", () => {
  it("says ENOSPC at write and nowhere else, takes renames and removals, and goes on when there is room", async () => {
    const [gateway, mount] = await mountOnSmallDisk("32M");
    // Cached files make way first.
    check(await mount.sh("head -c 6000000 /dev/urandom > cached; sha256sum < cached > ../sum"));
    await untilStatus(mount, "the file is uploaded", ({ dirty }) => dirty === 0);
    await gateway.stop();
    // Nothing can be uploaded now: what is written stays here.
    const filled = check(await mount.sh(`python3 -c '${FILL}'`, { timeoutMs: 120_000 }));
    expect(filled.stdout).toBe("ENOSPC True True\n");
    const full = await statusOf(mount);
    expect(full.cacheBytes - full.bytesPending).toBeLessThan(3_000_000);

    // Nothing new, but everything else.
    check(await mount.sh("mv big large; chmod 600 large; test $(stat -c %a large) = 600; ls > /dev/null; rm large"));
    check(await mount.sh('echo more > more; test "$(cat more)" = more'));
    const after = await untilStatus(mount, "the disk is well again", ({ disk }) => disk.state === "ok");
    expect(after.disk.reserve).toBeGreaterThan(0);
    await mount.umount();
  });

  it("uploads what it has while it is full, and reads files past the disk", async () => {
    const [gateway, mount] = await mountOnSmallDisk("24M", ["--keep-free", "20M"]);
    const other = await place.mount(gateway, { name: "other" });
    check(await other.sh("head -c 30000000 /dev/urandom > far; sha256sum < far > ../sum"));
    await untilStatus(other, "the file is uploaded", ({ dirty }) => dirty === 0);
    await until("the file is seen", async () => (await mount.sh("test -s far")).code === 0);
    // More than the disk has.
    check(await mount.sh('test "$(sha256sum < far)" = "$(cat ../sum)"', { timeoutMs: 120_000 }));
    const filled = await mount.sh("head -c 20000000 /dev/urandom > new; cat new | sha256sum", { timeoutMs: 120_000 });
    check(filled);
    check(await place.wsfs(["drain", mount.dir, "--timeout", "120"], { timeoutMs: 150_000 }));
    const there = check(
      await other.sh("for i in $(seq 600); do test -s new && break; sleep 0.1; done; sha256sum < new"),
    );
    expect(there.stdout).toBe(filled.stdout);
    await mount.umount();
    await other.umount();
  });

  it("takes no more unsent bytes than it may, until some are sent", async () => {
    const [gateway, mount] = await mountOnSmallDisk("64M", ["--unsent-limit", "4M"]);
    check(await mount.sh("ls"));
    await gateway.stop();
    const written = await mount.sh("head -c 6000000 /dev/zero > much");
    expect([written.code, written.stderr]).toEqual([1, expect.stringContaining("No space left on device")]);
    check(await mount.sh("rm much; echo little > little"));
    await mount.umount();
  });
});

describe("a state dir that goes away", () => {
  const served = ["--no-passthrough"];
  const ways = [
    { how: "removed", args: served, write: "EIO", sent: "kept by the descriptor" },
    { how: "renamed", args: served, write: "EIO", sent: "kept by the descriptor" },
    // The kernel writes where we hear nothing of it.
    { how: "removed", args: [], write: "ok", sent: "kept by the descriptormore" },
  ] as const;
  for (const { how, args, write, sent } of ways) {
    it(`is noticed when it is ${how} (write: ${write}): no close pretends, what is open is uploaded`, async () => {
      const gateway = await place.gateway();
      const mount = await place.mount(gateway, { args });
      check(await mount.sh("echo before > before"));
      await untilStatus(mount, "the file is uploaded", ({ dirty }) => dirty === 0);
      // Open and written before, closed after.
      const script = `
import errno, os, sys
fd = os.open("open", os.O_CREAT | os.O_RDWR, 0o644)
os.write(fd, b"kept by the descriptor")
print("written", flush=True)
sys.stdin.readline()
said = [os.pread(fd, 100, 0).decode()]
for what in (lambda: os.write(fd, b"more"), lambda: os.close(fd), lambda: os.open("new", os.O_CREAT | os.O_WRONLY)):
    try: what(); said.append("ok")
    except OSError as error: said.append(errno.errorcode[error.errno])
print(" ".join(said))
`;
      const go = place.path("go");
      check(await place.sh(`mkfifo '${go}'`));
      const program = mount.sh(`python3 -c '${script}' < '${go}' > ../said`, { timeoutMs: 120_000 });
      // Opening the fifo waits for its reader.
      const release = place.sh(
        `exec 3> '${go}'; until grep -q written said; do sleep 0.1; done; until test -e gone; do sleep 0.1; done; echo >&3`,
        { timeoutMs: 120_000 },
      );
      await until("the program has written", async () => (await place.sh("grep -q written said")).code === 0);
      if (how === "removed") rmSync(mount.stateDir, { recursive: true });
      else renameSync(mount.stateDir, place.path("elsewhere"));
      const { disk } = await untilStatus(mount, "it is noticed", (status) => status.disk.state === "gone");
      expect(disk.reason).toContain(`the state dir ${mount.stateDir} was removed or moved away`);
      check(await place.sh("touch gone"));
      check(await release);
      check(await program);
      expect((await place.sh("tail -1 said")).stdout).toBe(`kept by the descriptor ${write} EIO EIO\n`);
      expect(check(await mount.sh("cat before")).stdout).toBe("before\n");

      const other = await place.mount(gateway, { name: "other" });
      await until(
        "the bytes are uploaded",
        async () => (await other.sh(`test "$(cat open)" = '${sent}'`)).code === 0,
        120_000,
      );
      await other.umount();
      const { stdout } = check(await place.wsfs(["umount", mount.dir]));
      expect(stdout).toContain("unmounted; not uploaded, in a state dir that was removed or moved away: ");
    });
  }
});

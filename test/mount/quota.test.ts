/** A workspace with a quota, as programs and df see it on a real mount. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const SAYS = `
import errno, os
def says(work):
    try: work(); return "ok"
    except OSError as error: return errno.errorcode[error.errno]
fd = os.open("kept", os.O_WRONLY)
print(says(lambda: os.pwrite(fd, b"x" * 4097, 1 << 20)),
      says(lambda: os.truncate("kept", (1 << 20) + 1048577)),
      says(lambda: os.pwrite(fd, b"y" * 4096, 0)),
      says(lambda: os.rename("kept", "moved")),
      says(lambda: os.truncate("moved", 10)),
      says(lambda: os.unlink("moved")))
`;

it("df shows the quota, what is too much is EDQUOT, and removing makes room at once", async () => {
  const gateway = await place.gateway({ args: ["--quota", "2M"] });
  const mount = await place.mount(gateway);
  const df = async () => {
    const { stdout } = check(await mount.sh("df -B1 --output=size,used,avail . | tail -1"));
    return stdout.trim().split(/\s+/).map(Number);
  };
  expect(await df()).toEqual([2 << 20, 0, 2 << 20]);
  check(await mount.sh("head -c 1048576 /dev/urandom > kept"));
  expect(await df()).toEqual([2 << 20, 1 << 20, 1 << 20]);
  await until("it is uploaded", async () => (await mount.status()).dirty === 0);
  expect(await df()).toEqual([2 << 20, 1 << 20, 1 << 20]);
  check(await mount.sh("head -c 1044480 /dev/urandom > second"));
  expect(check(await mount.sh(`python3 -c '${SAYS}'`)).stdout.trim()).toBe("EDQUOT EDQUOT ok ok ok ok");
  check(await mount.sh("head -c 1052672 /dev/urandom > third"));
  const full = await mount.sh("echo more > more");
  expect([full.code === 0, full.stderr]).toEqual([false, expect.stringContaining("Disk quota exceeded")]);
  check(await mount.sh("rm second; head -c 1000000 /dev/urandom > fourth; cmp fourth fourth"));
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  expect(await mount.status()).toMatchObject({ quota: { limit: 2 << 20, used: 1_052_672 + 1_000_000, waiting: 0 } });
  await mount.umount();
});

/** `wsfs reload`: another daemon takes the mount over, and programs see a pause. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { daemonOf } from "./support/replaced.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** Daemons with these settings cannot: "error" dies at its start, "warn" is not of a build that works. */
const FAILING = `
const settings = process.env.WSFS_DAEMON_SETTINGS ?? "";
const isCheck = process.argv.includes("--check");
if (settings.includes('"logLevel":"error"') && !isCheck) process.exit(70);
if (settings.includes('"logLevel":"warn"') && isCheck) throw new Error("half of the build is missing");
`;

/** Writes, syncs, renames and lists in turn, with its files open all the time; at the end it says what there is. */
const PROGRAM = `
import mmap, os, sys
flag, beat = sys.argv[1:3]
os.mkdir("tree")
written = os.open("tree/written", os.O_RDWR | os.O_CREAT | os.O_APPEND)
mapped = os.open("tree/mapped", os.O_RDWR | os.O_CREAT)
os.ftruncate(mapped, 8192)
memory = mmap.mmap(mapped, 8192)
known = os.open("known", os.O_RDONLY)
far = os.open("far", os.O_RDONLY)
listed = os.open("listed", os.O_RDONLY | os.O_DIRECTORY)
turns = 0
while not os.path.exists(flag):
    line = b"%08d\\n" % turns
    os.write(written, line)
    os.fsync(written)
    assert os.pread(written, 9, 9 * turns) == line
    memory[turns % 8192] = turns % 251
    with open("tree/new", "wb") as new: new.write(line)
    os.rename("tree/new", "tree/name-%d" % (turns % 20))
    assert open("tree/name-%d" % (turns % 20), "rb").read() == line
    assert os.pread(known, 6, 0) == b"known\\n"
    assert os.pread(far, 10, turns % 100 * 10000) == b"0123456789"
    assert len(os.listdir(listed)) == 30
    turns += 1
    with open(beat, "w") as out: out.write(str(turns))
assert os.fstat(written).st_size == 9 * turns
assert os.pread(written, 9 * turns, 0) == b"".join(b"%08d\\n" % i for i in range(turns))
print(turns, sorted(os.listdir("tree")) == sorted(["written", "mapped"] + ["name-%d" % i for i in range(min(turns, 20))]))
`;

test("a program that has files open and changes everything sees no reload", { timeout: 120_000 }, async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway, { name: "first" });
  check(await first.sh("for i in $(seq 100000); do printf 0123456789; done > far; mkdir listed; touch listed/{1..30}"));
  check(await first.umount("--drain=60"));
  place.env.NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(FAILING)}`;
  const mount = await place.mount(gateway);
  check(await mount.sh("echo known > known"));
  const [flag, beat] = [place.path("flag"), place.path("beat")];
  writeFileSync(place.path("program.py"), PROGRAM);
  const program = mount.sh(`/usr/bin/python3 '${place.path("program.py")}' '${flag}' '${beat}'`, {
    timeoutMs: 100_000,
  });
  const turns = () => (existsSync(beat) ? Number(readFileSync(beat, "utf8")) : 0);
  const goesOn = async () => {
    const before = turns();
    await until("the program goes on", () => turns() > before + 3);
  };
  const reload = (...args: string[]) => place.wsfs(["reload", mount.dir, ...args], { timeoutMs: 60_000 });
  await goesOn();

  const plain = check(await reload()).stdout;
  const second = daemonOf(place, mount);
  expect(second).not.toBe(mount.pid);
  expect(plain).toMatch(
    new RegExp(`^${mount.dir} is served by a new daemon \\(release .*, pid ${second}\\); programs waited for .* s\\n$`),
  );
  await goesOn();

  expect(await reload("--log-level", "error")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `${mount.dir} is served with the settings of before, since a new daemon could not serve: the daemon ended unexpectedly (exit code 70)`,
    ),
  });
  const third = daemonOf(place, mount);
  expect(third).not.toBe(second);
  await goesOn();

  expect(await reload("--log-level", "warn")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("cannot start: Error: half of the build is missing"),
  });
  expect(await reload("--no-passthrough")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--no-passthrough cannot change while a workspace is mounted: "),
  });
  expect(daemonOf(place, mount)).toBe(third);

  const told = check(await reload("--cache-size", "1G", "--json")).stdout;
  const fourth = daemonOf(place, mount);
  expect(JSON.parse(told)).toEqual({ release: expect.any(String), pid: fourth, waitedMs: expect.any(Number) });
  const status = await mount.status();
  expect(status).toMatchObject({ pid: fourth, supervisorPid: mount.supervisorPid, cacheLimit: 1024 ** 3 });
  expect(status).not.toHaveProperty("restarts");
  await goesOn();

  process.kill(fourth, "SIGKILL");
  expect(await mount.status()).toMatchObject({ cacheLimit: 1024 ** 3, restarts: { count: 1 } });
  await goesOn();
  writeFileSync(flag, "");
  expect(check(await program).stdout).toMatch(/^\d+ True\n$/);
  const sums = "find . -type f | sort | xargs sha256sum";
  const here = check(await mount.sh(sums)).stdout;
  check(await mount.umount("--drain=60"));
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(listServed(place.path("run"))).toEqual([]);
  const other = await place.mount(gateway, { name: "other" });
  expect(check(await other.sh(sums)).stdout).toBe(here);
});

test("a drain goes on with the daemon after it, and a request that waits for the gateway is answered by that", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway, { name: "first" });
  check(await first.sh("head -c 3000000 /dev/zero > far"));
  check(await first.umount("--drain=60"));
  const mount = await place.mount(gateway, { args: ["--shorten-waits", "5"] });
  check(await mount.sh("ls -l; echo new > new"));
  process.kill(gateway.pid, "SIGSTOP");
  const reading = mount.sh("cat far | wc -c", { timeoutMs: 60_000 });
  const draining = place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 });
  await until("a request waits", async () => {
    const { operations } = (await mount.status()) as { operations: Record<string, number> };
    return (operations.READ ?? 0) > 0;
  });
  const reloading = place.wsfs(["reload", mount.dir], { timeoutMs: 60_000 });
  await until("another daemon serves", () => daemonOf(place, mount) !== mount.pid);
  process.kill(gateway.pid, "SIGCONT");
  check(await reloading);
  expect(check(await reading).stdout).toBe("3000000\n");
  check(await draining);
  expect(await mount.status()).toMatchObject({ dirty: 0 });
}, 90_000);

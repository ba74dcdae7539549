/**
 * Machines that are not as most are: few descriptors for a process, and state dirs on file systems of other kinds. The
 * tests run at the same time: with few descriptors, uploads mostly wait to be tried again.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { run, until } from "../support/child.ts";
import { check, placeFor } from "../support/wsfs.ts";

const isRoot = process.getuid?.() === 0;

/** Opens 200 files, writes into those it could, closes them; prints how many those were, and what the others said. */
const OPEN_MANY = `
import errno, os
opened, said = [], set()
for number in range(200):
    try: opened.append((number, os.open("many/%d" % number, os.O_CREAT | os.O_RDWR, 0o644)))
    except OSError as error: said.add(errno.errorcode[error.errno])
for number, fd in opened:
    assert os.write(fd, b"content %d" % number) > 0
for number, fd in opened: os.close(fd)
for number, fd in opened:
    with open("many/%d" % number) as file: assert file.read() == "content %d" % number
print(len(opened), *said)
`;

it.concurrent("with 64 descriptors a process, gateway and mount serve what they can, refuse the rest in words, and lose nothing", async (context) => {
  const place = placeFor(context);
  mkdirSync(place.path("mount"));
  writeFileSync(place.path("many.py"), OPEN_MANY);
  const wsfs = `'${process.execPath}' '${place.program}'`;
  check(await place.sh(`ulimit -n 64 && ${wsfs} start mount --data data --state-dir state --background`));
  const status = async () =>
    JSON.parse(check(await place.wsfs(["status", "mount", "--json"])).stdout) as { pid: number };
  const { pid } = await status();
  const limits = check(await place.sh(`grep 'open files' /proc/${pid}/limits`)).stdout;
  expect(limits).toMatch(/ 64 +64 /);

  const { stdout } = check(await place.sh("cd mount && mkdir many && python3 ../many.py"));
  const [opened = "", ...said] = stdout.trim().split(" ");
  expect(Number(opened)).toBeGreaterThan(10);
  expect(said).toEqual(["ENFILE"]);
  // Uploads need some, too: what was refused is no part of what is compared.
  const files = "for i in $(seq 60); do echo $i > one/$i && echo $i >> ../done; done";
  const { stderr } = await place.sh(`cd mount && mkdir one && ${files}`);
  expect(stderr.replace(/^bash: line \d+: one\/\d+: Too many open files in system\n/gm, "")).toBe("");
  check(await place.wsfs(["drain", "mount", "--timeout", "120"]));
  const sums = check(await place.sh("sort done | md5sum; cd mount/one; cat $(cat ../../done) | sort | md5sum")).stdout;
  const [made, kept] = sums.split("\n");
  expect(kept).toBe(made);
  expect(await status()).toMatchObject({ pid, dirty: 0, parked: 0, live: true });
  check(await place.wsfs(["umount", "mount"]));
});

describe.skipIf(!isRoot)("a state dir (needs root, to mount its disk)", () => {
  const DISKS = {
    tmpfs: "mount -t tmpfs -o mode=700 none on",
    // On a tmpfs: what is tested may itself run on an overlay, which cannot be the upper layer of one.
    overlayfs:
      "mount -t tmpfs none below && mkdir below/lower below/upper below/work && " +
      "mount -t overlay -o lowerdir=below/lower,upperdir=below/upper,workdir=below/work none on",
  };

  it.concurrent.for(Object.entries(DISKS))(
    "on %s keeps what was saved, also when the daemon dies or the mount goes",
    async ([, command], context) => {
      const disk = mkdtempSync(join(tmpdir(), "wsfs-disk-"));
      // After the place, which has its state there.
      context.onTestFinished(async () => {
        for (const folder of ["on", "below"]) await run("umount", ["-l", join(disk, folder)], { timeoutMs: 20_000 });
        rmSync(disk, { recursive: true });
      });
      const place = placeFor(context);
      mkdirSync(join(disk, "on"));
      mkdirSync(join(disk, "below"));
      check(await run("bash", ["-c", command], { cwd: disk, timeoutMs: 20_000 }));
      const gateway = await place.gateway();
      symlinkSync(join(disk, "on"), place.path("mount.state"));
      const mount = await place.mount(gateway);
      const work = `
      set -e
      mkdir -p work && cd work
      head -c 3000000 /dev/urandom > big && sync big
      cp big copy && printf more >> copy
      sqlite3 base 'create table t(x); insert into t values (1),(2);'
      for i in $(seq 50); do echo $i > small$i; done
      mv small1 renamed && ln renamed linked && ln -s big symbolic && rm small2
      truncate -s 1000000 big
      find . -type f | sort | xargs md5sum`;
      const sums = check(await mount.sh(work)).stdout;
      const look = "cd work && find . -type f | sort | xargs md5sum && sqlite3 base 'select sum(x) from t'";
      process.kill(mount.pid, "SIGKILL");
      expect(check(await mount.sh(look)).stdout).toBe(`${sums}3\n`);
      // Nothing was uploaded for certain by now: what is kept is what is left.
      await mount.umount();
      const again = await place.mount(gateway);
      expect(check(await again.sh(look)).stdout).toBe(`${sums}3\n`);
      check(await place.wsfs(["drain", again.dir, "--timeout", "120"]));
      await again.umount();
      // As the gateway has it.
      const elsewhere = await place.mount(gateway, { name: "elsewhere" });
      await until("all of it is shown", async () => (await elsewhere.sh(look)).stdout === `${sums}3\n`);
    },
  );
});

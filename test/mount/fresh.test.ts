/**
 * Two mounts of one workspace: what is changed in one is shown by the other without any program there
 * asking twice, and what does not change is not asked for again. Times are limits, generous ones.
 */
import { writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, spawnUntilLine, until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

let place: Place;
let gateway: TestGateway;
let here: TestMount;
let there: TestMount;

beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway({ args: ["--faults"] });
  here = await place.mount(gateway, { name: "here" });
  // Where the daemon serves the bytes, what the kernel keeps of them shows in what it asks.
  there = await place.mount(gateway, { name: "there", args: ["--no-passthrough"] });
  await until("the journal is live", async () => (await there.status()).live === true);
});
afterAll(() => place.cleanUp());

/** Runs with DIR as its first argument. */
async function python(mount: TestMount, script: string, ...args: string[]): Promise<string> {
  const options = { env: place.env, timeoutMs: 100_000 };
  return check(await run("/usr/bin/python3", ["-c", script, mount.dir, ...args], options)).stdout.trim();
}

type Counts = Record<string, number>;

/** How many requests of each kind the kernel sent while `work` ran. */
async function asked(mount: TestMount, work: () => Promise<unknown>): Promise<Counts> {
  const before = (await mount.status()).operations as Counts;
  await work();
  const after = (await mount.status()).operations as Counts;
  const more = Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)] as const);
  return Object.fromEntries(more.filter(([, count]) => count > 0));
}

/**
 * From some moment on the kernel asks just that for `work`. Not at once: a name is made to be asked for again a
 * second time, a second or two after the first (fuse/kernel-cache.ts), and what was changed may be told in parts.
 */
async function comesToAsk(mount: TestMount, work: () => Promise<unknown>, expected: Counts): Promise<void> {
  const end = performance.now() + 30_000;
  let counts = await asked(mount, work);
  while (!isDeepStrictEqual(counts, expected) && performance.now() < end) counts = await asked(mount, work);
  expect(counts).toEqual(expected);
}

async function setFaults(faults: object): Promise<void> {
  const answer = await fetch(`${gateway.baseUrl}/faults`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ faults }),
  });
  expect(answer.status).toBe(200);
}

/** Looks again and again until it is so; how often it looked. */
const WATCH = `
import os, stat, sys, time
os.chdir(sys.argv[1])
def size(name):
    try: return os.stat(name).st_size
    except FileNotFoundError: return None
def link(name):
    try: return os.readlink(name)
    except FileNotFoundError: return None
until = time.monotonic() + 60
looks = 1
while not eval(sys.argv[2]):
    if time.monotonic() > until: sys.exit("never: " + sys.argv[2])
    looks += 1
    time.sleep(0.002)
print(looks)
`;

/** Of several kinds at once: what is done here, and how it shows there. */
type Change = readonly [change: string, isSo: string];

const NEW_NAMES: readonly Change[] = [
  ["printf 1234 > content; printf abcdef > same; printf x > mode", "size('content') == 4 and size('same') == 6"],
  ["printf xy > name; printf z > gone", "size('mode') == 1 and size('name') == 2 and size('gone') == 1"],
  ["ln -s other link", "link('link') == 'other'"],
  ["mkdir -p folder/sub", "os.path.isdir('folder') and os.listdir('folder') == ['sub']"],
];
const CHANGED: readonly Change[] = [
  ["printf 123456 > content; printf ABCDEF > same", "size('content') == 6 and open('same').read() == 'ABCDEF'"],
  ["chmod 600 mode", "stat.S_IMODE(os.stat('mode').st_mode) == 0o600"],
  ["mv name folder/name", "size('name') is None and size('folder/name') == 2"],
  ["rm gone", "size('gone') is None and 'gone' not in os.listdir('.')"],
  ["ln -sfn elsewhere/far link", "link('link') == 'elsewhere/far'"],
  ["rmdir folder/sub", "os.listdir('folder') == ['name']"],
];

test("what is changed in one mount is shown in the other, which is not asked until it has been told", async () => {
  for (const changes of [NEW_NAMES, CHANGED]) {
    const isSo = changes.map(([, one]) => `(${one})`).join(" and ");
    let looks = 0;
    const counts = await asked(there, async () => {
      const watching = python(there, WATCH, isSo);
      check(await here.sh(`set -e; ${changes.map(([change]) => change).join("; ")}`));
      looks = Number(await watching);
    });
    // Each name a few times, however often it was looked at.
    const { LOOKUP = 0 } = counts;
    expect(LOOKUP, `${looks} looks: ${JSON.stringify(counts)}`).toBeLessThan(60);
  }
});

test("what does not change is not asked for again", async () => {
  check(await here.sh("mkdir warm && cd warm && printf text > file && ln -s file link && touch a b c"));
  await python(there, WATCH, "os.path.exists('warm/c') and size('warm/file') == 4");
  const LOOK = `
import os, sys
os.chdir(sys.argv[1] + "/warm")
`;
  const warm = `${LOOK}
for i in range(100):
    os.stat("file"); os.lstat("link"); os.readlink("link"); os.path.exists("absent")
`;
  await comesToAsk(there, () => python(there, warm), {});

  const list = `${LOOK}
print(sorted(os.listdir(".")))
`;
  // A listing is kept from the second time on; reading it touches its time of access, which is asked for once more.
  await comesToAsk(there, () => python(there, list), { OPENDIR: 1, RELEASEDIR: 1 });

  const read = `${LOOK}
with open("file") as file:
    for i in range(100):
        file.seek(0)
        assert file.read() == "text"
`;
  await python(there, read);
  const { READ: reads = 0, FLUSH: flushes = 0, ...others } = await asked(there, () => python(there, read));
  expect({ reads, flushes }).toEqual({ reads: 0, flushes: 0 });
  expect(others).toMatchObject({ OPEN: 1, RELEASE: 1 });
});

/** Holds on to things while they change around it; says "ready", and what has become of them after "go" is there. */
const HOLD = `
import json, mmap, os, sys, time
os.chdir(sys.argv[1] + "/held/cwd")
before = open("../file", "rb")
mapped = mmap.mmap(before.fileno(), 0, prot=mmap.PROT_READ)
folder = os.open(".", os.O_RDONLY)
listed = os.listdir(folder)
print("ready", flush=True)
until = time.monotonic() + 60
while not os.path.exists(sys.argv[2]):
    if time.monotonic() > until: sys.exit("never told to go on")
    time.sleep(0.01)
def attempt(work):
    try: return work()
    except OSError as error: return error.strerror
now = {
    "open file": [before.read().decode(), os.fstat(before.fileno()).st_size],
    "mapping": mapped[:].decode(),
    "names": [listed, os.listdir(folder), os.listdir(".")],
    "reopened": attempt(lambda: open("/proc/self/fd/%d" % before.fileno()).read()),
    "made here": attempt(lambda: open("made", "w").write("x")),
    "where": os.path.basename(os.getcwd()),
    "by path": open("../file").read(),
}
os.truncate("../file", 3)
now["truncated"] = open("../file").read()
print(json.dumps(now))
`;

test("what programs hold survives: working folder, open file, mapping, running script", async () => {
  const script = `printf '#!/bin/bash\\necho ready\\nwhile [ ! -e "$1" ]; do sleep 0.02; done\\necho old end\\n' > held/script`;
  check(
    await here.sh(`mkdir -p held/cwd && printf 'old bytes, long' > held/file && ${script} && chmod +x held/script`),
  );
  await python(there, WATCH, "os.path.isdir('held/cwd') and size('held/file') == 15 and os.access('held/script', 1)");
  const go = place.path("go");
  const start = (program: string, args: readonly string[]) => spawnUntilLine(program, args, { env: place.env });
  const holding = await start("/usr/bin/python3", ["-c", HOLD, there.dir, go]);
  const running = await start("bash", ["-c", `'${there.dir}/held/script' '${go}'`]);
  expect([holding.line, running.line]).toEqual(["ready", "ready"]);

  const others = `touch held/cwd/news && chmod 750 held/cwd && mv held/cwd held/moved`;
  check(await here.sh(`printf 'new' > held/file && printf 'exit 7 # it is another one' > held/script && ${others}`));
  await python(
    there,
    WATCH,
    "os.path.exists('held/moved/news') and size('held/file') == 3 and size('held/script') == 26",
  );
  writeFileSync(go, "");
  const ended = await holding.ended;
  const script7 = await running.ended;
  expect([ended.stderr, ended.code, script7.stderr]).toEqual(["", 0, ""]);
  expect(script7.stdout).toBe("ready\nold end\n");
  expect(JSON.parse(ended.stdout.split("\n")[1] ?? "")).toEqual({
    "open file": ["old bytes, long", 15],
    mapping: "old bytes, long",
    names: [[], ["news"], ["news"]],
    // What was replaced can be held, not opened anew.
    reopened: "Stale file handle",
    "made here": 1,
    where: "moved",
    "by path": "new",
    truncated: "new",
  });
});

test("without the stream the journal is asked for; without the journal nothing is believed for long", async () => {
  const live = async () => (await there.status()).live as boolean;
  const cut = { resetBefore: 1 };
  check(await here.sh("printf 1 > late"));
  await python(there, WATCH, "size('late') == 1");
  const look = 'import os, sys\nfor i in range(50): os.stat(sys.argv[1] + "/late")';

  // New connections are refused; the one that is there ends with the daemon's mount.
  await there.umount();
  await setFaults({ streamJournal: cut });
  there = await place.mount(gateway, { name: "there", args: ["--no-passthrough"] });
  await until("it has caught up by pages", live);
  await python(there, WATCH, "size('late') == 1");
  check(await here.sh("printf 12 > late"));
  await python(there, WATCH, "size('late') == 2");

  // Only root mounts; what is mounted in a folder of ours stays there when all names are asked for again.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) check(await there.sh("mkdir nested && mount -t tmpfs nested nested && touch nested/inside"));
  // Whatever it asks after this is for what it is told then.
  await comesToAsk(there, () => python(there, look), {});

  await setFaults({ streamJournal: cut, readJournal: cut });
  await until("it is known that nobody is heard", async () => !(await live()), 60_000);
  expect(check(await place.wsfs(["status", there.dir])).stdout).toMatch(/changes +not live for /);
  const { LOOKUP = 0, GETATTR = 0 } = await asked(there, () => python(there, look));
  expect(LOOKUP + GETATTR).toBeGreaterThan(0);
  if (isRoot) expect(check(await there.sh("stat nested >&2; ls nested && umount nested")).stdout).toBe("inside\n");
  check(await here.sh("printf 123 > late"));
  await setFaults({});
  await python(there, WATCH, "size('late') == 3");
  await until("it is live again", live);
});

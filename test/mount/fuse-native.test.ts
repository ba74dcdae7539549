/**
 * A mount by the optional package fuse-native and libfuse 2: the commands work as with any mount, the behaviour
 * cases and saves hold but for a list, each row of which is shown here and stands in docs/user/fuse-native.md
 * (`WSFS_WRITE_TABLES=1` writes it).
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isAlive } from "../../src/daemon/processes.ts";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { loadLibrary, whyNotLoaded, whyNotMounted } from "../../src/fuse-native/library.ts";
import { finished, run, until } from "../support/child.ts";
import { becomeOrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { CASES } from "./cases/all.ts";
import { withPreamble } from "./cases/case.ts";
import { LIMITS, withTable } from "./support/library-limits.ts";
import { saves } from "./support/saves.ts";
import { createWorker, type Outcome, WAS_KILLED, type Worker } from "./support/worker.ts";

const BY_LIBRARY = ["--transport", "fuse-native"];
/** Nothing is said where all was sent in time. */
const WHAT_IS_LEFT = /^(wsfs: left to upload with the next mount: .*\n)?$/;
const README = fileURLToPath(new URL("../../docs/user/fuse-native.md", import.meta.url));

/** Here `npm ci` installs the package, and it has a build: only a missing libfuse 2, which not everyone may install, is no failure. */
const LIBFUSE = "/usr/lib/x86_64-linux-gnu/libfuse.so.2";
const whyNot = await loadLibrary().then(
  () => undefined,
  (error: Error) => {
    if (process.arch === "x64" && existsSync(LIBFUSE)) throw error;
    return error.message;
  },
);
const why = whyNot === undefined ? "" : ` (${whyNot})`;

/** With a place of their own: they end mounts, or freeze a gateway. */
const ALONE: Record<string, (place: Place, gateway: TestGateway) => Promise<void>> = {
  async "a daemon that dies ends the mount, and the next one has what was written"(place, gateway) {
    const mount = await place.mount(gateway, { args: BY_LIBRARY });
    check(await mount.sh("echo kept > f"));
    const [record] = listServed(place.path("run"));
    process.kill(mount.pid, "SIGKILL");
    await until("the supervisor has taken it off", () => mountsBelow(place.folder).length === 0);
    if (record !== undefined) await until("and ended", () => !isAlive(record.supervisor));
    // Without a supervisor a dead mount stays; the next mount at the place takes it off.
    const again = await place.mount(gateway, { args: BY_LIBRARY });
    check(await again.sh("echo more >> f"));
    process.kill(again.supervisorPid, "SIGSTOP");
    process.kill(again.pid, "SIGKILL");
    process.kill(again.supervisorPid, "SIGKILL");
    await until("both are gone", () => listServed(place.path("run")).length === 0);
    expect(mountsBelow(place.folder)).toHaveLength(1);
    const last = await place.mount(gateway);
    expect(check(await last.sh("cat f; mkdir d; touch d/g; ls")).stdout).toBe("kept\nmore\nd\nf\n");
  },

  async "wsfs start mounts by it as well"(place) {
    check(await place.wsfs(["start", "work", "--background", ...BY_LIBRARY]));
    check(await place.sh("echo by libfuse > work/f; cat work/f"));
    const status = check(await place.wsfs(["status", "work", "--json"])).stdout;
    expect(JSON.parse(status)).toMatchObject({ transport: "fuse-native", passthrough: false });
    check(await place.wsfs(["umount", "work", "--drain=60"], { timeoutMs: 90_000 }));
  },

  async "real owners are refused, and why is said"(place, gateway) {
    await expect(place.mount(gateway, { args: [...BY_LIBRARY, "--owners", "real"] })).rejects.toThrow(
      "shows no real owners (libfuse does not tell who makes a file): give --owners mine",
    );
    const mount = await place.mount(gateway, { name: "shared", args: [...BY_LIBRARY, "--allow-other"] });
    expect((await mount.status()).owners).toBe("mine");
  },

  async "no call hangs on a gateway that is frozen, and umount works"(place, gateway) {
    const mount = await place.mount(gateway, { args: [...BY_LIBRARY, "--shorten-waits", "10"] });
    check(await mount.sh("mkdir known; echo here > known/f"));
    check(await place.wsfs(["drain", mount.dir]));
    const other = await place.mount(gateway, { name: "other" });
    check(await other.sh("mkdir -p new; dd if=/dev/urandom of=new/big bs=1M count=3 2>/dev/null"));
    check(await place.wsfs(["drain", other.dir]));
    await other.umount();
    // The folder is seen, and nothing in it asked for.
    await until("it is there", async () => (await mount.sh("test -d new")).code === 0);
    process.kill(gateway.pid, "SIGSTOP");
    try {
      const calls = await Promise.all([
        mount.sh("ls new", { timeoutMs: 30_000 }),
        mount.sh("cat new/big", { timeoutMs: 30_000 }),
        mount.sh("cat known/f; echo more > known/g; mv known/g known/h; cat known/h", { timeoutMs: 30_000 }),
      ]);
      expect(calls.map(({ signal }) => signal)).toEqual([null, null, null]);
      expect(calls[0]?.stderr).toContain("Input/output error");
      expect(calls[2]?.stdout).toBe("here\nmore\n");
      await mount.umount();
    } finally {
      process.kill(gateway.pid, "SIGCONT");
    }
  },

  async "what another mount changes shows within seconds, in open files too"(place, gateway) {
    const mount = await place.mount(gateway, { args: BY_LIBRARY });
    const other = await place.mount(gateway, { name: "other" });
    check(await other.sh("mkdir d; echo one > d/f; echo gone > d/g"));
    const shows = (script: string, text: string) =>
      until(`"${script}" shows ${text}`, async () => (await mount.sh(script)).stdout === `${text}\n`);
    await shows("cat d/f d/g | paste -sd,", "one,gone");
    const reader = mount.sh(
      `exec /usr/bin/python3 -c '
import os, time
fd = os.open("d/f", os.O_RDONLY)
print(os.pread(fd, 99, 0))
open("../reading", "w").close()
until = time.time() + 60
while os.pread(fd, 99, 0) != b"two, longer\\n" and time.time() < until: time.sleep(0.05)
print(os.pread(fd, 99, 0))'`,
      { timeoutMs: 70_000 },
    );
    await until("the reader has it open", () => existsSync(place.path("reading")));
    check(await other.sh("echo two, longer > d/f"));
    expect((await reader).stdout).toBe("b'one\\n'\nb'two, longer\\n'\n");
    check(await other.sh("rm d/g; mv d e"));
    await shows("cat e/f; ls; ls e", "two, longer\ne\nf");
  },
};

/** On the one mount that all others share. */
const TOGETHER: Record<string, (mount: TestMount, place: Place) => Promise<void>> = {
  async "status says what it is, and that there is no passthrough"(mount, place) {
    expect(await mount.status()).toMatchObject({ transport: "fuse-native", passthrough: false });
    check(await mount.sh("echo counted > counted; cat counted"));
    const { operations } = await mount.status();
    expect(operations).toMatchObject({ CREATE: expect.any(Number), WRITE: expect.any(Number) });
    const { stdout } = check(await place.wsfs(["status", mount.dir]));
    expect(stdout).toMatch(/^transport +fuse-native/m);
    expect(stdout).toContain("within a second or two");
  },

  async "reload is refused, and says why"(mount, place) {
    const refused = await place.wsfs(["reload", mount.dir]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/mounted with --transport fuse-native, which no other daemon can take over/),
    ]);
    const other = await place.wsfs(["reload", mount.dir, "--transport", "kernel"]);
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("--transport cannot change")]);
    expect((await mount.status()).pid).toBe(mount.pid);
  },

  async "what was read is read again after an open, and mappings see what is written"(mount) {
    check(
      await mount.sh(`/usr/bin/python3 -c '
import mmap, os
fd = os.open("mapped", os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, 8192)
with mmap.mmap(fd, 8192) as shared:
    shared[4096:4101] = b"by it"
    shared.flush()
    os.pwrite(fd, b"beside", 0)
    assert os.pread(fd, 5, 4096) == b"by it" and shared[:6] == b"beside"
with mmap.mmap(fd, 8192, mmap.MAP_PRIVATE) as own: assert own[4096:4101] == b"by it"
'`),
    );
    const reads = async () => (await mount.status()).operations as { READ: number };
    const before = await reads();
    check(await mount.sh("for i in 1 2 3; do cat mapped > /dev/null; done"));
    expect((await reads()).READ - before.READ).toBeGreaterThanOrEqual(3);
  },

  async "queue, drain and a busy umount answer as of any mount"(mount, place) {
    check(await mount.sh("echo new > queued"));
    expect(check(await place.wsfs(["queue", mount.dir])).code).toBe(0);
    check(await place.wsfs(["drain", mount.dir]));
    const used = mount.sh("touch ../used; exec sleep 60", { timeoutMs: 60_000 });
    await until("it is used", () => existsSync(place.path("used")));
    const busy = await place.wsfs(["umount", mount.dir]);
    expect([busy.code, busy.stderr]).toEqual([1, expect.stringMatching(/is busy: used by sleep \(pid \d+/)]);
    const pid = Number(/pid (\d+)/.exec(busy.stderr)?.[1]);
    process.kill(pid);
    await used;
  },
};

/** Of each kind one: in place, renamed over, moved away, by a program. */
const SAVED = [
  "written in place",
  "renamed over, the new one already uploaded",
  "moved away, created anew",
  "moved away, the new one moved in",
  "removed, then created",
  "vim, backupcopy=no, keeps a backup",
  "rsync",
  "a lock file, as git does",
];

const CASE_NAMES = Object.entries(CASES).flatMap(([group, all]) => Object.keys(all).map((name) => `${group}/${name}`));
/** They take longer than all others together, for what the engine does: on a mount of their own, beside all the rest. */
const LONG = [
  "folders/800 entries are all listed, once, each with its kind",
  "folders/while others are removed and made, each name that stays is listed exactly once",
  "folders/a loop that removes what it lists empties the folder in one go",
  "together/50 processes make files of their own at once",
];
const expectedToFail = new Set(LIMITS.flatMap(({ cases = [] }) => cases));
const mayFail = new Set(LIMITS.flatMap(({ sometimes = [] }) => sometimes));
describe.skipIf(whyNot !== undefined)(`a mount by fuse-native${why}`, () => {
  let place: Place;
  let gateway: TestGateway;
  let mount: TestMount;
  let worker: Worker;
  let longWorker: Worker;
  const begun = new Map<string, Promise<Outcome>>();
  beforeAll(async () => {
    place = createPlace();
    gateway = await place.gateway();
    mount = await place.mount(gateway, { args: [...BY_LIBRARY, "--allow-other"] });
    // Some cases become another user, who has to get there.
    await place.sh("chmod 755 .");
    worker = createWorker(mount.dir);
    const another = await place.mount(await place.gateway({ name: "another" }), { name: "long", args: BY_LIBRARY });
    longWorker = createWorker(another.dir);
    let before: Promise<unknown> = Promise.resolve();
    for (const name of LONG) {
      const outcome = before.then(() => longWorker.run(name));
      begun.set(name, outcome);
      before = outcome;
    }
  });
  afterAll(async () => {
    worker.end();
    longWorker.end();
    await place.cleanUp();
  });

  const shows = (name: string) => {
    const isUncertain = mayFail.has(name);
    test(`${name}${isUncertain ? ": not always" : expectedToFail.has(name) ? ": not here" : ""}`, async ({ skip }) => {
      const outcome = await (begun.get(name) ?? worker.run(name));
      if ("notHere" in outcome) skip(outcome.notHere);
      const said = "error" in outcome ? outcome.error : "";
      if (isUncertain) expect(said).not.toMatch(WAS_KILLED);
      else expect("passed" in outcome, said).toBe(!expectedToFail.has(name));
    });
  };
  for (const name of CASE_NAMES) if (!LONG.includes(name)) shows(name);

  test.each(Object.entries(TOGETHER))("%s", (_, shows) => shows(mount, place));

  test.each(LIMITS.flatMap(({ what, script }) => (script === undefined ? [] : [[what, script] as const])))(
    "not here: %s",
    async (_what, script) => {
      check(
        await mount.sh(`mkdir -p limits && cd limits && exec /usr/bin/python3 -c "$SCRIPT"`, {
          env: { SCRIPT: withPreamble(script) },
        }),
      );
    },
  );
  // Next to each other, so that they run at the same time.
  test.concurrent.each(Object.entries(ALONE))("%s", async (_, shows) => {
    const place = createPlace();
    try {
      await shows(place, await place.gateway());
    } finally {
      await place.cleanUp();
    }
  });

  test.concurrent("in the foreground Ctrl-C ends it, and umount(8) does", async () => {
    const place = createPlace();
    try {
      const { baseUrl, workspace, tokenFile } = await place.gateway();
      const from = ["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile, ...BY_LIBRARY];
      check(await place.sh("mkdir d"));
      for (const end of ["SIGINT", "umount"] as const) {
        const command = place.spawnWsfs(["mount", "d", ...from]);
        const ended = finished(command);
        await new Promise((resolve) => command.stdout?.once("data", resolve));
        check(await place.sh(`echo ${end} >> d/a; cat d/a`));
        if (end === "umount") check(await place.sh("umount d"));
        else command.kill(end);
        expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(WHAT_IS_LEFT) });
        expect(mountsBelow(place.folder)).toEqual([]);
      }
    } finally {
      await place.cleanUp();
    }
  });

  const whyNoUser = whyNoOrdinaryUser();
  (whyNoUser === undefined ? test.concurrent : test.skip)(
    "an ordinary user mounts, and nobody else gets in",
    async () => {
      const user = await becomeOrdinaryUser("");
      const place = createPlace(undefined, user);
      try {
        const gateway = await place.gateway();
        await expect(place.mount(gateway, { args: [...BY_LIBRARY, "--allow-other"] })).rejects.toThrow(
          /wsfs: libfuse cannot mount on \S+: libfuse printed the reason on standard error$/m,
        );
        expect(mountsBelow(place.folder, user)).toEqual([]);
        const mount = await place.mount(gateway, { name: "own", args: BY_LIBRARY });
        expect(check(await mount.sh("mkdir d; echo mine > d/f; mv d e; cat e/f; stat -c %u e/f")).stdout).toBe(
          `mine\n${user.uid}\n`,
        );
        const root = await run(...user.asRoot(place.folder, "ls", ["own"]));
        expect(root.stderr).toContain("Permission denied");
        await mount.umount("--drain=60");
        expect(mountsBelow(place.folder, user)).toEqual([]);
      } finally {
        await place.cleanUp();
        await user.end();
      }
    },
  );

  // One after another: each drains the mount, and a drain sends also what another is in the middle of saving.
  test.each(SAVED)("saved: %s", (name) => saves(place, gateway, mount, name));

  for (const name of LONG) shows(name);
});

test("what is missing is said in one line: the package", async () => {
  const place = createPlace();
  try {
    const { baseUrl, workspace, tokenFile } = await place.gateway();
    check(await place.sh("mkdir d"));
    // As if nobody had installed it.
    const hook = `export const resolve = (name, context, next) =>
      name === "fuse-native" ? Promise.reject(Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" })) : next(name, context);`;
    const url = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
    const register = `import { register } from "node:module"; register(${JSON.stringify(url(hook))});`;
    const { code, stdout, stderr } = await place.wsfs(
      [
        "mount",
        "d",
        "--background",
        ...BY_LIBRARY,
        "--base-url",
        baseUrl,
        "--workspace",
        workspace,
        "--token-file",
        tokenFile,
      ],
      { env: { NODE_OPTIONS: `--import=${url(register)}` } },
    );
    expect([code, stdout, stderr]).toEqual([
      1,
      "",
      "wsfs: --transport fuse-native cannot be used: the optional package fuse-native is not installed (npm install fuse-native@2.2.6)\n",
    ]);
    expect(mountsBelow(place.folder)).toEqual([]);
  } finally {
    await place.cleanUp();
  }
});

test.each([
  [
    "Error: libfuse.so.2: cannot open shared object file: No such file or directory (ERR_DLOPEN_FAILED)",
    "libfuse.so.2 is not installed (Debian 12: apt-get install libfuse2; Debian 13: libfuse2t64)",
  ],
  [
    "Error: No native build was found for platform=linux arch=arm64 runtime=node abi=115",
    `the package fuse-native has no build for this machine (${process.platform} ${process.arch})`,
  ],
  ["Error: broken", "the package fuse-native does not load: Error: broken"],
])("what is missing is said in one line: %s", (said, line) => {
  expect(whyNotLoaded(said)).toBe(line);
});

test("why a mount cannot be made is libfuse's to say, or the package's", () => {
  expect(whyNotMounted(new Error("fuse failed"))).toBe("libfuse printed the reason on standard error");
  expect(whyNotMounted(new Error("Mountpoint in use"))).toBe("Mountpoint in use");
});

test("the table in the README is made of what is tested here", () => {
  const shown = [...Object.keys(ALONE), ...Object.keys(TOGETHER)];
  for (const { what, cases, script, test } of LIMITS) {
    expect([cases, script, test && shown.includes(test)].filter(Boolean), what).toHaveLength(1);
  }
  expect([...expectedToFail, ...mayFail, ...LONG].filter((name) => !CASE_NAMES.includes(name))).toEqual([]);
  const text = readFileSync(README, "utf8");
  if (process.env.WSFS_WRITE_TABLES === "1") writeFileSync(README, withTable(text));
  expect(readFileSync(README, "utf8")).toBe(withTable(text));
});

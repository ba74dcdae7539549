/**
 * Bad input and bad circumstances: one clear line on standard error, an exit code, and nothing left
 * mounted or running.
 */
import { rmSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { type Finished, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { childrenAt } from "./support/nodes.ts";

let place: Place;
let gateway: TestGateway;
beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway({ args: ["--workspace", "main", "--workspace", "other"] });
});
afterAll(() => place.cleanUp());
afterEach(async () => {
  for (const { mountpoint } of mountsBelow(place.folder)) await place.wsfs(["umount", mountpoint]);
});

interface Asked {
  readonly dir?: string;
  readonly baseUrl?: string;
  readonly workspace?: string;
  readonly tokenFile?: string;
  readonly stateDir?: string;
  readonly more?: readonly string[];
}

function mountArguments(asked: Asked): string[] {
  const { dir = place.path("m"), baseUrl = gateway.baseUrl, workspace = "main", more = [] } = asked;
  const { tokenFile = gateway.tokenFile, stateDir = place.path("fresh.state") } = asked;
  const from = ["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile];
  return ["mount", dir, ...from, "--state-dir", stateDir, "--background", ...more];
}

async function mount(asked: Asked = {}): Promise<Finished> {
  check(await place.sh("mkdir -p m"));
  return place.wsfs(mountArguments(asked));
}

/** One line, that says it, and the exit code; what was there before is all there is now. */
function expectRefusal(finished: Finished, says: RegExp, code = 1, mountsBefore = 0): void {
  expect(finished.stderr).toMatch(/^wsfs: [^\n]+\n$/);
  expect(finished.stderr).toMatch(says);
  expect(finished).toMatchObject({ code, stdout: "" });
  expect(mountsBelow(place.folder)).toHaveLength(mountsBefore);
  expect(listServed(place.path("run"))).toHaveLength(mountsBefore);
}

async function token(...args: string[]): Promise<string> {
  const { stdout } = check(await place.wsfs(["gateway", "token", "--data", gateway.data, ...args]));
  const file = place.path(`token-${Math.random()}`);
  writeFileSync(file, stdout, { mode: 0o600 });
  return file;
}

/** A port nobody listens on. */
const NOBODY = "http://127.0.0.1:1";

describe("the machine and the folder", () => {
  test.skipIf(process.getuid?.() !== 0)("without /dev/fuse", async () => {
    check(await place.sh("mkdir -p m dev"));
    // In a mount namespace of its own /dev has what programs need, and no fuse.
    const hidden = `mount -t tmpfs none dev && for d in null zero urandom random; do touch dev/$d && mount --bind /dev/$d dev/$d; done
      mount --move dev /dev && exec "$@"`;
    const command = [process.execPath, place.program, ...mountArguments({})].map((word) => `'${word}'`).join(" ");
    expectRefusal(
      await place.sh(`exec unshare -m --propagation private bash -c '${hidden}' bash ${command}`),
      /\/dev\/fuse/,
    );
  });

  test("DIR is missing", async () => {
    expectRefusal(await mount({ dir: place.path("none") }), /none is not there/);
  });

  test("DIR is a file", async () => {
    check(await place.sh("echo > file"));
    expectRefusal(await mount({ dir: place.path("file") }), /file is not a folder/);
  });

  test("DIR is not empty", async () => {
    check(await place.sh("mkdir full; touch full/a full/b"));
    expectRefusal(await mount({ dir: place.path("full") }), /full is not empty \(2 entries\)/);
  });

  test("DIR is a mount already, of ours or of others", async () => {
    check(await mount({ stateDir: place.path("first.state") }));
    expectRefusal(await mount(), /already a mount \(of main, served by process \d+\)/, 1, 1);
    expectRefusal(await mount({ dir: "/proc" }), /already a mount \(of type proc\)/, 1, 1);
  });

  test("DIR lies in a mount of ours", async () => {
    check(await mount({ stateDir: place.path("first.state") }));
    expectRefusal(await mount({ dir: place.path("m/below") }), /inside the mount at/, 1, 1);
  });

  test("DIR is a mount whose daemon is gone: it is repaired", async () => {
    const first = await place.mount(gateway, { name: "stale" });
    check(await first.sh("echo kept > file"));
    process.kill(first.supervisorPid, "SIGSTOP");
    process.kill(first.pid, "SIGKILL");
    process.kill(first.supervisorPid, "SIGKILL");
    expect((await first.sh("ls")).stderr).toMatch(/not connected|No such|abort/);
    const again = await place.wsfs(mountArguments({ dir: first.dir, stateDir: first.stateDir }));
    expect(again).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^wsfs: .*daemon is gone; it was detached\n$/),
    });
    expect((await first.sh("cat file")).stdout).toBe("kept\n");
  });
});

describe("the command line", () => {
  test.each([
    ["an unknown flag", ["--fast"], /unknown argument: --fast/],
    ["a value that is none of those possible", ["--durability", "some"], /--durability: expected .*got "some"/],
    ["a size that is no number", ["--cache-size", "big"], /--cache-size: expected .*got "big"/],
  ])("%s", async (_, more, says) => {
    expectRefusal(await mount({ more }), says, 2);
  });

  test("an unknown command, a missing folder, a missing flag", async () => {
    expectRefusal(await place.wsfs(["mont", "m"]), /mont/, 2);
    expectRefusal(await place.wsfs(["mount"]), /mount needs a folder/, 2);
    expectRefusal(await place.wsfs(["mount", place.path("m")]), /mount needs --base-url/, 2);
  });

  test("a base URL that is none", async () => {
    expectRefusal(await mount({ baseUrl: "gateway" }), /--base-url: expected .*got "gateway"/, 2);
  });

  test("commands that need a mount, without one", async () => {
    for (const command of ["drain", "umount"]) {
      expectRefusal(await place.wsfs([command, place.path("m")]), /nothing of wsfs is mounted/, 3);
    }
    expect(await place.wsfs(["status", place.path("m"), "--json"])).toMatchObject({
      code: 3,
      stdout: '{"mounted":false}\n',
    });
  });
});

describe("the workspace and the token", () => {
  test("an unknown workspace", async () => {
    expectRefusal(await mount({ workspace: "nowhere" }), /no workspace "nowhere"/);
  });

  test("the token file is missing", async () => {
    expectRefusal(await mount({ tokenFile: place.path("none") }), /--token-file: .*none is not there/);
  });

  test("a token the gateway does not take", async () => {
    writeFileSync(place.path("bad"), "not-a-token\n", { mode: 0o600 });
    expectRefusal(await mount({ tokenFile: place.path("bad") }), /token/);
  });

  test("a token for another workspace", async () => {
    expectRefusal(await mount({ tokenFile: await token("--workspace", "other") }), /workspace "main"/);
  });

  test("a token that cannot read", async () => {
    const scopes = ["--scope", "account.workspace.read", "--scope", "node.file.read"];
    expectRefusal(await mount({ tokenFile: await token("--workspace", "main", ...scopes) }), /node\.node\.read-all/);
  });

  test("a token that cannot write mounts read-only and says which scopes it lacks", async () => {
    const scopes = ["account.workspace.read", "node.node.read-all", "node.file.read", "node.node.update"];
    const tokenFile = await token("--workspace", "main", ...scopes.flatMap((scope) => ["--scope", scope]));
    const finished = await mount({ tokenFile });
    expect(finished).toMatchObject({ code: 0, stdout: expect.stringContaining("mounted") });
    expect(finished.stderr).toMatch(
      /^wsfs: mounted read-only: the token lacks node\.node\.create, node\.journal\.create\n$/,
    );
    for (const script of ["touch m/f", "mkdir m/d", "ln -s a m/l"]) {
      expect((await place.sh(script)).stderr).toMatch(/Read-only file system/);
    }
    expect(JSON.parse((await place.wsfs(["status", place.path("m"), "--json"])).stdout)).toHaveProperty("readOnly");
  });

  test("a token that cannot delete: rm is refused at once, all else works", async () => {
    const scopes = [
      "account.workspace.read",
      "node.node.read-all",
      "node.file.read",
      "node.node.update",
      "node.node.create",
    ];
    const tokenFile = await token(
      "--workspace",
      "main",
      ...[...scopes, "node.journal.create"].flatMap((s) => ["--scope", s]),
    );
    check(await mount({ tokenFile }));
    check(await place.sh("cd m && echo 1 > undeletable && mkdir keep && mv undeletable keep/it && echo 2 >> keep/it"));
    check(await place.wsfs(["drain", place.path("m"), "--timeout", "30"]));
    expect((await place.sh("rm m/keep/it")).stderr).toMatch(/Permission denied/);
    expect((await place.sh("rmdir m/keep")).code).not.toBe(0);
    expect((await place.sh("cat m/keep/it")).stdout).toBe("1\n2\n");
    expect((await childrenAt(gateway, "/keep")).has("it")).toBe(true);
  });
});

describe("the gateway", () => {
  test("unreachable, and the state dir knows nothing", async () => {
    expectRefusal(await mount({ baseUrl: NOBODY, stateDir: place.path("empty.state") }), /127\.0\.0\.1:1|gateway/);
    rmSync(place.path("empty.state"), { recursive: true, force: true });
  });

  test("unreachable, and the state dir knows the workspace: it goes on, and what is written arrives later", async () => {
    const own = await place.gateway({ name: "own" });
    const first = await place.mount(own, { name: "offline" });
    check(await first.sh("mkdir d; echo cached > d/file; echo also > other"));
    await first.umount("--drain=30");
    const port = new URL(own.baseUrl).port;
    await own.stop();

    const args = mountArguments({ ...own, dir: first.dir, stateDir: first.stateDir });
    const offline = await place.wsfs(args);
    expect(offline).toMatchObject({ code: 0 });
    expect(offline.stderr).toMatch(/^wsfs: the gateway \S+ cannot be used now; [^\n]+\n$/);
    expect(check(await first.sh("cat d/file other; ls")).stdout).toBe("cached\nalso\nd\nother\n");
    check(await first.sh("echo offline > d/new; echo more >> d/file; mv other moved; mkdir e; rm -r e"));
    expect(JSON.parse((await place.wsfs(["status", first.dir, "--json"])).stdout)).toMatchObject({ online: false });
    const late = await place.wsfs(["drain", first.dir, "--timeout", "1"]);
    expect(late.code).toBe(1);
    expect(late.stderr).toMatch(/^(wsfs: not drained: [^\n]+\n)+$/);
    // Unsent changes are kept for the next mount, which is offline too.
    const left = await first.umount();
    expect(left.stdout).toMatch(/left to upload with the next mount: \d+ changes/);
    check(await place.wsfs(args));
    expect(check(await first.sh("cat d/file d/new moved; ls")).stdout).toBe("cached\nmore\noffline\nalso\nd\nmoved\n");

    const back = await place.gateway({ name: "own", args: ["--port", port] });
    check(await place.wsfs(["drain", first.dir, "--timeout", "60"], { timeoutMs: 70_000 }));
    expect([...(await childrenAt(back)).keys()].sort()).toEqual(["d", "moved"]);
    expect([...(await childrenAt(back, "/d")).keys()].sort()).toEqual(["file", "new"]);
    check(await place.wsfs(["umount", first.dir]));
    const another = await place.mount(back, { name: "another" });
    expect(check(await another.sh("cat d/file d/new moved")).stdout).toBe("cached\nmore\noffline\nalso\n");
    await another.umount();
    await back.stop();
  });

  test("the token is bad, and the state dir knows the workspace: it goes on, and says so", async () => {
    const first: TestMount = await place.mount(gateway, { name: "login" });
    check(await first.sh("echo cached > login-file"));
    await first.umount("--drain=30");
    writeFileSync(place.path("later"), "not-a-token\n", { mode: 0o600 });
    const args = mountArguments({ dir: first.dir, stateDir: first.stateDir, tokenFile: place.path("later") });
    const mounted = await place.wsfs(args);
    expect(mounted).toMatchObject({ code: 0 });
    const login = `login needed (put another token into ${place.path("later")}): `;
    const paused = async () =>
      String(JSON.parse(check(await place.wsfs(["status", first.dir, "--json"])).stdout).paused);
    // A state dir that knows the workspace lets a mount begin where the refusal takes more than a quarter of a second.
    const undecided =
      'wsfs: nothing is uploaded for now: the gateway has not said yet whether it has workspace "main"\n';
    if (mounted.stderr === undecided) await until("the token is refused", async () => (await paused()).includes(login));
    else expect(mounted.stderr).toContain(login);
    expect(check(await first.sh("cat login-file; echo written > login-new; cat login-new")).stdout).toBe(
      "cached\nwritten\n",
    );
    expect(await paused()).toContain(login);
    // A good token in the same file is taken over while mounted.
    writeFileSync(place.path("later"), `${gateway.token}\n`);
    check(await place.wsfs(["drain", first.dir, "--timeout", "60"], { timeoutMs: 70_000 }));
    expect((await childrenAt(gateway)).has("login-new")).toBe(true);
  });
});

describe("the state dir", () => {
  test("of another workspace", async () => {
    check(await mount({ stateDir: place.path("main.state") }));
    check(await place.wsfs(["umount", place.path("m")]));
    const tokenFile = await token("--workspace", "other");
    const finished = await mount({ stateDir: place.path("main.state"), workspace: "other", tokenFile });
    expectRefusal(finished, /state dir .*belongs to workspace "main"/);
  });

  test("held by another daemon", async () => {
    const first = await place.mount(gateway, { name: "held" });
    expectRefusal(await mount({ stateDir: first.stateDir }), /state dir|held|in use|another/, 1, 1);
  });

  test("that is a file, or cannot be made", async () => {
    check(await place.sh("echo > no-folder"));
    expectRefusal(await mount({ stateDir: place.path("no-folder") }), /no-folder/);
    expectRefusal(await mount({ stateDir: "/proc/none" }), /\/proc\/none/);
  });
});

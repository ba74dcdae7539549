/** mount and start as a user calls them, with the real engine and a local gateway. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readGatewayRecord, runningGateway } from "../../src/daemon/gateway-record.ts";
import { isAlive } from "../../src/daemon/processes.ts";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { type Finished, finished, run, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const served = () => listServed(place.path("run"));
const nothingLeft = () => {
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(served()).toEqual([]);
};
const from = ({ baseUrl, workspace, tokenFile }: TestGateway) => [
  ...["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile],
];

/** The last of its lines, which says why. */
async function failed(...args: string[]): Promise<string> {
  const { code, stderr } = await place.wsfs(args);
  expect(code, stderr).toBe(1);
  nothingLeft();
  return stderr.trim().split("\n").at(-1) ?? "";
}

describe("wsfs mount --background", () => {
  it("returns with a mount that is usable, keeps nothing of its caller, and finds its state again by itself", async () => {
    const gateway = await place.gateway();
    mkdirSync(place.path("d"));
    const kept = openSync(place.path("nine"), "w");
    // The caller's own output is a pipe, its folder one it may want to remove, descriptor 9 a file.
    const caller = spawn(
      "bash",
      [
        "-c",
        `mkdir here && cd here && "$@" 9>&3 | cat`,
        "bash",
        process.execPath,
        MAIN,
        "mount",
        "../d",
        ...from(gateway),
        "--background",
      ],
      { cwd: place.folder, env: place.env, stdio: ["ignore", "pipe", "pipe", kept] },
    );
    closeSync(kept);
    const { code, stdout, stderr } = await finished(caller);
    expect([code, stdout, stderr]).toEqual([0, `workspace mounted at ${place.path("d")}\n`, ""]);
    const [record] = served();
    for (const pid of [record?.daemon.pid, record?.supervisor.pid]) {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
      expect(open.filter((target) => target === place.path("nine"))).toEqual([]);
      expect(readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8") + readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain(
        gateway.token,
      );
    }
    check(await place.sh("echo hello > d/a && cat d/a"));
    expect(record?.stateDir).toContain(join(place.path("state"), "wsfs"));
    expect(statSync(record?.stateDir ?? "").mode & 0o777).toBe(0o700);
    check(await place.wsfs(["umount", "d", "--drain"]));
    nothingLeft();
    await gateway.stop();
    const offline = await place.wsfs(["mount", "d", ...from(gateway), "--background"]);
    expect([offline.code, offline.stderr]).toEqual([
      0,
      expect.stringContaining("cannot be used now; the mount goes on"),
    ]);
    expect(check(await place.sh("cat d/a")).stdout).toBe("hello\n");
    check(await place.wsfs(["umount", "d"]));
    expect(readFileSync(join(record?.stateDir ?? "", "daemon.log"), "utf8")).not.toContain(gateway.token);
  });

  it("says why it cannot, with nothing left mounted or running", async () => {
    const gateway = await place.gateway();
    mkdirSync(place.path("d"));
    const background = ["mount", "d", "--background"];
    expect(await failed(...background, ...from({ ...gateway, workspace: "other" }))).toMatch(/^wsfs: .*"other"/);
    writeFileSync(place.path("bad"), "no-token\n", { mode: 0o600 });
    expect(await failed(...background, ...from({ ...gateway, tokenFile: "bad" }))).toMatch(
      /^wsfs: .*(token|401|refused)/,
    );
    expect(await failed(...background, ...from({ ...gateway, baseUrl: "http://127.0.0.1:9" }))).toMatch(
      /^wsfs: .*127\.0\.0\.1:9/,
    );
    writeFileSync(place.path("file"), "");
    expect(await failed(...background, ...from(gateway), "--state-dir", "file")).toMatch(/^wsfs: the state dir .*file/);
  });

  it("refuses the state dir of another workspace, and one that is in use", async () => {
    const gateway = await place.gateway({ args: ["--workspace", "one", "--workspace", "two"] });
    const first = await place.mount(gateway);
    mkdirSync(place.path("d"));
    const again = ["mount", "d", "--background", "--state-dir", first.stateDir];
    const busy = await place.wsfs([...again, ...from(gateway)]);
    expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining(`in use by process ${first.pid}`)]);
    await first.umount();
    const token = check(await place.wsfs(["gateway", "token", "--data", gateway.data, "--workspace", "two"])).stdout;
    writeFileSync(place.path("two"), token, { mode: 0o600 });
    const other = { ...gateway, workspace: "two", tokenFile: "two" };
    expect(await failed(...again, ...from(other))).toMatch(/^wsfs: the state dir belongs to workspace "one"/);
  });

  it("mounts read-only with a token that may not write, and says which scope is missing", async () => {
    const gateway = await place.gateway();
    const scopes = ["account.workspace.read", "node.node.read-all", "node.file.read"];
    const token = check(
      await place.wsfs(["gateway", "token", "--data", gateway.data, "--workspace", "workspace", "--scope", ...scopes]),
    );
    writeFileSync(gateway.tokenFile, token.stdout, { mode: 0o600 });
    mkdirSync(place.path("d"));
    const { code, stderr } = await place.wsfs(["mount", "d", "--background", ...from(gateway)]);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^wsfs: mounted read-only: .*node\.node\.create/)]);
    expect((await place.sh("echo x > d/a")).stderr).toContain("Read-only file system");
  });
});

describe("in the foreground", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it(`wsfs mount unmounts cleanly on ${signal}`, async () => {
      const gateway = await place.gateway();
      mkdirSync(place.path("d"));
      const command = place.spawnWsfs(["mount", "d", ...from(gateway)]);
      const ended = finished(command);
      // Before this line the mount is served but not reported yet, and a signal counts as one during the start.
      await new Promise((resolve) => command.stdout?.once("data", resolve));
      check(await place.sh("echo hello > d/a"));
      command.kill(signal);
      expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(WHAT_IS_LEFT) });
      nothingLeft();
    });
  }

  it("waits a moment for who is just leaving", async () => {
    const gateway = await place.gateway();
    mkdirSync(place.path("d"));
    const command = place.spawnWsfs(["mount", "d", ...from(gateway)]);
    const ended = finished(command);
    await new Promise((resolve) => command.stdout?.once("data", resolve));
    const left = place.sh(`cd d && kill ${command.pid} && sleep 0.1`);
    expect(await ended).toMatchObject({ code: 0, stderr: "" });
    check(await left);
    nothingLeft();
  });

  it("prints why it ends only once", async () => {
    mkdirSync(place.path("d"));
    writeFileSync(place.path("t"), "x\n", { mode: 0o600 });
    const { code, stderr } = await place.wsfs([
      "mount",
      "d",
      "--base-url",
      "http://127.0.0.1:9",
      "--workspace",
      "w",
      "--token-file",
      "t",
    ]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^wsfs: [^\n]+\n$/)]);
  });

  it("wsfs start serves, prints where, and takes gateway and mount along when it ends", async () => {
    const { command, ended, line } = await started("d", "--json");
    const at = JSON.parse(line) as Record<string, string | number>;
    expect(Object.keys(at)).toEqual([
      "baseUrl",
      "workspace",
      "account",
      "passwordFile",
      "tokenFile",
      "mountpoint",
      "pid",
    ]);
    expect(at).toMatchObject({ mountpoint: place.path("d"), pid: served()[0]?.daemon.pid });
    expect(statSync(String(at.tokenFile)).mode & 0o777).toBe(0o600);
    check(await place.sh("echo hello > d/a"));
    const gateway = runningGateway(data())?.process;
    // What a terminal does with Ctrl-C: the whole group gets it.
    process.kill(-(command.pid ?? 0), "SIGINT");
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(WHAT_IS_LEFT) });
    nothingLeft();
    expect(gateway !== undefined && isAlive(gateway)).toBe(false);
    const again = await started("d", "--json");
    expect(JSON.parse(again.line)).toMatchObject({ baseUrl: at.baseUrl, workspace: at.workspace });
    expect(check(await place.sh("cat d/a")).stdout).toBe("hello\n");
    again.command.kill("SIGTERM");
    expect((await again.ended).code).toBe(0);
  });
});

describe("npm start", () => {
  it("mounts at a folder that is relative to where the user stood", async () => {
    mkdirSync(place.path("stood"));
    const project = new URL("../..", import.meta.url).pathname;
    const args = ["--prefix", project, "start", "--", "here", "--background"];
    check(await run("npm", args, { cwd: place.path("stood"), env: place.env, timeoutMs: 120_000 }));
    expect(mountsBelow(place.folder).map(({ mountpoint }) => mountpoint)).toEqual([place.path("stood/here")]);
    check(await place.wsfs(["umount", "stood/here"]));
  });
});

describe("the gateway of wsfs start", () => {
  it("lives for as long as mounts use it, and ends after the last", async () => {
    check(await place.wsfs(["start", "d", "--background"]));
    const gateway = runningGateway(data())?.process ?? { pid: 0, startTime: "" };
    check(await place.wsfs(["start", "e", "--state-dir", "other", "--background"]));
    expect(runningGateway(data())?.process).toEqual(gateway);
    check(await place.wsfs(["umount", "d", "--drain"]));
    check(await place.sh("echo hello > e/a"));
    check(await place.wsfs(["umount", "e", "--drain"]));
    await until("the gateway has ended", () => !isAlive(gateway));
  });

  it("is used and left running when it was there before", async () => {
    const gateway = await place.gateway();
    check(await place.wsfs(["start", "d", "--data", gateway.data, "--background"]));
    expect(served()[0]?.baseUrl).toBe(gateway.baseUrl);
    check(await place.wsfs(["umount", "d"]));
    expect(readGatewayRecord(gateway.data)?.process?.pid).toBe(gateway.pid);
    expect(existsSync(`/proc/${gateway.pid}`)).toBe(true);
    expect((await gateway.stop()).code).toBe(0);
  });

  it("ends when the mount fails, or start is killed before it is there", async () => {
    writeFileSync(place.path("file"), "");
    const { code } = await place.wsfs(["start", "d", "--state-dir", "file"]);
    expect(code).toBe(1);
    expect(runningGateway(data())).toBe(undefined);
    nothingLeft();
    const killed = place.spawnWsfs(["start", "d"]);
    await until("the gateway runs", () => runningGateway(data()) !== undefined);
    killed.kill("SIGKILL");
    // A mount that was under way comes about all the same, and may or may not find it still there.
    await until("it has ended, or serves a mount", () => runningGateway(data()) === undefined || served().length === 1);
  });
});

/** Nothing is said where all was sent in time. */
const WHAT_IS_LEFT = /^(wsfs: left to upload with the next mount: \d changes? \(6 B\)\n)?$/;
const MAIN = new URL("../../dist/cli/main.js", import.meta.url).pathname;
const data = () => place.path("data/wsfs/gateway");

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** `wsfs start` leading a process group, with its first line. */
async function started(...args: string[]): Promise<{ command: ChildProcess; ended: Promise<Finished>; line: string }> {
  const command = spawn(process.execPath, [MAIN, "start", ...args], {
    cwd: place.folder,
    env: place.env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = finished(command);
  let text = "";
  command.stdout?.on("data", (part: string) => {
    text += part;
  });
  await until("start has printed where", () => text.includes("\n") || command.exitCode !== null);
  if (!text.includes("\n")) throw new Error(`start failed: ${(await ended).stderr}`);
  return { command, ended, line: text.split("\n", 1)[0] ?? "" };
}

/**
 * A start that meets trouble: a gateway that fails at first or never answers, a command that is
 * killed, signals before the mount is usable. What is given up leaves nothing mounted or running.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readGatewayRecord, writeGatewayRecord } from "../../src/daemon/gateway-record.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { childrenOf, type Finished, finished, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway } from "../support/wsfs.ts";

let place: Place;
const servers: Server[] = [];
beforeEach(() => {
  place = createPlace();
  mkdirSync(place.path("d"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await place.cleanUp();
});

interface Front {
  readonly baseUrl: string;
  /** Requests that came. */
  count(): number;
}

/** Answers in the place of the gateway; calls with false are forwarded to it. */
async function inFrontOf(
  gateway: TestGateway | undefined,
  answer: (count: number, destroy: () => void, status: (code: number) => void) => boolean,
): Promise<Front> {
  let count = 0;
  const server = createServer((incoming, outgoing) => {
    count += 1;
    const destroy = () => void incoming.socket.destroy();
    const status = (code: number) => void outgoing.writeHead(code).end();
    if (answer(count, destroy, status) || gateway === undefined) return;
    const { method, headers, url = "/" } = incoming;
    const passed = request(`${gateway.baseUrl}${url}`, { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, count: () => count };
}

/** Accepts, and never says a word. */
const silent = () => inFrontOf(undefined, () => true);

function mountArguments(gateway: { baseUrl: string; workspace?: string; tokenFile?: string }): string[] {
  const { baseUrl, workspace = "workspace", tokenFile = "token" } = gateway;
  return ["mount", "d", "--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile];
}

describe("a gateway that fails at first", () => {
  it.each([
    ["500s, with a state dir of its own", 500, ["--state-dir", "s"]],
    ["broken connections", 0, []],
  ] as const)("is asked again, which the user is told once: %s", async (_, code, more) => {
    const gateway = await place.gateway();
    // Each of the calls of a start fails a few times.
    const front = await inFrontOf(gateway, (count, destroy, status) => {
      if (count % 4 === 0) return false;
      if (code === 0) destroy();
      else status(code);
      return true;
    });
    const args = mountArguments({ ...gateway, baseUrl: front.baseUrl });
    const mounted = await place.wsfs([...args, "--background", "--wait", "60", ...more]);
    expect([mounted.code, mounted.stdout]).toEqual([0, `workspace mounted at ${place.path("d")}\n`]);
    expect(mounted.stderr.split("\n")[0]).toMatch(/^wsfs: the gateway http:\S+ fails \(.+\); asking again for 60 s$/);
    check(await place.wsfs(["umount", "d"]));
  });

  it("is given up when the time is up, and at once when it refuses", async () => {
    const gateway = await place.gateway();
    const front = await inFrontOf(gateway, (_count, _destroy, status) => {
      status(503);
      return true;
    });
    const gone = await place.wsfs([...mountArguments({ ...gateway, baseUrl: front.baseUrl }), "--wait", "1"]);
    expect([gone.code, gone.stdout]).toEqual([1, ""]);
    expect(gone.stderr).toMatch(/^wsfs: the gateway \S+ fails [^\n]+; asking again for 1 s\nwsfs: [^\n]+\n$/);
    writeFileSync(place.path("bad"), "not-a-token\n", { mode: 0o600 });
    const patient = ["--background", "--wait", "1000"];
    for (const wrong of [{ tokenFile: "bad" }, { workspace: "nowhere" }]) {
      const refused = await place.wsfs([...mountArguments({ ...gateway, ...wrong }), ...patient]);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^wsfs: [^\n]+\n$/)]);
    }
    expect(mountsBelow(place.folder)).toEqual([]);
  });

  it("is waited for by wsfs start when it has the folder, until it answers or ends", async () => {
    const gateway = await place.gateway();
    await gateway.stop();
    const holder = spawn("sleep", ["1000"], { stdio: "ignore" });
    const record = readGatewayRecord(gateway.data);
    const process = identifyProcess(holder.pid ?? 0);
    if (record === undefined || process === undefined) throw new Error("there is no record or no process");
    writeGatewayRecord(gateway.data, { ...record, process });
    const starting = place.spawnWsfs(["start", "d", "--data", gateway.data, "--background", "--wait", "1000"]);
    const ended = finished(starting);
    let said = "";
    starting.stderr?.on("data", (text: string) => {
      said += text;
    });
    await until("the command has asked", () => said !== "" || starting.exitCode !== null);
    holder.kill("SIGKILL");
    expect((await ended).code).toBe(0);
    expect(said).toMatch(
      /^wsfs: the gateway of \S+ \(process \d+, \S+\) does not answer: .*; asking again for 1000 s\n$/,
    );
    check(await place.wsfs(["umount", "d"]));
  });
});

interface Stuck {
  readonly command: ChildProcess;
  readonly supervisor: ProcessIdentity;
  readonly daemon: ProcessIdentity;
  readonly ended: Promise<Finished>;
}

/** A mount whose daemon waits for a gateway that never answers. */
async function stuck(...more: string[]): Promise<Stuck> {
  writeFileSync(place.path("token"), "any\n", { mode: 0o600 });
  const front = await silent();
  const command = place.spawnWsfs([...mountArguments(front), ...more]);
  const ended = finished(command);
  await until("the daemon asks the gateway", () => front.count() > 0);
  const supervisor = onlyChild(command.pid ?? 0);
  return { command, supervisor, daemon: onlyChild(supervisor.pid), ended };
}

function onlyChild(pid: number): ProcessIdentity {
  const pids = childrenOf(pid);
  expect(pids).toHaveLength(1);
  const identity = identifyProcess(pids[0] ?? 0);
  if (identity === undefined) throw new Error(`process ${pids[0]} has ended`);
  return identity;
}

async function nothingLeft({ supervisor, daemon }: Stuck): Promise<void> {
  await until("supervisor and daemon have ended", () => !isAlive(supervisor) && !isAlive(daemon));
  expect(mountsBelow(place.folder)).toEqual([]);
}

describe("a daemon that is stuck starting", () => {
  it.each([[["--background"]], [[]]])("goes when the command is killed: mount %s", async (more) => {
    const mount = await stuck(...more);
    mount.command.kill("SIGKILL");
    await nothingLeft(mount);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("goes on %s, however often it comes", async (signal) => {
    const mount = await stuck("--background");
    for (let i = 0; i < 3; i++) mount.command.kill(signal);
    expect(await mount.ended).toMatchObject({ code: 1, stderr: "wsfs: stopped before the mount was usable\n" });
    await nothingLeft(mount);
  });

  it("goes when supervisor or daemon are told to end or killed, with a line that says so", async () => {
    for (const [who, signal, says] of [
      ["supervisor", "SIGTERM", /^wsfs: stopped before the mount was usable\n$/],
      ["supervisor", "SIGKILL", /^wsfs: the daemon ended before the mount was usable[^\n]*\n$/],
      ["daemon", "SIGTERM", /^wsfs: the daemon ended before the mount was made \(exit code 0\)\n$/],
      ["daemon", "SIGKILL", /^wsfs: the daemon ended before the mount was made \(signal 9\)\n$/],
    ] as const) {
      const mount = await stuck("--background");
      process.kill(mount[who].pid, signal);
      const { code, stdout, stderr } = await mount.ended;
      expect([code, stdout, stderr]).toEqual([1, "", expect.stringMatching(says)]);
      await nothingLeft(mount);
    }
  });
});

/**
 * The gateway of `wsfs start`, and what its mount tells whom: it goes through a socket of its user's, so that who takes the
 * gateway's port hears nothing; and a gateway that dies is there again, whoever else dies with it.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it, type TestContext } from "vitest";
import { readGatewayRecord, runningGateway, startLock } from "../../src/daemon/gateway-record.ts";
import { isAlive, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { finished, until } from "../support/child.ts";
import { becomeStranger, STRANGER, type Stranger } from "../support/stranger.ts";
import { check, placeFor } from "../support/wsfs.ts";

/** A place with the gateway of `wsfs start`, both of the test's own. */
function begin(context: TestContext) {
  const place = placeFor(context);
  const data = place.path("data/wsfs/gateway");
  return {
    place,
    data,
    served: () => listServed(place.path("run")),
    log: () => readFileSync(`${data}/gateway.log`, "utf8"),

    gatewayProcess(): ProcessIdentity {
      const identity = runningGateway(data)?.process;
      if (identity === undefined) throw new Error("no gateway runs");
      return identity;
    },

    /** What is written now reaches the gateway. */
    async works(dir: string, name: string): Promise<void> {
      check(await place.sh(`echo ${name} > ${dir}/${name}`));
      check(await place.wsfs(["drain", dir, "--timeout", "60"], { timeoutMs: 90_000 }));
    },

    /** The folder's names are known from then on, with a gateway and without. */
    async start(dir: string, ...args: string[]): Promise<string> {
      const { stdout } = check(await place.wsfs(["start", dir, ...args, "--background", "--json"]));
      check(await place.sh(`ls ${dir}`));
      return (JSON.parse(stdout) as { baseUrl: string }).baseUrl;
    },
  };
}

async function kill(identity: ProcessIdentity): Promise<void> {
  process.kill(identity.pid, "SIGKILL");
  await until("it has ended", () => !isAlive(identity));
}

/** It ends before the place does. */
function strangerFor(context: TestContext, port: number): Stranger {
  const stranger = becomeStranger(port);
  context.onTestFinished(() => stranger.end());
  return stranger;
}

describe("a gateway that dies", () => {
  it.concurrent("is started again at its port, under each of its mounts, and ends after the last", async (context) => {
    const { place, data, log, gatewayProcess, works, start } = begin(context);
    const baseUrl = await start("d");
    expect(await start("e", "--state-dir", "other")).toBe(baseUrl);
    for (const name of ["one", "two"]) {
      await kill(gatewayProcess());
      await Promise.all([works("d", `d-${name}`), works("e", `e-${name}`)]);
      expect(readGatewayRecord(data)?.baseUrl).toBe(baseUrl);
    }
    expect(check(await place.sh("cat d/e-two e/d-one")).stdout).toBe("e-two\nd-one\n");
    // Of both daemons that miss it one starts it: no second one has tried in vain.
    expect(log()).toBe("");
    check(await place.wsfs(["umount", "d", "--drain"]));
    const last = gatewayProcess();
    check(await place.wsfs(["umount", "e", "--drain"]));
    await until("the gateway has ended", () => !isAlive(last));
    expect(runningGateway(data)).toBe(undefined);
  });

  it.concurrent("is started again when start is killed too, and when a daemon dies with it", async (context) => {
    const { place, served, gatewayProcess, works } = begin(context);
    const command = place.spawnWsfs(["start", "d", "--json"]);
    await new Promise((resolve) => command.stdout?.once("data", resolve));
    check(await place.sh("ls d"));
    const ended = new Promise((resolve) => command.once("exit", resolve));
    command.kill("SIGKILL");
    await ended;
    await kill(gatewayProcess());
    await works("d", "without-start");
    const [daemon] = served().map((record) => record.daemon);
    if (daemon === undefined) throw new Error("no daemon serves");
    await Promise.all([kill(gatewayProcess()), kill(daemon)]);
    await works("d", "both");
    expect(served().map((record) => record.daemon)).not.toContainEqual(daemon);
    check(await place.wsfs(["umount", "d"]));
  });

  it.concurrent("leaves nothing running behind a start in the foreground", async (context) => {
    const { place, gatewayProcess, works } = begin(context);
    const command = place.spawnWsfs(["start", "d", "--json"]);
    const ended = finished(command);
    await new Promise((resolve) => command.stdout?.once("data", resolve));
    check(await place.sh("ls d"));
    await kill(gatewayProcess());
    await works("d", "a");
    const another = gatewayProcess();
    command.kill("SIGINT");
    const { code, stderr } = await ended;
    expect([code, stderr]).toEqual([0, "wsfs: the gateway has died, and is started again\n"]);
    // Its record goes a moment before its process.
    await until("the gateway has ended", () => !isAlive(another));
  });

  // By itself: beside the other tests of this file, five starts take long. More of this is in test/daemon/keep-gateway.
  it("is not started again without end when its folder lets it not start", async (context) => {
    const { place, data, log, gatewayProcess, start } = begin(context);
    await start("d");
    const before = gatewayProcess();
    check(await place.sh(`printf x > '${data}/signing-key'`));
    await kill(before);
    await until(
      "five have been begun",
      () =>
        log()
          .split("\n")
          .filter((line) => line.includes("signing key")).length >= 5,
      120_000,
    );
    const { stdout } = check(await place.wsfs(["status", "d"]));
    expect(stdout).toMatch(/^gateway .*\(offline for /m);
    check(await place.wsfs(["umount", "d"]));
    expect(
      log()
        .split("\n")
        .filter((line) => line.includes("signing key")),
    ).toHaveLength(5);
  });
});

it.concurrent("of two starts at once from one folder, one starts the gateway and both mount", async (context) => {
  const { place, data, served, works, start } = begin(context);
  const both = await Promise.all([start("d"), start("e", "--state-dir", "other")]);
  expect(new Set(both).size).toBe(1);
  expect(served().map((record) => record.gatewaySocket)).toEqual([`${data}/gateway.sock`, `${data}/gateway.sock`]);
  await works("d", "a");
  expect(check(await place.sh("cat e/a")).stdout).toBe("a\n");
});

const isRoot = process.getuid?.() === 0;
describe.skipIf(!isRoot)("another user who takes the gateway's port (needs root)", () => {
  it.concurrent("hears nothing of a mount of wsfs start, which goes on; status has the gateway's new address", async (context) => {
    const { place, data, log, gatewayProcess, works, start } = begin(context);
    const baseUrl = await start("d");
    const port = Number(new URL(baseUrl).port);
    const gateway = gatewayProcess();
    const stranger = strangerFor(context, port);
    // Nobody starts the gateway again before the stranger has its port.
    const lock = startLock(data);
    await until("no gateway may start", () => lock.take());
    await kill(gateway);
    await stranger.listens();
    lock.close();
    await works("d", "a");
    expect(stranger.heard()).toBe("");
    const now = readGatewayRecord(data)?.baseUrl;
    expect(now).not.toBe(baseUrl);
    expect(log()).toBe(`wsfs: another program has port ${port}, which this gateway had before: it takes another one\n`);
    expect(check(await place.wsfs(["status", "d"])).stdout).toContain(`gateway    ${now} (online)\n`);
    expect(JSON.parse(check(await place.wsfs(["status", "d", "--json"])).stdout)).toMatchObject({ baseUrl: now });
    // Its mount keeps it, by whatever port.
    const kept = gatewayProcess();
    expect(await start("e", "--state-dir", "other")).toBe(now);
    check(await place.wsfs(["umount", "e"]));
    await works("d", "b");
    expect(gatewayProcess()).toEqual(kept);
    check(await place.wsfs(["umount", "d"]));
    await until("the gateway has ended", () => !isAlive(kept));
  });

  it.concurrent("hears nothing of a mount by its address, which is offline, says why, and goes on with the gateway", async (context) => {
    const { place } = begin(context);
    const first = await place.gateway();
    const mount = await place.mount(first);
    check(await mount.sh("echo a > a"));
    check(await place.wsfs(["drain", "mount"]));
    const port = Number(new URL(first.baseUrl).port);
    const stranger = strangerFor(context, port);
    process.kill(first.pid, "SIGKILL");
    await stranger.listens();
    check(await mount.sh("echo b > b; cat a"));
    await until("it is offline", async () => (await mount.status()).online === false);
    const why = `a program of user ${STRANGER} listens there and would get the token`;
    await until("its log says why", () => readFileSync(`${mount.stateDir}/daemon.log`, "utf8").includes(why));
    check(await mount.sh("echo c > c"));
    expect(stranger.heard()).toBe("");
    // One that mounts now says it at once.
    const refused = await place.mount(first, { name: "late" }).catch((error: Error) => error);
    expect(String(refused)).toContain(`http://127.0.0.1:${port}: ${why}`);
    expect(stranger.heard()).toBe("");
    await stranger.end();
    await place.gateway({ args: ["--port", String(port)] });
    check(await place.wsfs(["drain", "mount", "--timeout", "60"], { timeoutMs: 90_000 }));
  });
});

/** What is left to upload when a mount ends, by whatever way: said at its end, and for as long as nothing is mounted there. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { finished, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway } from "../support/wsfs.ts";

let place: Place;
let gateway: TestGateway;
beforeEach(async () => {
  place = createPlace();
  gateway = await place.gateway();
  mkdirSync(place.path("d"));
});
afterEach(() => place.cleanUp());

const from = () => ["--base-url", gateway.baseUrl, "--workspace", gateway.workspace, "--token-file", gateway.tokenFile];
const LEFT = "left to upload with the next mount";

/** The new file, and the folder it is in. */
async function writeUnsent(dir: string): Promise<void> {
  check(await place.sh(`ls ${dir}`));
  await gateway.stop();
  check(await place.sh(`echo unsent > ${dir}/x`));
}

async function status(...args: string[]): Promise<string> {
  const { code, stdout } = await place.wsfs(["status", "d", ...args]);
  expect(code).toBe(3);
  return stdout;
}

function hasEnded(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return true;
  }
}

it.each(["SIGINT", "SIGTERM"] as const)(
  "%s of a mount in the foreground says it, and so does status from then on",
  async (signal) => {
    const command = place.spawnWsfs(["mount", "d", ...from()]);
    const ended = finished(command);
    await new Promise((resolve) => command.stdout?.once("data", resolve));
    const stateDir = listServed(place.path("run"))[0]?.stateDir ?? "";
    await writeUnsent("d");
    command.kill(signal);
    const { code, stderr } = await ended;
    expect([code, stderr]).toEqual([0, `wsfs: ${LEFT}: 2 changes (7 B)\n`]);
    expect(readFileSync(`${stateDir}/daemon.log`, "utf8")).toContain(`"msg":"${LEFT}: 2 changes (7 B)"`);
    expect(await status()).toBe(`d: not mounted; ${LEFT} of "workspace": 2 changes (7 B), in ${stateDir}\n`);
    const left = [{ stateDir, workspace: "workspace", dirty: 2, parked: 0, bytesPending: 7 }];
    expect(JSON.parse(await status("--json"))).toEqual({ mounted: false, left });
    // Looked at by a command, the rows are as they were.
    expect(JSON.parse(await status("--json"))).toEqual({ mounted: false, left });
    check(await place.wsfs(["mount", "d", ...from(), "--background"]));
    expect(check(await place.sh("cat d/x")).stdout).toBe("unsent\n");
  },
);

it("a mount whose daemon and supervisor are killed is told of by status, wherever its state dir is", async () => {
  const mount = await place.mount(gateway, { name: "d" });
  await writeUnsent("d");
  const [record] = listServed(place.path("run"));
  const pids = [record?.supervisor, record?.daemon].map((one) => one?.pid ?? 0);
  // Both stand still before one is killed: a daemon without a supervisor would start another.
  for (const signal of ["SIGSTOP", "SIGKILL"] as const) for (const pid of pids) process.kill(pid, signal);
  // A killed daemon has the device until it has ended, which takes a moment on a busy machine.
  await until("both have ended", () => pids.every(hasEnded));
  expect(listServed(place.path("run"))).toEqual([]);
  await place.wsfs(["umount", "d"]);
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(await status()).toBe(`d: not mounted; ${LEFT} of "workspace": 2 changes (7 B), in ${mount.stateDir}\n`);
  rmSync(mount.stateDir, { recursive: true });
  expect(await status()).toBe("d: not mounted\n");
});

it("of a mount that has uploaded all nothing is said, but in its log", async () => {
  const mount = await place.mount(gateway, { name: "d" });
  check(await place.sh("echo sent > d/x"));
  await mount.umount("--drain");
  expect(await status()).toBe("d: not mounted\n");
  expect(await status("--json")).toBe('{"mounted":false}\n');
  expect(readFileSync(`${mount.stateDir}/daemon.log`, "utf8")).toContain(`"msg":"${LEFT}: nothing"`);
});

it("a state dir that is mounted elsewhere by now is no more the folder's", async () => {
  const first = await place.mount(gateway, { name: "d" });
  await writeUnsent("d");
  await first.umount();
  mkdirSync(place.path("e"));
  check(await place.wsfs(["mount", "e", ...from(), "--state-dir", first.stateDir, "--background"]));
  expect(await status()).toBe("d: not mounted\n");
  check(await place.wsfs(["umount", "e"]));
  expect(await status()).toBe("d: not mounted\n");
  expect((await place.wsfs(["status", "e"])).stdout).toContain(`e: not mounted; ${LEFT}`);
});

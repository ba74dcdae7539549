/**
 * A daemon behind the real supervisor and the real kernel, with an engine of one empty folder:
 * every way its life can end, and what the commands say meanwhile.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { until } from "../support/child.ts";
import { createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { launchIn, mountedIn, occupy } from "./support/life.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const launch = (workspace: string, name?: string, stateDir?: string) => launchIn(place, workspace, name, stateDir);
const mounted = (workspace?: string, name?: string, stateDir?: string) => mountedIn(place, workspace, name, stateDir);

function nothingLeft(): void {
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(existsSync(place.path("run")) ? readdirSync(place.path("run")) : []).toEqual([]);
}

const log = () => readFileSync(place.path("s/daemon.log"), "utf8");

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  it(`ends cleanly when the supervisor gets ${signal}`, async () => {
    const life = await mounted();
    life.kill(signal);
    expect(await life.ended).toMatchObject({ code: 0, stderr: "" });
    nothingLeft();
    expect(log()).toContain("the fake engine has stopped");
  });
}

it("ends cleanly when anybody calls umount(8)", async () => {
  const life = await mounted();
  await place.sh(`umount '${life.dir}'`);
  expect(await life.ended).toMatchObject({ code: 0, stderr: "" });
  nothingLeft();
});

it("ends cleanly when the daemon itself gets SIGTERM, also while the mount is in use", async () => {
  const free = await mounted();
  process.kill(free.daemon, "SIGTERM");
  expect(await free.ended).toMatchObject({ code: 0, stderr: "" });
  const used = await mounted("ok", "used");
  const user = await occupy(used.dir);
  process.kill(used.daemon, "SIGTERM");
  const { code, stderr } = await used.ended;
  user.kill("SIGKILL");
  expect(code).toBe(0);
  expect(stderr).toMatch(/^wsfs: told to end while programs use the mount; it is detached\n$/);
  nothingLeft();
});

it("takes the mount off when its supervisor is killed", async () => {
  const life = await mounted();
  life.kill("SIGKILL");
  await life.ended;
  await until("the daemon is gone", () => listServed(place.path("run")).length === 0);
  nothingLeft();
  expect(log()).toContain("the fake engine has stopped");
});

it("leaves a clear line and no mount when the daemon is killed or crashes, its cause in the log", async () => {
  const killed = await mounted();
  process.kill(killed.daemon, "SIGKILL");
  const { code, stderr } = await killed.ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^wsfs: the daemon ended unexpectedly \(signal 9\)[^\n]*\n$/);
  const crashed = await launch("crashes", "c", "t").ended;
  expect(crashed.code).toBe(1);
  expect(crashed.stderr).toMatch(/^wsfs: the daemon crashed: a bug[^\n]*\nwsfs: [^\n]*exit code 70[^\n]*\n$/);
  expect(readFileSync(place.path("t/daemon.log"), "utf8")).toMatch(/a bug.*its cause/);
  expect(mountsBelow(place.folder)).toEqual([]);
});

it("says in one line why it cannot start", async () => {
  expect(await launch("fails").ended).toMatchObject({ code: 1, stderr: "wsfs: the engine will not start\n" });
  nothingLeft();
});

it("ends at once when told to before it is ready", async () => {
  const life = launch("slow-start");
  await until("the daemon starts", () => existsSync(place.path("s/daemon.log")) && log().includes("starting"));
  life.kill("SIGTERM");
  expect(await life.ended).toMatchObject({ code: 1, stderr: "wsfs: stopped before the mount was usable\n" });
  nothingLeft();
});

it("refuses a state dir that another daemon holds, naming it", async () => {
  const first = await mounted();
  const second = await launch("ok", "second").ended;
  expect(second.code).toBe(1);
  const where = `at ${place.path("m")} (the state folder ${place.path("s")} is in use by process ${first.daemon})`;
  expect(second.stderr).toContain(`wsfs: "ok" is mounted already ${where}; --state-dir`);
  first.kill("SIGTERM");
  await first.ended;
  const third = await mounted("ok", "third");
  third.kill("SIGTERM");
  expect((await third.ended).code).toBe(0);
});

it("answers wsfs status, with every request of the kernel counted", async () => {
  const life = await mounted();
  await place.sh(`ls '${life.dir}'`);
  const { code, stdout } = await place.wsfs(["status", life.dir, "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    mounted: true,
    pid: life.daemon,
    supervisorPid: life.supervisor,
    online: true,
    dirty: 0,
    uploading: 0,
    parked: 0,
    bytesPending: 0,
    mountpoint: life.dir,
    operations: { INIT: 1, OPENDIR: 1, RELEASEDIR: 1 },
  });
  const human = await place.wsfs(["status", "m/."]);
  expect(human.stdout).toContain(`ok at ${life.dir}`);
  expect(human.stdout.split("\n").every((line) => line === "" || line[10] === " ")).toBe(true);
});

it("does not hang with a daemon that hangs", async () => {
  const life = await mounted();
  process.kill(life.daemon, "SIGSTOP");
  const { code, stderr } = await place.wsfs(["status", life.dir]);
  process.kill(life.daemon, "SIGCONT");
  expect([code, stderr]).toEqual([1, "wsfs: the daemon does not answer (for 10 s)\n"]);
});

it("unmounts when asked, and only after daemon and supervisor have ended", async () => {
  const life = await mounted("dirty");
  const { code, stdout } = await place.wsfs(["umount", life.dir]);
  expect(code).toBe(0);
  // Other tests make mount namespaces meanwhile, each with a copy of what is mounted then.
  const elsewhere = "; copies of it in other mount namespaces have ended too";
  const said = `${life.dir} unmounted; left to upload with the next mount: 3 changes (3 KiB)`;
  expect(stdout.replace(elsewhere, "")).toBe(`${said}\n`);
  nothingLeft();
  expect(existsSync(`/proc/${life.daemon}`)).toBe(false);
  expect((await life.ended).code).toBe(0);
  expect((await place.wsfs(["umount", life.dir])).code).toBe(3);
});

it("names who keeps it busy, and stays", async () => {
  const life = await mounted();
  const user = await occupy(life.dir);
  const busy = await place.wsfs(["umount", life.dir]);
  expect(busy.code).toBe(1);
  expect(busy.stderr).toBe(`wsfs: ${life.dir} is busy: used by sleep (pid ${user.pid}: current folder ${life.dir})\n`);
  expect((await place.wsfs(["status", life.dir])).code).toBe(0);
  user.kill("SIGKILL");
  await until("it can be unmounted", async () => (await place.wsfs(["umount", life.dir, "--drain"])).code === 0);
});

it("stays mounted when it cannot be drained in time, saying what is left", async () => {
  const life = await mounted("busy-drain");
  const drained = await place.wsfs(["drain", life.dir, "--timeout", "0.1"]);
  expect([drained.code, drained.stderr]).toEqual([1, "wsfs: not drained: /a: time is up\n"]);
  const { code, stderr } = await place.wsfs(["umount", "--drain=0.1", life.dir]);
  expect([code, stderr]).toEqual([1, `wsfs: not drained: /a: time is up\nwsfs: ${life.dir} is still mounted\n`]);
});

it("calls a mount stale whose daemon and supervisor were killed, and takes it off", async () => {
  const life = await mounted();
  process.kill(life.supervisor, "SIGSTOP");
  process.kill(life.daemon, "SIGKILL");
  process.kill(life.supervisor, "SIGKILL");
  await life.ended;
  await until("both are gone", () => listServed(place.path("run")).length === 0);
  const json = await place.wsfs(["status", life.dir, "--json"]);
  expect([json.code, json.stdout]).toEqual([3, '{"mounted":false}\n']);
  expect((await place.wsfs(["drain", life.dir])).stderr).toContain("is stale");
  const token = place.path("absent");
  const again = ["mount", life.dir, "--base-url", "http://127.0.0.1:9", "--workspace", "w", "--token-file", token];
  const repaired = await place.wsfs(again);
  expect(repaired.stderr).toBe(
    `wsfs: ${life.dir} was a mount whose daemon is gone; it was detached\nwsfs: --token-file: ${token} is not there\n`,
  );
  expect(mountsBelow(place.folder)).toEqual([]);
});

it("does not call a mount stale whose daemon is to be found elsewhere", async () => {
  const life = await mounted();
  const elsewhere = { env: { ...place.env, WSFS_RUNTIME_DIR: place.path("elsewhere") } };
  const why = `its daemon is not found in ${place.path("elsewhere")}; give the WSFS_RUNTIME_DIR that it was mounted with\n`;
  const status = await place.wsfs(["status", life.dir], elsewhere);
  expect([status.code, status.stdout]).toEqual([3, `${life.dir}: ${why}`]);
  const drain = await place.wsfs(["drain", life.dir], elsewhere);
  expect(drain.stderr).toBe(`wsfs: the mount at ${life.dir} cannot be asked: ${why}`);
  const umount = await place.wsfs(["umount", life.dir], elsewhere);
  expect([umount.code, umount.stderr]).toEqual([1, `wsfs: ${life.dir} is still mounted: ${why}`]);
});

it("refuses to mount over or inside a mount that is served", async () => {
  const life = await mounted();
  const rest = ["--base-url", "http://127.0.0.1:9", "--workspace", "w", "--token-file", "t"];
  expect((await place.wsfs(["mount", life.dir, ...rest])).stderr).toBe(
    `wsfs: ${life.dir} is already a mount (of ok, served by process ${life.daemon})\n`,
  );
  expect((await place.wsfs(["mount", `${life.dir}/sub`, ...rest])).stderr).toContain("lies inside the mount at");
});

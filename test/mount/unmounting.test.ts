/**
 * Every way a mount can go while something else happens to it: copies and other places of it, two
 * commands at once, a daemon that dies meanwhile. After each no mount, no process, a free state dir.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { identifyProcess } from "../../src/daemon/processes.ts";
import { listServed, socketPath } from "../../src/daemon/runtime-folder.ts";
import { finished, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { type Life, mountedIn } from "./support/life.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(async () => {
  // Of a test that failed half way.
  await place.sh("umount -l private");
  await place.cleanUp();
});

const STATE = "s";

async function nothingLeft(life: Life): Promise<void> {
  expect(mountsBelow(place.folder)).toEqual([]);
  expect([life.daemon, life.supervisor].map(identifyProcess)).toEqual([undefined, undefined]);
  expect(listServed(place.path("run"))).toEqual([]);
  expect(readFileSync(place.path(`${STATE}/lock`), "utf8")).toBe("");
}

it("ends with success although another mount namespace has a copy, and says so", async () => {
  const life = await mountedIn(place);
  // Children get a copy of every mount, and keep it.
  const holder = spawn("unshare", ["-m", "--propagation", "private", "sh", "-c", "echo in; exec sleep 1000"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void holder.kill("SIGKILL"));
  await new Promise((resolve) => holder.stdout.once("data", resolve));
  expect(readFileSync(`/proc/${holder.pid}/mountinfo`, "utf8")).toContain(` ${life.dir} `);
  const { code, stdout, stderr } = await place.wsfs(["umount", life.dir]);
  expect([code, stdout, stderr]).toEqual([
    0,
    `${life.dir} unmounted; left to upload with the next mount: nothing; copies of it in other mount namespaces have ended too\n`,
    "",
  ]);
  await nothingLeft(life);
  expect(await life.ended).toMatchObject({ code: 0, stderr: "" });
});

it("ends a mount that only another mount namespace still has", async () => {
  const life = await mountedIn(place);
  const holder = spawn("unshare", ["-m", "--propagation", "private", "sh", "-c", "echo in; exec sleep 1000"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void holder.kill("SIGKILL"));
  await new Promise((resolve) => holder.stdout.once("data", resolve));
  check(await place.sh(`umount '${life.dir}'`));
  const { code, stdout } = await place.wsfs(["umount", life.dir]);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`${life.dir} unmounted; left to upload`)]);
  await nothingLeft(life);
});

it("says of a copy (mount --bind) that it is one, and of its mount that it is busy", async () => {
  const life = await mountedIn(place);
  const copy = place.path("copy");
  mkdirSync(copy);
  check(await place.sh(`mount --bind '${life.dir}' '${copy}'`));
  const ofCopy = await place.wsfs(["umount", copy]);
  expect([ofCopy.code, ofCopy.stderr]).toEqual([
    1,
    `wsfs: ${copy} is a copy (mount --bind) of the mount at ${life.dir}; "umount ${copy}" takes the copy off\n`,
  ]);
  const ofMount = await place.wsfs(["umount", life.dir]);
  expect([ofMount.code, ofMount.stderr]).toEqual([
    1,
    `wsfs: ${life.dir} is busy: ${copy} is a copy (mount --bind) of it; "umount ${copy}" takes it off\n`,
  ]);
  expect(JSON.parse(check(await place.wsfs(["status", copy, "--json"])).stdout)).toMatchObject({ pid: life.daemon });
  check(await place.sh(`umount '${copy}'`));
  check(await place.wsfs(["umount", life.dir]));
  await nothingLeft(life);
});

it("finds a mount where it was moved to, and says where", async () => {
  // A mount below a shared one cannot be moved.
  mkdirSync(place.path("private"));
  check(await place.sh("mount -t tmpfs none private && mount --make-private private && mkdir private/there"));
  const life = await mountedIn(place, "ok", "private/m", STATE);
  const there = place.path("private/there");
  check(await place.sh(`mount --move '${life.dir}' '${there}'`));
  const old = await place.wsfs(["umount", life.dir]);
  expect([old.code, old.stderr]).toEqual([
    3,
    `wsfs: nothing of wsfs is mounted at ${life.dir}: its mount is now at ${there}\n`,
  ]);
  check(await place.wsfs(["status", there]));
  check(await place.wsfs(["umount", there]));
  await nothingLeft(life);
  check(await place.sh("umount private"));
});

it("may be asked for by two commands at once", async () => {
  const life = await mountedIn(place);
  process.kill(life.daemon, "SIGSTOP");
  const both = [place.wsfs(["umount", life.dir]), place.wsfs(["umount", life.dir])];
  await until("both have called the daemon", () => callers(life) === 2);
  process.kill(life.daemon, "SIGCONT");
  for (const { code, stderr } of await Promise.all(both)) expect([code, stderr]).toEqual([0, ""]);
  await nothingLeft(life);
});

it("waits for the daemon after umount(8), until the state dir is free", async () => {
  const life = await mountedIn(place, "slow-stop");
  check(await place.sh(`umount '${life.dir}'`));
  const command = place.spawnWsfs(["umount", life.dir]);
  const ended = finished(command);
  let said = "";
  command.stderr?.on("data", (text: string) => {
    said += text;
  });
  await until("the command has looked", () => said !== "" || command.exitCode !== null);
  expect(said).toBe(`wsfs: ${life.dir} was unmounted already; waiting for its daemon (process ${life.daemon})\n`);
  writeFileSync(place.path(`${STATE}/go`), "");
  expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining(`${life.dir} unmounted; `) });
  await nothingLeft(life);
});

it("takes note of a daemon that is killed while it is asked", async () => {
  const life = await mountedIn(place);
  process.kill(life.daemon, "SIGSTOP");
  const command = place.wsfs(["umount", life.dir]);
  await until("the command has called the daemon", () => callers(life) === 1);
  process.kill(life.daemon, "SIGKILL");
  const { code, stdout } = await command;
  expect([code, stdout]).toEqual([
    0,
    `${life.dir} unmounted; changes that its daemon had not uploaded are in its state dir\n`,
  ]);
  expect((await life.ended).stderr).toMatch(/^wsfs: the daemon ended unexpectedly \(signal 9\)/);
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(identifyProcess(life.supervisor)).toBe(undefined);
});

/** How many commands have called the daemon and have no answer yet. */
function callers(life: Life): number {
  const socket = socketPath(place.path("run"), life.daemon);
  // The first is the one the daemon listens on.
  return readFileSync("/proc/net/unix", "utf8").split(socket).length - 2;
}

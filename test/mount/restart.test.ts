/**
 * A daemon that dies is replaced, and programs see a pause. Here at some of the places where it may die; at all of
 * them in `npm run soak -- restart`.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listServed, socketPath } from "../../src/daemon/runtime-folder.ts";
import { until } from "../support/child.ts";
import { createChance, SEED } from "../support/seed.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { REAL_PROGRAMS } from "./support/real-programs.ts";
import { install } from "./support/reload.ts";
import { armed, dieEverywhere, killDuring } from "./support/restart.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("a program that makes every change sees no death of the daemon", { timeout: 300_000 }, async () => {
  const gateway = await place.gateway();
  const meet = armed(place);
  const mount = await place.mount(gateway);
  const { died, errors, different } = await dieEverywhere(place, mount, meet, { program: "changes", gap: 61, runs: 1 });
  expect({ errors, different }).toEqual({ errors: [], different: [] });
  expect(died.length).toBeGreaterThan(5);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  expect(await mount.status()).toMatchObject({ dirty: 0, parked: 0, conflicts: 0 });
});

test("git, sqlite and dd see none either", { timeout: 300_000 }, async () => {
  const gateway = await place.gateway();
  place.env.WSFS_CRASHES = "1000";
  const mount = await place.mount(gateway);
  const env = { ...place.env, SIZE: "3" };
  const work = (name: string) =>
    mount.sh(`mkdir ${name}; cd ${name}\n${REAL_PROGRAMS.all}`, { env, timeoutMs: 200_000 });
  const undisturbed = check(await work("undisturbed")).stdout;
  let killed = "";
  const working = work("killed").then((finished) => {
    killed = check(finished).stdout;
  });
  const kills = await killDuring(place, mount, createChance(), working, 4);
  expect(killed, `seed ${SEED}`).toBe(undisturbed);
  expect(kills).toBeGreaterThan(0);
});

test("a request sees no kill -9, however many it is at hand at; what two daemons died of themselves over fails", async () => {
  const gateway = await place.gateway();
  const installed = install(place);
  place.env.WSFS_CRASHES = "1000";
  const mount = await place.mount(gateway);
  check(await mount.sh("echo content > file"));
  const label = "fsync: rows synced";
  const killed = installed(Array(3).fill(`dies ${label}`).join("\n"));
  check(await mount.sh("sync file"));
  expect(killed()).toBe(false);
  const failed = installed([`fails ${label}`, `dies ${label}`, `fails ${label}`].join("\n"));
  expect(await mount.sh("sync file")).toMatchObject({ code: 1, stderr: expect.stringContaining("Input/output error") });
  expect(failed()).toBe(false);
  expect(check(await mount.sh("sync file; cat file")).stdout).toBe("content\n");
  expect(await mount.status()).toMatchObject({ restarts: { count: 6 } });
});

test("a command whose daemon dies before it has answered asks the one after it", async () => {
  const gateway = await place.gateway();
  const mount = await place.mount(gateway);
  process.kill(mount.pid, "SIGSTOP");
  const asking = Promise.all([mount.status(), place.wsfs(["queue", mount.dir, "--json"])]);
  const socket = socketPath(place.path("run"), mount.pid);
  const ends = () => readFileSync("/proc/net/unix", "utf8").split(`${socket}\n`).length - 1;
  await until("it is asked twice", () => ends() > 2);
  process.kill(mount.pid, "SIGKILL");
  const [status, queue] = await asking;
  expect(status).toMatchObject({ restarts: { count: 1 } });
  expect(queue).toMatchObject({ code: 0, stdout: expect.stringContaining(`{"sums":{"dirty":0`) });
});

test("the death of the supervisor is seen by nobody, nor that of the daemon after it", async () => {
  const gateway = await place.gateway();
  const mount = await place.mount(gateway);
  check(await mount.sh("echo one > file"));
  process.kill(mount.supervisorPid, "SIGKILL");
  const supervisor = async () => (await mount.status()).supervisorPid;
  await until("it has another supervisor", async () => (await supervisor()) !== mount.supervisorPid);
  const second = await supervisor();
  process.kill(mount.pid, "SIGKILL");
  expect(check(await mount.sh("cat file; echo two > file; cat file")).stdout).toBe("one\ntwo\n");
  expect(await mount.status()).toMatchObject({ supervisorPid: second, restarts: { count: 1 } });
  check(await mount.umount());
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(listServed(place.path("run"))).toEqual([]);
});

test("who waits in close for the gateway, with what somebody else changed meanwhile, goes on with the next daemon", async () => {
  const gateway = await place.gateway();
  const other = await place.mount(gateway, { name: "other" });
  const mount = await place.mount(gateway, { args: ["--durability", "remote"] });
  check(await mount.sh("echo old > file"));
  check(await other.sh("until [ -e file ]; do sleep 0.05; done"));
  const [isOpen, flag] = [place.path("open"), place.path("flag")];
  const script = `exec 9>>file; touch ${isOpen}; while [ ! -e ${flag} ]; do sleep 0.05; done; echo ours >&9; exec 9>&-`;
  let isClosed = false;
  const closing = mount.sh(script, { timeoutMs: 60_000 }).finally(() => {
    isClosed = true;
  });
  await until("it is open", () => existsSync(isOpen));
  check(await other.sh("echo theirs > file; echo later > mark"));
  check(await place.wsfs(["drain", other.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  // What came before it is heard of, too, and waits for the writer.
  check(await mount.sh("until [ -e mark ]; do sleep 0.05; done; cat file"));
  const flushes = async () => ((await mount.status()).operations as Record<string, number>).FLUSH ?? 0;
  const before = await flushes();
  process.kill(gateway.pid, "SIGSTOP");
  writeFileSync(flag, "");
  await until("it is being closed", async () => (await flushes()) > before);
  process.kill(mount.pid, "SIGKILL");
  await until("the next daemon is asked, too", async () => {
    const { restarts } = (await mount.status()) as { restarts?: { count: number } };
    return restarts?.count === 1 && (await flushes()) > 0;
  });
  expect(isClosed).toBe(false);
  process.kill(gateway.pid, "SIGCONT");
  check(await closing);
  const both = "cat file; cat file*conflict*";
  expect(check(await mount.sh(both)).stdout).toBe("theirs\nold\nours\n");
  check(await other.sh("until ls | grep -q conflict; do sleep 0.05; done"));
  expect(check(await other.sh(both)).stdout).toBe("theirs\nold\nours\n");
});

test("where the kernel sends nothing again, only who waits at that moment gets an error", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway);
  check(await first.sh("head -c 3000000 /dev/urandom > far; echo near > near"));
  check(await first.umount("--drain=60"));
  Object.assign(place.env, { WSFS_NO_RESEND: "1" });
  const mount = await place.mount(gateway, { name: "other", args: ["--shorten-waits", "5"] });
  const [isOpen, flag] = [place.path("open"), place.path("flag")];
  const script = `exec 9<>near; echo here >&9; touch ${isOpen}; while [ ! -e ${flag} ]; do sleep 0.05; done; echo more >&9; cat near`;
  const open = mount.sh(script);
  await until("a file is open", () => existsSync(isOpen));
  process.kill(gateway.pid, "SIGSTOP");
  const waiting = mount.sh("cat far > /dev/null", { timeoutMs: 60_000 });
  await until("a request waits", async () => {
    const { operations } = (await mount.status()) as { operations: Record<string, number> };
    return (operations.READ ?? 0) > 0;
  });
  process.kill(mount.pid, "SIGKILL");
  expect(await waiting).toMatchObject({ code: 1, stderr: expect.stringContaining("Input/output error") });
  process.kill(gateway.pid, "SIGCONT");
  writeFileSync(flag, "");
  expect(await open).toMatchObject({ code: 0, stdout: "here\nmore\n" });
  expect(check(await mount.sh("cat far | wc -c")).stdout).toBe("3000000\n");
});

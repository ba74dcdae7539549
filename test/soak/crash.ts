/**
 * `npm run soak -- crash [KILLS] [SEED] [gone|replaced]`: daemon, supervisor or gateway is killed with -9 at a
 * drawn moment while programs append with fsync, fill a database, commit with git and copy with dd. Where the mount
 * is gone with them, a dead daemon or supervisor fails the programs' calls, and the next mount has all that was
 * acknowledged; where they are replaced nobody sees anything. A dead gateway fails nothing. In the end a mount that
 * knows nothing has it, too.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { PROGRAM, PROGRAMS, VERIFY } from "../mount/support/promises.ts";
import { killDaemon, killSupervisor } from "../mount/support/replaced.ts";
import { contentsOf, readGateway, readTree } from "../mount/support/tree.ts";
import { type Finished, run, until } from "../support/child.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { check, createPlace, mountsBelow, type TestMount } from "../support/wsfs.ts";

const VICTIMS = ["daemon", "gateway", "supervisor", "daemon", "gateway"] as const;
const LIMIT_MS = 180_000;
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

const [kills = 50, seed = 1] = process.argv.slice(2, 4).map(Number);
const mode = process.argv[4] ?? "gone";
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed) || !/^(gone|replaced)$/.test(mode)) {
  throw new Error("expected KILLS, SEED, and gone or replaced");
}
const chance = seededRandom(seed);
const place = createPlace();
if (mode === "gone") place.env.WSFS_NO_RESTART = "1";
else place.env.WSFS_CRASHES = "1000000";
const logs = place.path("logs");
const stop = place.path("stop");
mkdirSync(logs);
const killed = { daemon: 0, supervisor: 0, gateway: 0 };
let lives = 0;
let failedCalls = 0;

const startGateway = () =>
  place.gateway({ args: ["--port", String(PORT), "--path-lag", "300", "--journal-lag", "500"] });
const startPrograms = (dir: string): Promise<Finished>[] => {
  lives += 1;
  const common = [dir, logs, String(lives), stop];
  return PROGRAMS.map((program) =>
    run("/usr/bin/python3", ["-c", PROGRAM, program, ...common], { env: place.env, timeoutMs: 24 * 3600_000 }),
  );
};
const linesOf = (program: string) => {
  const log = `${logs}/${program}`;
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").length - 1 : 0;
};

/** Whatever they said about how they ended. */
async function endOf(programs: readonly Promise<Finished>[]): Promise<string[]> {
  let isOver = false;
  const ended = Promise.all(programs).finally(() => {
    isOver = true;
  });
  await until("the programs have ended", () => isOver, LIMIT_MS);
  return (await ended).map((program) => check(program).stdout).filter((said) => said !== "");
}

async function verify(dir: string): Promise<string> {
  const { stdout } = check(
    await run("/usr/bin/python3", ["-c", VERIFY, dir, logs], { env: place.env, timeoutMs: LIMIT_MS }),
  );
  return stdout.trim();
}

/** As often as it takes for what died to be gone. */
async function mountAgain(): Promise<TestMount> {
  for (const end = performance.now() + LIMIT_MS; ; ) {
    try {
      return await place.mount(gateway);
    } catch (error) {
      const isGoing = /is in use by process|is already a mount|was a mount whose daemon/.test(String(error));
      if (!isGoing || performance.now() > end) throw error;
    }
  }
}

let gateway = await startGateway();
try {
  let mount = await place.mount(gateway);
  let programs = startPrograms(mount.dir);
  const begun = performance.now();
  for (let kill = 1; kill <= kills; kill += 1) {
    const victim = VICTIMS[Math.floor(chance() * VICTIMS.length)] ?? "daemon";
    const before = PROGRAMS.map(linesOf);
    const works = () => PROGRAMS.every((program, index) => linesOf(program) > (before[index] ?? 0));
    await until("all programs go on", works, LIMIT_MS);
    await pause(chance() * 1500);
    killed[victim] += 1;
    if (victim === "gateway") {
      process.kill(gateway.pid, "SIGKILL");
      await gateway.stop();
      await pause(chance() * 1500);
      gateway = await startGateway();
    } else if (mode === "replaced") {
      await (victim === "daemon" ? killDaemon(place, mount) : killSupervisor(place, mount));
    } else {
      process.kill(victim === "daemon" ? mount.pid : mount.supervisorPid, "SIGKILL");
      failedCalls += (await endOf(programs)).length;
      await until("the mount is gone", () => mountsBelow(place.folder).length === 0, LIMIT_MS);
      mount = await mountAgain();
      const counts = await verify(mount.dir);
      process.stdout.write(`  ${kill} kills, ${victim}: ${counts}\n`);
      programs = startPrograms(mount.dir);
    }
  }
  writeFileSync(stop, "");
  assert.deepEqual(await endOf(programs), [], "a call failed although nobody died");
  check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
  const { dirty, parked, conflicts } = await mount.status();
  assert.deepEqual({ dirty, parked, conflicts }, { dirty: 0, parked: 0, conflicts: 0 });
  await verify(mount.dir);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
  const shown = contentsOf(await readTree(place, mount.dir));
  await mount.umount();
  const other = await place.mount(gateway, { name: "other" });
  assert.deepEqual(contentsOf(await readTree(place, other.dir)), shown);
  assert.deepEqual(await readGateway(place, gateway), shown);
  const acknowledged: unknown = JSON.parse(await verify(other.dir));
  await other.umount();
  const seconds = Math.round((performance.now() - begun) / 1000);
  process.stdout.write(
    `${JSON.stringify({ mode, seed, killed, lives, failedCalls, acknowledged, seconds })}\nnothing is lost\n`,
  );
} catch (error) {
  process.stdout.write(`seed ${seed}, after ${JSON.stringify(killed)}\n`);
  throw error;
} finally {
  // Programs on a mount that stays would hold it.
  writeFileSync(stop, "");
  await place.cleanUp();
}

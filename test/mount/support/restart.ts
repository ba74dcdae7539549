/**
 * The daemon of a mount dies by kill -9 at one fault point after the other, each time under a program that makes
 * every change there is (mutations.ts): the program sees no error, and the same as where nobody dies. Throws what
 * it found otherwise; the seconds of the machine decide nothing.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { run, until } from "../../support/child.ts";
import { check, type Place, type TestMount } from "../../support/wsfs.ts";
import { MUTATIONS } from "./mutations.ts";
import { install, makeFiles, work } from "./reload.ts";
import { killDaemon, signalDaemon } from "./replaced.ts";

const DIE_AFTER_STEPS = fileURLToPath(new URL("../../support/die-after-steps.mjs", import.meta.url));

/** What a program's calls pass, and nothing that is done for no program. */
const IN_CALLS =
  /^(commit|create|make|link|unlink|rmdir|rename|setattr|xattr|truncate|open|handle|live file|passthrough|flush|fsync): |^write: (?!size)|^(MK|SYM|UN|RM|REN|SET|REM|LINK|CREATE|OPEN|REL|WRITE|FLUSH|FSYNC|FALL|COPY|READDIR).*: /;

/** For the daemons that are started from now on. */
export function armed(place: Place): string {
  const file = place.path("die-after");
  Object.assign(place.env, {
    NODE_OPTIONS: `--import ${DIE_AFTER_STEPS}`,
    WSFS_DIE_LABELS: IN_CALLS.source,
    WSFS_DIE_FILE: file,
    WSFS_CRASHES: "1000000",
  });
  return file;
}

async function mutate(place: Place, mount: TestMount, name: string): Promise<string> {
  const env = { ...place.env, NODE_OPTIONS: "" };
  const args = ["-c", MUTATIONS, mount.dir, name];
  return check(await run("/usr/bin/python3", args, { env, timeoutMs: 600_000 })).stdout;
}

/** Tells the daemon that serves it: it, and those after it, die at each `every`th place; 0: nobody dies any more. */
async function tellToDie(place: Place, mount: TestMount, file: string, every: number): Promise<void> {
  if (every > 0) writeFileSync(file, String(every));
  else rmSync(file, { force: true });
  rmSync(`${file}.heard`, { force: true });
  await until("a daemon is told when to die", () => {
    signalDaemon(place, mount, "SIGUSR2");
    return existsSync(`${file}.heard`);
  });
}

/**
 * One program for each of `strides`, whose daemon dies at every so manieth place; the labels it died at. More
 * than the places of one call, or a request would be at hand at two deaths.
 */
export async function dieInTurn(
  place: Place,
  mount: TestMount,
  file: string,
  strides: readonly number[],
): Promise<Map<string, number>> {
  const undisturbed = await mutate(place, mount, `undisturbed-${strides.join("-")}`);
  const deaths = new Map<string, number>();
  for (const every of strides) {
    rmSync(`${file}.died`, { force: true });
    await tellToDie(place, mount, file, every);
    const died = () => (existsSync(`${file}.died`) ? readFileSync(`${file}.died`, "utf8").trim().split("\n") : []);
    const told = await mutate(place, mount, `every-${every}`).catch((error: Error) => {
      const where = `${died().length} deaths, the last at "${died().at(-1)}"`;
      throw new Error(`died at every ${every}th place, ${where}: ${error.message}`, { cause: error });
    });
    await tellToDie(place, mount, file, 0);
    for (const label of died()) deaths.set(label, (deaths.get(label) ?? 0) + 1);
    assert.deepEqual(JSON.parse(told), JSON.parse(undisturbed), `died at every ${every}th place: ${died()}`);
  }
  return deaths;
}

/**
 * Kills the daemon that serves it, and the one that takes over at a fault point, for each of them; answers those that
 * one came by before it could be asked for the mount's status.
 */
export async function dieTakingOver(place: Place, labels: readonly string[], args: readonly string[]) {
  const gateway = await place.gateway();
  const installed = install(place);
  const mount = await place.mount(gateway, { args });
  await makeFiles(mount);
  const program = await work(place, mount);
  const passed: string[] = [];
  for (const label of labels) {
    const isWaiting = installed(`next ${label}`);
    await killDaemon(place, mount);
    await program.goesOn();
    await mount.status();
    if (!isWaiting()) passed.push(label);
  }
  await program.end();
  check(await mount.umount("--drain=120"));
  return passed;
}

/**
 * Kills the daemon that serves it now and then, at most so often, until `work` has ended; answers how often.
 */
export async function killDuring(
  place: Place,
  mount: TestMount,
  chance: () => number,
  work: Promise<unknown>,
  most: number,
): Promise<number> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  ended.catch(() => {});
  for (let kills = 0; ; kills += 1) {
    await pause(chance() * 500);
    if (isOver || kills === most) {
      await ended;
      return kills;
    }
    await killDaemon(place, mount);
  }
}

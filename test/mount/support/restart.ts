/**
 * The daemon of a mount dies by kill -9 at one fault point after the other, each time under a program that says where
 * it is (mutations.ts, real-programs.ts): the program sees no error, and the same as where nobody dies. The seconds
 * of the machine decide nothing.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { run, until } from "../../support/child.ts";
import { check, type Place, type TestMount } from "../../support/wsfs.ts";
import { MUTATIONS } from "./mutations.ts";
import { REAL_PROGRAMS, type RealProgram } from "./real-programs.ts";
import { install, makeFiles, work } from "./reload.ts";
import { killDaemon, signalDaemon } from "./replaced.ts";

const DIE_AT_PLACES = fileURLToPath(new URL("die-at-places.mjs", import.meta.url));
const PROGRAM_MS = 900_000;
/** Told when a program fails: those of the last two daemons, and some. */
const LOG_LINES = 60;

/** What a program's calls pass, and nothing that is done for no program. */
const IN_CALLS =
  /^(commit|create|make|link|unlink|rmdir|rename|setattr|xattr|truncate|open|handle|cache file|passthrough|flush|fsync): |^write: (?!size)|^(MK|SYM|UN|RM|REN|SET|REM|LINK|CREATE|OPEN|REL|WRITE|FLUSH|FSYNC|FALL|COPY|READDIR).*: /;

/** A folder where the program and the daemons that are started from now on meet (die-at-places.mjs). */
export function armed(place: Place): string {
  const folder = place.path("places");
  mkdirSync(folder);
  writeFileSync(join(folder, "at"), "");
  Object.assign(place.env, {
    NODE_OPTIONS: `--import ${DIE_AT_PLACES}`,
    WSFS_DIE_LABELS: IN_CALLS.source,
    WSFS_DIE_FOLDER: folder,
    WSFS_CRASHES: "1000000",
  });
  return folder;
}

export type ProgramName = "changes" | RealProgram;

/** In a new folder `name` of the mount; what it told. Throws what it failed with. */
async function perform(place: Place, mount: TestMount, meet: string, program: ProgramName, name: string) {
  const env = { ...place.env, NODE_OPTIONS: "", AT: join(meet, "at") };
  if (program !== "changes") {
    const script = `mkdir ${name} && cd ${name} || exit\n${REAL_PROGRAMS[program]}`;
    return check(await mount.sh(script, { env, timeoutMs: PROGRAM_MS })).stdout;
  }
  const args = ["-c", MUTATIONS, mount.dir, name, env.AT];
  return check(await run("/usr/bin/python3", args, { env, timeoutMs: PROGRAM_MS })).stdout;
}

/** Tells the daemon that serves it; undefined: nobody dies any more. */
async function tellToDie(place: Place, mount: TestMount, meet: string, gap: number | undefined): Promise<void> {
  if (gap === undefined) rmSync(join(meet, "gap"), { force: true });
  else writeFileSync(join(meet, "gap"), String(gap));
  rmSync(join(meet, "heard"), { force: true });
  await until("a daemon is told when to die", () => {
    signalDaemon(place, mount, "SIGUSR2");
    return existsSync(join(meet, "heard"));
  });
}

export interface Deaths {
  /** Of the program, that some daemon came by which was to die. */
  readonly places: number;
  /** Where one died: each once. */
  readonly died: readonly string[];
  /** The others were come by only soon after a death, by a daemon that took over; dieTakingOver() has those. */
  readonly left: readonly string[];
  /** Of a run: that the program failed, or told something else than where nobody died. */
  readonly errors: readonly string[];
  readonly different: readonly string[];
}

/**
 * Runs `program` again and again, its daemon dying at places where none has died, until one run had no death.
 * `gap`: of so many places that a daemon comes by, it dies at the last.
 */
export async function dieEverywhere(
  place: Place,
  mount: TestMount,
  meet: string,
  { program, gap, runs = 1000 }: { readonly program: ProgramName; readonly gap: number; readonly runs?: number },
  onRun: (deaths: number) => void = () => {},
): Promise<Deaths> {
  const lines = (name: string) =>
    existsSync(join(meet, name)) ? readFileSync(join(meet, name), "utf8").split("\n").filter(Boolean) : [];
  const undisturbed = await perform(place, mount, meet, program, "undisturbed");
  const errors: string[] = [];
  const different: string[] = [];
  for (let turn = 1; turn <= runs; turn += 1) {
    const before = lines("died").length;
    await tellToDie(place, mount, meet, gap);
    const told = await perform(place, mount, meet, program, `run-${turn}`).catch((error: Error) => error);
    await tellToDie(place, mount, meet, undefined);
    const died = lines("died").slice(before);
    if (told instanceof Error) errors.push(`${told.message}\ndied at ${died.join(", ")}`);
    else if (told !== undisturbed) different.push(`${told}\ninstead of\n${undisturbed}\ndied at ${died.join(", ")}`);
    onRun(died.length);
    if (died.length === 0) break;
    // Nobody is to wait for it to be uploaded.
    check(await mount.sh(`rm -rf run-${turn}`));
  }
  const died = lines("died");
  const wasDied = new Set(died);
  const seen = lines("seen");
  return { places: seen.length, died, left: seen.filter((one) => !wasDied.has(one)), errors, different };
}

/** What its daemons said last. */
function tailOf({ stateDir }: TestMount): string {
  return readFileSync(join(stateDir, "daemon.log"), "utf8").split("\n").slice(-LOG_LINES).join("\n");
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
    try {
      await killDaemon(place, mount);
      await program.goesOn();
      await mount.status();
    } catch (error) {
      const how = isWaiting() ? "waits to be come by" : "was died at";
      throw new Error(`"${label}" ${how}, after ${passed.length} others: ${error}\n${tailOf(mount)}`, { cause: error });
    }
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

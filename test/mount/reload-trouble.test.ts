/** `wsfs reload` when something is wrong: whoever dies, and whatever is installed by then, programs see a pause. */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlive, isSame } from "../../src/daemon/processes.ts";
import { run, until } from "../support/child.ts";
import { becomeOrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { check, createPlace, mountsBelow, type Place, type TestMount } from "../support/wsfs.ts";
import { install, makeFiles, work } from "./support/reload.ts";
import { daemonOf, killDaemon, killSupervisor, recordOf } from "./support/replaced.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const reload = (mount: TestMount, ...args: string[]) =>
  place.wsfs(["reload", mount.dir, ...args], { timeoutMs: 60_000 });

async function begin(wsfs = place, args: readonly string[] = []) {
  const gateway = await wsfs.gateway();
  const mount = await wsfs.mount(gateway, { args });
  await makeFiles(mount);
  return { mount, program: await work(wsfs, mount) };
}

const ENDED = "ended before it could give way; another one serves it as before";
const AS_BEFORE =
  "is still served with the old settings, because a new daemon could not start: the daemon ended unexpectedly (signal 9)";
/** Where the daemon that gives way dies, or the one that comes, and what the command says then. More of it is in the soaks. */
const DEATHS = [
  ["reload: checked", ENDED],
  ["reload: kernel told", ENDED],
  ["reload: at rest", ENDED],
  ["reload: said", ENDED],
  ["daemon: prepared", AS_BEFORE],
  ["daemon: has the device", AS_BEFORE],
  ["daemon: kernel answered", AS_BEFORE],
  ["daemon: recorded", AS_BEFORE],
  ["daemon: ready", undefined],
] as const;

test("whoever of the two dies on the way, the command says what is served", { timeout: 240_000 }, async () => {
  const installed = install(place);
  place.env.WSFS_CRASHES = "1000";
  const { mount, program } = await begin();
  let cacheLimit = (await mount.status()).cacheLimit;
  for (const [index, [label, said]] of DEATHS.entries()) {
    installed(`dies ${label}`);
    const size = 1024 ** 3 + index;
    const { code, stderr } = await reload(mount, "--cache-size", String(size));
    expect([label, code, stderr]).toEqual([label, said === undefined ? 0 : 1, expect.stringContaining(said ?? "")]);
    if (code === 0) cacheLimit = size;
    expect([label, (await mount.status()).cacheLimit]).toEqual([label, cacheLimit]);
    await program.goesOn();
  }
  await program.end();
  check(await mount.umount("--drain=60"));
  expect(mountsBelow(place.folder)).toEqual([]);
});

test("a daemon whose supervisor dies while it starts takes over, and says who looks after it", {
  timeout: 240_000,
}, async () => {
  const installed = install(place);
  const { mount, program } = await begin();
  for (const orphan of ["orphan", "orphan daemon: about to listen"]) {
    const isWaiting = installed(orphan);
    const before = recordOf(place, mount).supervisor;
    const told = check(await reload(mount, "--json")).stdout;
    expect(JSON.parse(told)).toMatchObject({ pid: daemonOf(place, mount) });
    expect(isWaiting()).toBe(false);
    const { supervisor } = recordOf(place, mount);
    expect(isSame(supervisor, before)).toBe(false);
    expect(isAlive(supervisor)).toBe(true);
    await program.goesOn();
  }
  process.kill(daemonOf(place, mount), "SIGKILL");
  await program.goesOn();
  await program.end();
  await mount.umount("--drain=60");
});

test("a mount nobody can serve any more waits for the release that can", { timeout: 240_000 }, async () => {
  const installed = install(place);
  place.env.WSFS_CRASHES = "2";
  const { mount, program } = await begin();
  installed("half");
  expect(await reload(mount)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("cannot start: Error: half of the build is missing"),
  });
  expect(daemonOf(place, mount)).toBe(mount.pid);
  installed("dead");
  const reloading = reload(mount, "--cache-size", "1G");
  // More often than daemons may die.
  const log = () => readFileSync(place.path("run/background.log"), "utf8");
  await until("daemons have died", () => (log().match(/another one takes the mount over/g)?.length ?? 0) > 2);
  rmSync(place.path("installed"));
  expect(await reloading).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      "served with the old settings, because a new daemon could not start: the daemon ended unexpectedly (exit code 70)",
    ),
  });
  await program.goesOn();
  await program.end();
  await mount.umount("--drain=60");
});

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** What a start does before it changes the database; in each bundle once. */
const MIGRATES = "if (version > MIGRATIONS.length)";
const migrateMore = (count: number) =>
  `while (MIGRATIONS.filter((sql) => sql.startsWith("-- later")).length < ${count})
     MIGRATIONS.push("-- later\\nCREATE TABLE later_" + MIGRATIONS.length + " (x TEXT) STRICT");
   ${MIGRATES}`;

/**
 * Another release beside ours; `first` is the first line of its daemon, `later` how many more changes of the database it
 * knows. Answers its folder.
 */
function release(name: string, first = "", later = 0): string {
  const folder = place.path(name);
  mkdirSync(folder);
  cpSync(join(PROJECT, "dist"), join(folder, "dist"), { recursive: true });
  for (const shared of ["package.json", "node_modules", "native"]) {
    symlinkSync(join(PROJECT, shared), join(folder, shared));
  }
  const main = join(folder, "dist/daemon/main.js");
  writeFileSync(main, `${first}\n${readFileSync(main, "utf8")}`);
  const bundle = join(folder, "dist/daemon/bundle.cjs");
  const text = readFileSync(bundle, "utf8");
  expect(text.split(MIGRATES)).toHaveLength(2);
  if (later > 0) writeFileSync(bundle, text.replace(MIGRATES, migrateMore(later)));
  return folder;
}

const reloadFrom = (folder: string, mount: TestMount, ...args: string[]) =>
  run(process.execPath, [join(folder, "dist/cli/main.js"), "reload", mount.dir, ...args], {
    env: place.env,
    timeoutMs: 60_000,
  });

/** Of the daemon that serves it. */
const programOf = (mount: TestMount) =>
  readFileSync(`/proc/${daemonOf(place, mount)}/cmdline`, "utf8").split("\0")[1] ?? "";

const DEAD = 'if (!process.argv.includes("--check")) process.exit(70);';
const SICK = `
const { systemClock } = await import("../lib/system-clock.js");
systemClock.step = (label) => label === "daemon: ready" && setImmediate(() => process.exit(70));
`;

test("a release that cannot serve, or not for long, gives way to the one before", { timeout: 240_000 }, async () => {
  place.env.WSFS_CRASHES = "3";
  const { mount, program } = await begin();
  const { cacheLimit } = await mount.status();
  const ours = programOf(mount);
  const refused = await reloadFrom(release("dead", DEAD), mount, "--cache-size", "1G");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("(exit code 70)")]);
  expect(programOf(mount)).toBe(ours);
  await program.goesOn();

  const sound = release("sound");
  check(await reloadFrom(sound, mount));
  expect(programOf(mount)).toBe(join(sound, "dist/daemon/main.js"));
  await program.goesOn();

  await reloadFrom(release("sick", SICK), mount, "--cache-size", "1G");
  const isSoundServing = () => programOf(mount) === join(sound, "dist/daemon/main.js");
  await until("the release before serves", isSoundServing);
  await program.goesOn();
  expect(await mount.status()).toMatchObject({ cacheLimit });

  // A supervisor in the place of one that died knows of the release before as well.
  const other = release("other");
  check(await reloadFrom(other, mount, "--cache-size", "2G"));
  await killSupervisor(place, mount);
  for (let deaths = 0; deaths < 3; deaths += 1) {
    expect(programOf(mount)).toBe(join(other, "dist/daemon/main.js"));
    await killDaemon(place, mount);
    await program.goesOn();
    await mount.status();
  }
  expect(isSoundServing()).toBe(true);
  expect(await mount.status()).toMatchObject({ cacheLimit });
  await program.end();
  check(await mount.umount("--drain=60"));
});

/** A daemon that finds this file takes it away, and ends before it serves. */
const unluckyOnce = (file: string) => `
const { existsSync, rmSync } = await import("node:fs");
const { systemClock } = await import("../lib/system-clock.js");
systemClock.step = (label) => {
  if (label !== "daemon: prepared" || !existsSync(${JSON.stringify(file)})) return;
  rmSync(${JSON.stringify(file)});
  process.exit(70);
};
`;

/** As long as this file is there, a daemon ends as soon as it serves. */
const unwell = (file: string) => `
const { existsSync } = await import("node:fs");
const { systemClock } = await import("../lib/system-clock.js");
systemClock.step = (label) =>
  label === "daemon: ready" && existsSync(${JSON.stringify(file)}) && setImmediate(() => process.exit(70));
`;

test("a release that has changed the database cannot be taken back, and goes on", { timeout: 240_000 }, async () => {
  place.env.WSFS_CRASHES = "2";
  const { mount, program } = await begin();
  // It is told though the one that changes it does not live to say so.
  const unlucky = place.path("unlucky");
  writeFileSync(unlucky, "");
  const later = release("later", unluckyOnce(unlucky), 1);
  const told = check(await reloadFrom(later, mount));
  expect(told.stderr).toBe(
    `wsfs: its database was changed for this release: no earlier one can serve ${mount.dir} any more\n`,
  );
  expect(existsSync(unlucky)).toBe(false);
  await program.goesOn();
  // The one of before is refused by what it left, and the later one serves as before.
  const back = await reload(mount, "--cache-size", "1G");
  expect([back.code, back.stderr]).toEqual([
    1,
    expect.stringMatching(/with the old settings, .* the database has schema \d+, newer/),
  ]);
  expect(programOf(mount)).toBe(join(later, "dist/daemon/main.js"));
  await program.goesOn();

  const file = place.path("unwell");
  writeFileSync(file, "");
  const latest = release("latest", unwell(file), 2);
  const reloading = reloadFrom(latest, mount, "--cache-size", "2G");
  const log = () => readFileSync(place.path("run/background.log"), "utf8");
  await until("there is no way back", () => log().includes("the release before cannot serve any more: the database"));
  rmSync(file);
  expect(check(await reloading).stderr).toContain("its database was changed for this release");
  await program.goesOn();
  expect(programOf(mount)).toBe(join(latest, "dist/daemon/main.js"));
  expect(await mount.status()).toMatchObject({ cacheLimit: 2 * 1024 ** 3 });
  await program.end();
  check(await mount.umount("--drain=60"));
});

const whyNot = whyNoOrdinaryUser();
test.skipIf(whyNot !== undefined)(
  "an ordinary user on a kernel that sends nothing again, and close waits for the gateway",
  { timeout: 240_000 },
  async () => {
    const user = await becomeOrdinaryUser("");
    const theirs = createPlace(undefined, user);
    try {
      Object.assign(theirs.env, { WSFS_NO_RESEND: "1", WSFS_CRASHES: "1000" });
      const installed = install(theirs);
      const { mount, program } = await begin(theirs, ["--durability", "remote"]);
      // From rest on until requests are read again, nobody has one at hand.
      for (const [label, said] of DEATHS.slice(2, 6)) {
        installed(`dies ${label}`);
        const { code, stderr } = await theirs.wsfs(["reload", mount.dir], { timeoutMs: 60_000 });
        expect([label, code, stderr]).toEqual([label, 1, expect.stringContaining(said ?? "")]);
        await program.goesOn();
      }
      check(await theirs.wsfs(["reload", mount.dir, "--cache-size", "1G"], { timeoutMs: 60_000 }));
      expect(await mount.status()).toMatchObject({ cacheLimit: 1024 ** 3 });
      await program.goesOn();
      await program.end();
      // At once, as far as one can: whoever is asked first.
      const reloading = theirs.wsfs(["reload", mount.dir], { timeoutMs: 60_000 });
      check(await mount.umount());
      await reloading;
      expect(mountsBelow(theirs.folder, user)).toEqual([]);
    } finally {
      await theirs.cleanUp();
      await user.end();
    }
  },
);

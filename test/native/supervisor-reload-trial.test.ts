/** What a daemon that came by a reload, and served, is worth when it dies: by a clock that the test sets. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  buildSupervisor,
  canMount,
  expectNothingLeft,
  leaveMount,
  patiently,
  ready,
  run,
  start,
  type Trial,
  useMount,
} from "./supervisor-trial.ts";

let folder: string;
let supervisor: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-supervisor-clock-"));
  supervisor = buildSupervisor(folder, "set-clock.c", ["now_ms"]);
});
afterAll(() => rmSync(folder, { recursive: true }));

const count = (trial: Trial, line: RegExp) => trial.log().match(line)?.length ?? 0;

/** A mount in use whose daemon has given way, and its clock. */
async function begin(crashes: number, behaviour: "reload" | "adopt-reload" = "reload") {
  const ahead = join(folder, "ahead");
  let passed = 0;
  const pass = (ms: number) => {
    passed += ms;
    writeFileSync(`${ahead}.new`, String(passed));
    renameSync(`${ahead}.new`, ahead);
  };
  pass(0);
  const trial = start(behaviour, {
    supervisor,
    wrapper: ["env", "WSFS_DAEMON_SETTINGS=first", `WSFS_AHEAD_FILE=${ahead}`, `WSFS_SUPERVISOR=${supervisor}`],
    options: ["--options", "default_permissions", "--crashes", String(crashes)],
  });
  await ready(trial);
  const user = await useMount(trial.dir);
  const lastPid = () => Number([...trial.log().matchAll(/ pid (\d+)/g)].at(-1)?.[1]);
  let resumed = 0;
  const serves = async () => {
    resumed++;
    await vi.waitFor(() => expect(count(trial, /^resend 0$/gm)).toBe(resumed), patiently);
    // Answered after "ready" was read.
    process.kill(lastPid(), "SIGUSR2");
    await vi.waitFor(() => expect(count(trial, /^line busy/gm)).toBe(resumed), patiently);
  };
  process.kill(lastPid(), "SIGUSR1");
  await serves();
  return {
    trial,
    user,
    pass,
    serves,
    kill: () => process.kill(lastPid(), "SIGKILL"),
    /** Its supervisor dies. Answers the pid of the one that the daemon has started. */
    async replaceSupervisor() {
      trial.supervisor.kill("SIGKILL");
      let next = 0;
      await vi.waitFor(() => {
        next = Number(/^supervisor (\d+)$/m.exec(trial.log())?.[1] ?? 0);
        expect(next).toBeGreaterThan(0);
        expect(trial.stderr()).toContain("took the place of a supervisor that died");
      }, patiently);
      return next;
    },
    /** The daemon of before cannot serve any more. */
    setLater: () => writeFileSync(join(trial.folder, "log.later"), ""),
    /** As the daemons were given them, one after another. */
    settings: () => [...trial.log().matchAll(/^settings (.*)$/gm)].map(([, text]) => text?.slice(0, 4)),
  };
}

describe.skipIf(!canMount)("a daemon that came by a reload (root and /dev/fuse)", () => {
  const end = async ({ trial, user }: Awaited<ReturnType<typeof begin>>) => {
    expect((await run("ls", trial.dir)).code).toBe(0);
    await leaveMount(user);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  };
  const endWith = async ({ trial, user }: Awaited<ReturnType<typeof begin>>, supervisor: number) => {
    expect((await run("ls", trial.dir)).code).toBe(0);
    await leaveMount(user);
    process.kill(supervisor, "SIGTERM");
    await trial.exited(); // all that have its standard error
    expect(trial.mounts()).toEqual([]);
  };

  it.each([
    ["again and again", [12_500, 12_500, 12_500, 12_500, 12_500]],
    ["for almost a minute, and then not at all", [58_000, 1_000, 1_000, 1_000, 1_000]],
  ])("and serves %s is taken back", async (_, served) => {
    const life = await begin(5);
    for (const ms of served) {
      life.pass(ms);
      life.kill();
      await life.serves();
    }
    expect(life.settings()).toEqual([...served.map(() => "good"), "firs"]);
    await end(life);
  });

  it("and serves for a minute is as good as any: five deaths after that end the mount", async () => {
    const { trial, user, pass, kill, serves, settings } = await begin(5);
    pass(60_000);
    for (let deaths = 1; deaths < 5; deaths++) {
      kill();
      await serves();
    }
    kill();
    expect(await trial.exited()).toBe(1);
    expect(settings()).toEqual(["good", "good", "good", "good", "good"]);
    await leaveMount(user);
    expectNothingLeft(trial);
  });

  it("is taken back by a supervisor in the place of one that died as well", async () => {
    const life = await begin(5, "adopt-reload");
    const supervisor = await life.replaceSupervisor();
    for (let deaths = 0; deaths < 5; deaths++) {
      life.kill();
      await life.serves();
    }
    expect(life.settings()).toEqual(["good", "good", "good", "good", "good", "firs"]);
    expect(life.trial.log()).toMatch(/^settings first \d+ reload tag:1 the daemon ended unexpectedly/m);
    await endWith(life, supervisor);
  });

  it("is not, once it has served for a minute, whoever looked after it", async () => {
    const { pass, replaceSupervisor, kill, serves, settings, trial, user } = await begin(5, "adopt-reload");
    pass(60_000);
    await replaceSupervisor();
    for (let deaths = 1; deaths < 5; deaths++) {
      kill();
      await serves();
    }
    kill();
    await trial.exited();
    expect(settings()).toEqual(["good", "good", "good", "good", "good"]);
    await leaveMount(user);
    expect(trial.mounts()).toEqual([]);
  });

  it.each([
    ["it is tried again", false],
    ["a supervisor in the place of one that died tries it again", true],
  ])("and is taken back for one that cannot read what it left: %s", async (_, isReplaced) => {
    const life = await begin(5, "adopt-reload");
    const { kill, serves, settings, setLater, trial, pass } = life;
    if (!isReplaced) setLater();
    for (let deaths = 0; deaths < 5; deaths++) {
      kill();
      await serves();
    }
    let supervisor = trial.supervisor.pid ?? 0;
    if (isReplaced) {
      supervisor = await life.replaceSupervisor();
      setLater();
      kill();
      await serves();
    }
    const before = isReplaced ? ["firs", "firs"] : ["firs"];
    expect(settings()).toEqual(["good", "good", "good", "good", "good", ...before, "good"]);
    const [last] =
      trial
        .log()
        .match(/^settings .*$/gm)
        ?.slice(-1) ?? [];
    expect(last).toMatch(/ reload tag:1$/);
    expect(trial.stderr()).toContain("the release before cannot serve any more: the store is of a later release");
    // It is kept until somebody serves for a minute.
    for (let deaths = 0; deaths < 6; deaths++) {
      const said = trial.stderr().split("\n").length;
      kill();
      await vi.waitFor(() => expect(trial.stderr().split("\n").length).toBeGreaterThan(said), patiently);
      pass(2_000);
      await serves();
    }
    expect(settings().slice(-7)).toEqual(Array(7).fill("good"));
    await endWith(life, supervisor);
  });

  it("and the one of before, which both die soon, leave a mount that is kept until one serves for a minute", async () => {
    const life = await begin(2);
    const { pass, kill, serves, settings, trial, user } = life;
    const said = () => trial.stderr().split("\n").length;
    for (let deaths = 0; deaths < 6; deaths++) {
      const before = said();
      kill();
      await vi.waitFor(() => expect(said()).toBeGreaterThan(before), patiently);
      pass(2_000);
      await serves();
    }
    expect(settings()).toEqual(["good", "good", "firs", "firs", "firs", "firs", "firs"]);
    pass(60_000);
    kill();
    await serves();
    kill();
    expect(await trial.exited()).toBe(1);
    await leaveMount(user);
    expectNothingLeft(trial);
  });

  it("and the one of before, which does not come to serve, leave a mount that waits for one that can", async () => {
    const life = await begin(2);
    const dead = join(life.trial.folder, "log.dead");
    writeFileSync(dead, "");
    const before = life.settings().length;
    life.kill();
    // Time passes once the supervisor has noticed the death: a daemon that seems to have served for a minute is no trial any more.
    await vi.waitFor(() => expect(life.settings().length).toBeGreaterThan(before), patiently);
    await vi.waitFor(() => {
      life.pass(2_000);
      expect(life.settings().filter((text) => text === "firs").length).toBeGreaterThan(3);
    }, patiently);
    rmSync(dead);
    life.pass(2_000);
    await life.serves();
    await end(life);
  });
});

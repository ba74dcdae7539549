/** Programs of executions: what they get, how they end, and that nothing of them stays, whatever they do to stay. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Logs, openLogs } from "../../../src/gateway/engines/logs.ts";
import { endProcesses } from "../../../src/gateway/engines/process-table.ts";
import {
  createEngineProcesses,
  type EngineProcesses,
  type EngineRun,
  type RunningEngine,
  TERM_GRACE_MS,
} from "../../../src/gateway/engines/processes.ts";
import { elapsedTime, millisecondsOf, minus, plus } from "../../../src/lib/clocks.ts";
import type { Clock } from "../../../src/lib/runtime.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { hasCode } from "../../../src/lib/system-error.ts";
import { until } from "../../support/child.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** On which three seconds are one: a busy machine takes more than one to stop what begins others without end. */
const quickClock: Clock = {
  ...systemClock,
  elapsed: () => elapsedTime(millisecondsOf(systemClock.elapsed()) * 3),
  setTimer: (milliseconds, callback) => systemClock.setTimer(milliseconds / 3, callback),
};

let home: string;
let work: string;
let logs: Logs;
let processes: EngineProcesses;
let hold: Hold;
/** The bundle of test/gateway/support/engine-process.ts. */
let bundle: string;

beforeAll(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "wsfs-test-"));
  bundle = path.join(folder, "engine-process.mjs");
  const input = fileURLToPath(new URL("../support/engine-process.ts", import.meta.url));
  const build = await rolldown({ input, platform: "node", logLevel: "silent" });
  await build.write({ file: bundle, codeSplitting: false });
  await build.close();
  return () => rm(folder, { recursive: true, force: true });
});

/** A pipe that each process of an execution keeps open from its beginning to its end (sh's descriptor 3, then inherited). */
interface Hold {
  readonly path: string;
  /** Whether nobody has it open any more. */
  isFree(): boolean;
}

function makeHold(place: string): Hold {
  execFileSync("mkfifo", [place]);
  const reader = openSync(place, constants.O_RDONLY | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(reader));
  return {
    path: place,
    isFree() {
      try {
        return readSync(reader, Buffer.alloc(1)) === 0;
      } catch (error) {
        if (hasCode(error, "EAGAIN")) return false;
        throw error;
      }
    },
  };
}

const openProcesses = (environment: NodeJS.ProcessEnv = process.env, clock: Clock = quickClock) =>
  createEngineProcesses({ folder: work, clock, environment });

beforeEach(async () => {
  home = await temporaryFolder();
  work = path.join(home, "work");
  logs = openLogs({ folder: path.join(home, "logs"), clock: systemClock });
  processes = openProcesses();
  hold = makeHold(path.join(home, "hold"));
});

function start(command: readonly string[], more: Partial<EngineRun> = {}): RunningEngine {
  const run = { id: "e", command, environment: { HOLD: hold.path }, input: "{}", files: {}, timeLimitMs: 600_000 };
  const engine = processes.start({ ...run, log: logs.open("e"), ...more });
  onTestFinished(async () => void (await engine.end(0)));
  return engine;
}

/** A script that holds the pipe, as does all it begins. */
const script = (text: string) => ["sh", "-c", `exec 3>"$HOLD"; ${text}`];
const lines = async () => (await logs.lines("e", 0, 10_000)).map(({ stream, text }) => `${stream}: ${text}`);
const ended = { exitCode: 0, timedOut: false, detail: null };
const said = (text: string) => until(text, async () => (await lines()).includes(text));

test("a program gets its input, its files, its environment, a folder of its own and nothing else", async () => {
  processes = openProcesses({
    PATH: process.env.PATH,
    LC_TIME: "C",
    SECRET: "ours",
    WSFS_TOKEN: "ours",
    NODE_OPTIONS: "",
  });
  const look = `cat; echo; pwd; stat -c %a .; cat of-it.json; echo
    for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e /proc/$$/fd/$fd ] && echo fd $fd; done
    cut -d' ' -f6 /proc/$$/stat | sed "s/^$$\\$/own session/"; env | sort >&2`;
  const end = await start(["sh", "-c", look], {
    environment: { GIVEN: "to it" },
    input: '{"a":1}',
    files: { "of-it.json": "[]" },
  }).ended;
  expect(end).toEqual(ended);
  const all = await lines();
  const own = path.join(work, "e");
  expect(all.filter((line) => line.startsWith("out"))).toEqual(
    ['{"a":1}', own, "700", "[]", "fd 0", "fd 1", "fd 2", "own session"].map((line) => `out: ${line}`),
  );
  const environment = all.filter((line) => line.startsWith("err")).map((line) => line.slice("err: ".length));
  expect(environment.filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=/.test(line))).toEqual(
    ["GIVEN=to it", "LC_TIME=C", `PATH=${process.env.PATH}`, "WSFS_EXECUTION=e"].toSorted(),
  );
  expect(readdirSync(work)).toEqual([]);
});

test("/dev/stdin, /dev/stdout and /dev/stderr can be opened", async () => {
  const end = await start(["sh", "-c", "cat /dev/stdin > /dev/stdout; echo oops > /dev/stderr"], { input: "in\n" })
    .ended;
  expect([end, (await lines()).toSorted()]).toEqual([ended, ["err: oops", "out: in"]]);
});

test.each([
  ["never reads a large input", "exit 7", 7],
  ["closes what it may write to, and goes on", "exec >&- 2>&-; sleep 0.1; exit 7", 7],
  ["says nothing", "exit 0", 0],
])("a program that %s ends as it likes", async (_, text, exitCode) => {
  const end = await start(script(text), { input: JSON.stringify("x".repeat(2 ** 20)) }).ended;
  expect([end, await lines(), hold.isFree()]).toEqual([{ ...ended, exitCode }, [], true]);
});

test("binary output is kept as lines of what there is of text", async () => {
  expect(await start(["sh", "-c", "printf 'a\\000b\\377\\n\\n\\r\\nz'"]).ended).toEqual(ended);
  expect(await lines()).toEqual(["out: a\0b�", "out: ", "out: ", "out: z"]);
});

describe("why it ended", () => {
  test.each([
    [["sh", "-c", "exit 3"], { exitCode: 3, detail: null }],
    [["sh", "-c", "kill -SEGV $$"], { exitCode: null, detail: "It was ended by SIGSEGV." }],
    [["no-such-command", "x"], { exitCode: null, detail: 'The command "no-such-command" is not there.' }],
    [["./no-such-file"], { exitCode: null, detail: 'The command "./no-such-file" is not there.' }],
    [["/etc/passwd"], { exitCode: null, detail: 'The command "/etc/passwd" may not be executed.' }],
  ])("%j", async (command, expected) => {
    expect(await start(command).ended).toEqual({ timedOut: false, ...expected });
    expect(readdirSync(work)).toEqual([]);
  });

  test("a script whose interpreter is not there", async () => {
    const program = path.join(home, "program");
    await writeFile(program, "#!/no/such/interpreter\n", { mode: 0o755 });
    const detail = `The command ${JSON.stringify(program)} is there, but not the interpreter that its first line names.`;
    expect(await start([program]).ended).toEqual({ exitCode: null, timedOut: false, detail });
  });

  test("the gateway cannot make its folder", async () => {
    await mkdir(path.join(work, "e"));
    const { exitCode, detail } = await start(["true"]).ended;
    expect([exitCode, detail]).toEqual([null, expect.stringMatching(/^The gateway could not run it: Error: EEXIST/)]);
  });
});

/** A script that has all of it there once there is a file "up". */
const STAYING: Readonly<Record<string, string>> = {
  "in the background": "sleep 1000 & sleep 1000 & : > up",
  "in a session of its own": "setsid sh -c ': > up; exec sleep 1000' &",
  "forked twice, the one between gone": "(setsid sh -c 'sleep 1000 & sleep 1000 & : > up' &)",
  "ignoring SIGTERM": "(trap '' TERM; setsid sleep 1000 & : > up; sleep 1000) &",
  stopped: "(trap '' TERM; setsid sleep 1000 & kill -STOP $!; : > up) &",
  "without the variable in its environment": "env -i sh -c ': > up; exec sleep 1000' &",
  "holding its output open": "sleep 1000 >/dev/null & sleep 1000 & : > up",
  "beginning others as they are killed": perl(
    '$SIG{TERM} = $SIG{CHLD} = "IGNORE"; fork for 1..3; up; while (1) { fork or do { sleep 1; exit }; select(undef, undef, undef, 0.02) }',
  ),
  "always as another process": perl("up; fork and exit while 1"),
  "always as another process that ignores SIGTERM": perl('$SIG{TERM} = "IGNORE"; up; fork and exit while 1'),
};

function perl(program: string): string {
  return `setsid perl -e 'sub up { open my $f, ">", "up" } ${program}' &`;
}

/** A program that forks without end is stopped by chance. On a busy machine this may need the product's whole ten seconds. */
function useRealTime(text: string): void {
  if (text.includes("perl")) processes = openProcesses(process.env, systemClock);
}

/** Says "up" then. */
const staying = (text: string) => `${text}\nuntil [ -e up ]; do :; done; echo up`;

describe("nothing stays of what a program leaves running", () => {
  test.each(Object.entries(STAYING))("%s: when the program ends", async (_, text) => {
    useRealTime(text);
    const end = await start(script(staying(text))).ended;
    expect([end, hold.isFree(), existsSync(path.join(work, "e"))]).toEqual([ended, true, false]);
    const all = await lines();
    expect(all.at(-1)).toMatch(/^gateway: It left \d+ process(es)? running, which had to end\.$/);
    expect(all.slice(0, -1)).toEqual(["out: up"]);
  });

  test.each(Object.entries(STAYING))("%s: when it is ended", async (_, text) => {
    useRealTime(text);
    const engine = start(script(`${staying(text)}; sleep 1000`));
    await said("out: up");
    const { exitCode, timedOut, detail } = await engine.end();
    expect([exitCode, timedOut, detail, hold.isFree()]).toEqual([null, false, "It was ended by SIGTERM.", true]);
    expect([await lines(), readdirSync(work)]).toEqual([["out: up"], []]);
  });

  // Without the variable, nothing but the gateway's own memory tells whose it is.
  const { "without the variable in its environment": _, ...known } = STAYING;
  test.each(Object.entries(known))("%s: when the gateway was killed", async (_, text) => {
    useRealTime(text);
    const program = [bundle, work, path.join(home, "logs"), ...script(`${staying(text)}; sleep 1000`).slice(2)];
    const gateway = spawn(process.execPath, program, { env: { ...process.env, HOLD: hold.path }, stdio: "inherit" });
    onTestFinished(() => void gateway.kill("SIGKILL"));
    await said("out: up");
    const exit = once(gateway, "exit");
    gateway.kill("SIGKILL");
    await exit;
    expect([hold.isFree(), readdirSync(work)]).toEqual([false, ["e"]]);
    expect(await processes.endLeft([])).toEqual([]);
    expect([hold.isFree(), readdirSync(work), await lines()]).toEqual([true, [], ["out: up"]]);
  });

  test("of other executions nothing is ended", async () => {
    const other = start(script("echo up; sleep 1000"), { id: "other" });
    await said("out: up");
    const end = await start(["sh", "-c", "sleep 1000 &"]).ended;
    expect([end, hold.isFree()]).toEqual([ended, false]);
    await other.end();
  });
});

test("what is told to end may do so in its own way, and is not waited for longer than it takes", async () => {
  // By commands that are begun then.
  const tidy = "(trap 'sleep 0.1 && echo tidied; exit' TERM; echo up; while :; do sleep 0.01; done) &";
  const engine = start(script(`trap 'wait; exit 5' TERM; ${tidy} wait`));
  await said("out: up");
  expect(await engine.end()).toEqual({ ...ended, exitCode: 5 });
  expect((await lines()).filter((line) => line.startsWith("out"))).toEqual(["out: up", "out: tidied"]);
});

test("a program that runs longer than it may is told to end, and killed when it does not", async () => {
  const clock = { told: 0, killed: 0 };
  const engine = start(script("trap 'echo told' TERM; while :; do sleep 0.01; done"), { timeLimitMs: 6000 });
  void said("out: told").then(() => {
    clock.told = millisecondsOf(quickClock.elapsed());
  });
  const end = await engine.ended;
  clock.killed = millisecondsOf(quickClock.elapsed());
  const detail = "It ran longer than its time limit of 6 s.";
  expect([end, hold.isFree()]).toEqual([{ exitCode: null, timedOut: true, detail }, true]);
  // Once. The sleep of that moment may say that it was ended.
  expect((await lines()).filter((line) => line.startsWith("out"))).toEqual(["out: told"]);
  expect(clock.killed - clock.told).toBeGreaterThan(TERM_GRACE_MS / 2);
});

test("a grace that was given is made shorter by a later one, and never longer", async () => {
  const engine = start(script("trap '' TERM; echo up; while :; do sleep 0.01; done"));
  await said("out: up");
  void engine.end(10 * 3_600_000);
  const began = quickClock.elapsed();
  expect(await engine.end(0)).toMatchObject({ detail: "It was ended by SIGKILL." });
  expect(minus(quickClock.elapsed(), began)).toBeLessThan(3_600_000);
});

test("a program that is ended before it has begun ends all the same", async () => {
  expect((await start(script("sleep 1000")).end()).exitCode).toBe(null);
  expect(hold.isFree()).toBe(true);
});

test("what a program prints without end neither stops it nor fills the disk", async () => {
  const size = 300 * 2 ** 20;
  const engine = start(["sh", "-c", `yes abcdefg | head -c ${size}; echo done >&2; exit 4`]);
  expect(await engine.ended).toEqual({ ...ended, exitCode: 4 });
  const count = await logs.count("e");
  const [last] = await logs.lines("e", count - 1, 1);
  expect([last?.stream, last?.text]).toEqual(["gateway", expect.stringMatching(/^The log is full/)]);
  expect(logs.bytes("e")).toBe(size + "done\n".length);
});

test("a pipe that somebody else holds open keeps no execution from its end", async () => {
  const engine = start(script("echo $$; echo last; sleep 1000"));
  await said("out: last");
  const [first = ""] = await lines();
  const other = openSync(`/proc/${first.replace("out: ", "")}/fd/1`, constants.O_WRONLY);
  onTestFinished(() => closeSync(other));
  expect(await engine.end()).toMatchObject({ detail: "It was ended by SIGTERM." });
  expect(await lines()).toEqual([first, "out: last"]);
});

test("what is mounted in its folder is not emptied with it", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("mounting needs root");
  const place = path.join(work, "e", "drive");
  await start(["sh", "-c", "mkdir drive && mount -t tmpfs tmpfs drive && echo kept > drive/file"]).ended;
  onTestFinished(() => {
    if (readFileSync("/proc/self/mountinfo", "utf8").includes(place)) execFileSync("umount", ["-l", place]);
  });
  expect(readFileSync(path.join(place, "file"), "utf8")).toBe("kept\n");
  expect(await lines()).toEqual([
    `gateway: Its folder ${path.join(work, "e")} is kept: something is mounted at ${place}.`,
  ]);
  execFileSync("umount", [place]);
  await openProcesses().endLeft([]);
  expect(readdirSync(work)).toEqual([]);
});

test("when there is no time left, no process stays stopped", async () => {
  const child = spawn("sleep", ["1000"], { env: { ...process.env, WSFS_EXECUTION: "hurried" }, stdio: "ignore" });
  const ended = once(child, "exit");
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  let now = elapsedTime(0);
  const elapsed = () => {
    now = plus(now, 6_000);
    return now;
  };
  const clock: Clock = { ...systemClock, elapsed };
  const ours = { isExecution: (id: string) => id === "hurried" };
  expect(await endProcesses(clock, ours, () => elapsedTime(0))).toEqual({ found: 0, left: [] });
  expect(await ended).toEqual([null, "SIGKILL"]);
});

/**
 * What comes and goes elsewhere leaves no rows and no files in a mount whose kernel was never told of it; what a program
 * holds stays as it was. Rounds of asking the kernel (engine/files/lookup-probe.ts) are shortened.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { spawnUntilLine, until } from "../support/child.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";

const WAIT_MS = 90_000;

let place: Place;
let here: TestMount;
let there: TestMount;

beforeAll(async () => {
  place = createPlace();
  const gateway = await place.gateway();
  here = await place.mount(gateway, { name: "here" });
  there = await place.mount(gateway, { name: "there", args: ["--shorten-waits", "20"] });
});
afterAll(() => place.cleanUp());

interface Left {
  readonly nameless: number;
  readonly superseded: number;
  readonly files: number;
}

/** By copies of its rows: the daemon has the database for itself. Undefined: they were changed while they were copied. */
function leftIn({ stateDir }: TestMount): Left | undefined {
  const copy = place.path("copy");
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy);
  for (const suffix of ["", "-wal"]) {
    const file = `metadata.db${suffix}`;
    if (existsSync(join(stateDir, file))) copyFileSync(join(stateDir, file), join(copy, file));
  }
  const database = openSqlite(join(copy, "metadata.db"));
  try {
    const count = (table: string) => database.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    const live = readdirSync(join(stateDir, "live"), { recursive: true, withFileTypes: true });
    const files = live.filter((one) => one.isFile()).length;
    return { nameless: count("nameless"), superseded: count("superseded"), files };
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

async function comesToLeave(left: Left): Promise<void> {
  let last: Left | undefined;
  const isSo = async () => {
    last = leftIn(there) ?? last;
    return JSON.stringify(last) === JSON.stringify(left);
  };
  await until(`this is left: ${JSON.stringify(left)}`, isSo, WAIT_MS).catch((error: unknown) => {
    throw new Error(`left: ${JSON.stringify(last)}`, { cause: error });
  });
}

const sees = (isSo: string) =>
  until(`in the other mount: ${isSo}`, async () => (await there.sh(isSo)).code === 0, WAIT_MS);

/** One file is open, another one is only known by its inode; "ready", and what they are after "go" is there. */
const HOLD = `
import os, sys, time
folder, go = sys.argv[1:]
file = open(folder + "/open")
path = os.open(folder + "/known", os.O_PATH)
print("ready", flush=True)
until = time.monotonic() + 300
while not os.path.exists(go):
    if time.monotonic() > until: sys.exit("never told to go on")
    time.sleep(0.05)
print(file.read(), os.fstat(file.fileno()).st_size, os.fstat(path).st_size)
`;

/** Made and removed there, without anybody looking here. */
async function comeAndGo(): Promise<void> {
  const drain = async () => check(await place.wsfs(["drain", here.dir, "--timeout", "60"]));
  check(await here.sh("for i in $(seq 30); do printf text > in/f$i; done"));
  await drain();
  check(await here.sh("touch in/last"));
  await sees("[ -f in/last ]");
  check(await here.sh("rm in/f*"));
  await drain();
  check(await here.sh("rm in/last"));
  await sees("[ ! -e in/last ]");
}

test("files that come and go in a folder that was listed once leave nothing; what is held stays", async () => {
  check(await here.sh("mkdir in held; printf 'open here' > held/open; printf known > held/known"));
  await sees("[ -f held/known ] && [ $(stat -c %s held/open) = 9 ] && [ $(stat -c %s held/known) = 5 ]");
  check(await there.sh("ls -l in"));
  const go = place.path("go");
  const args = ["-c", HOLD, join(there.dir, "held"), go];
  const holding = await spawnUntilLine("/usr/bin/python3", args, { env: place.env });
  expect(holding.line).toBe("ready");

  await comeAndGo();
  check(await here.sh("rm -r held"));
  await sees("[ ! -e held ]");
  await until("they are kept for as long as the kernel may know them", () => (leftIn(there)?.nameless ?? 0) > 2);
  // Both of the held ones, each with the kernel node id it had before it lost its name, their folder, and the bytes of the
  // open one.
  await comesToLeave({ nameless: 3, superseded: 2, files: 1 });

  writeFileSync(go, "");
  const { stderr, stdout } = await holding.ended;
  expect([stderr, stdout]).toEqual(["", "ready\nopen here 9 5\n"]);
  await comesToLeave({ nameless: 0, superseded: 0, files: 0 });
  expect((await there.sh("ls -A")).stdout).toBe("in\n");
});

test("what a daemon leaves that dies goes with the next one, which knows as little of what the kernel was told", async () => {
  await comeAndGo();
  process.kill(there.pid, "SIGKILL");
  expect((await there.sh("ls -A in")).stdout).toBe("");
  expect((await there.status()).pid).not.toBe(there.pid);
  await comesToLeave({ nameless: 0, superseded: 0, files: 0 });
});

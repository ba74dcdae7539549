/**
 * Two mounts of one workspace, edited in turn, behind a gateway whose listings and journal are late:
 * each turn's edits are drawn by a seed and made on a plain folder too, which says what must be
 * shown. After a turn is drained both mounts show exactly that, and in the end the gateway does.
 * In one turn the daemon is killed with everything unsent, and its successor after its first answer.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, until } from "../../support/child.ts";
import { drawSeed } from "../../support/seed.ts";
import { check, mountsBelow, type Place, type TestMount } from "../../support/wsfs.ts";
import { PYTHON_KNOWN } from "./known.ts";
import { type Contents, contentsOf, readGateway, readTree } from "./tree.ts";

const DIE_AT_STEP = fileURLToPath(new URL("../../support/die-at-step.mjs", import.meta.url));
const LATE = ["--path-lag", "600+400", "--journal-lag", "900+600"];
const NAMES = ["one", "two"] as const;
const EDITS = 25;
const LIMIT_MS = 120_000;

/** `argv`: folder, seed, count. What it does depends on the seed and on the names that are there. */
const EDIT = `
import ctypes, os, random, shutil, sys
folder, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
chance = random.Random(seed)
os.chdir(folder)
${PYTHON_KNOWN}
def write(path, flags=os.O_TRUNC):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    for _ in range(chance.randint(1, 3)): os.write(fd, chance.randbytes(chance.choice([0, 20, 3000, 90_000])))
    if chance.random() < 0.2: os.fsync(fd)
    os.close(fd)
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError(ctypes.get_errno(), "renameat2")
for number in range(count):
    files, folders = known()
    place = chance.choice(folders)
    fresh = os.path.join(place, f"n{chance.randrange(12)}")
    kind = chance.choice(["new", "new", "write", "append", "save", "save", "move", "delete", "folder", "move folder", "rmtree",
        "exchange", "link", "exclusive"])
    if kind == "new" or len(files) < 4:
        if not os.path.isdir(fresh): write(fresh)
    elif kind == "write": write(chance.choice(files))
    elif kind == "append": write(chance.choice(files), os.O_APPEND)
    elif kind == "save":
        path = chance.choice(files)
        write(path + ".tmp"); os.rename(path + ".tmp", path)
    elif kind == "move":
        if not os.path.isdir(fresh): os.rename(chance.choice(files), fresh)
    elif kind == "delete": os.unlink(chance.choice(files))
    elif kind == "exchange":
        a, b = chance.choice(files), chance.choice(files)
        if a != b: exchange(a, b)
    elif kind == "link":
        if not os.path.lexists(fresh): os.link(chance.choice(files), fresh)
    elif kind == "exclusive":
        try: write(fresh, os.O_EXCL)
        except FileExistsError: pass
    elif kind == "folder":
        path = os.path.join(place, f"d{chance.randrange(6)}")
        if len(folders) < 8 and not os.path.exists(path): os.mkdir(path)
    else:
        path = chance.choice(folders)
        target = os.path.join(place, f"d{chance.randrange(6)}")
        if path == ".": continue
        if kind == "rmtree": shutil.rmtree(path)
        elif not os.path.exists(target) and not (target + "/").startswith(path + "/"): os.rename(path, target)
`;

export interface Turns {
  readonly chance: () => number;
  /** Asked before each turn, with how many there were. */
  readonly goesOn: (turns: number) => boolean;
  /** In which turns what serves the mount dies. */
  readonly isKilled: (turn: number) => boolean;
}

/** Answers how many turns there were; throws when something else is shown than was left. */
export async function takeTurns(place: Place, { chance, goesOn, isKilled }: Turns): Promise<number> {
  const gateway = await place.gateway({ args: LATE });
  const plain = place.path("plain");
  mkdirSync(plain);
  const mounts = new Map<string, TestMount>();
  for (const name of NAMES) mounts.set(name, await place.mount(gateway, { name, args: ["--no-restart"] }));
  let turn = 0;

  const mounted = (name: string): TestMount => {
    const mount = mounts.get(name);
    if (mount === undefined) throw new Error(`${name} is not mounted`);
    return mount;
  };

  /** Killed, with what was saved last unsent; whoever sends it dies after the first answer, and is followed by one who lives. */
  async function die(name: string): Promise<void> {
    const { dir, pid } = mounted(name);
    const isGone = () => !mountsBelow(place.folder).some(({ mountpoint }) => mountpoint === dir);
    // Saved right before: what the turn left may all have been sent by now on a slow machine.
    const last = `turn ${turn}`;
    writeFileSync(join(plain, "last"), last);
    check(await place.sh(`printf '%s' '${last}' > '${dir}/last' && kill -9 ${pid}`));
    await until("the mount of the killed daemon is gone", isGone, LIMIT_MS);
    const mark = place.path(`died-${turn}`);
    const armed = { NODE_OPTIONS: `--import ${DIE_AT_STEP}`, WSFS_DIE_AT: "request: answered", WSFS_DIE_ONCE: mark };
    Object.assign(place.env, armed);
    // It may be dead before the command has seen it serve.
    await place.mount(gateway, { name, args: ["--no-restart"] }).catch(() => undefined);
    delete place.env.NODE_OPTIONS;
    await until("its successor dies, too", () => existsSync(mark), LIMIT_MS);
    await until("the mount of the successor is gone", isGone, LIMIT_MS);
    mounts.set(name, await place.mount(gateway, { name, args: ["--no-restart"] }));
  }

  /** While remote changes take place, a name may vanish between its listing and its reading. */
  async function shows(mount: TestMount, expected: Contents): Promise<void> {
    const look = async () => contentsOf(await readTree(place, mount.dir));
    const isShown = async () => JSON.stringify(await look().catch(() => undefined)) === JSON.stringify(expected);
    await until("both show the same", isShown, LIMIT_MS).catch(async () => assert.deepEqual(await look(), expected));
  }

  for (; goesOn(turn); turn += 1) {
    const name = NAMES[turn % NAMES.length] ?? NAMES[0];
    const seed = String(drawSeed(chance));
    for (const folder of [plain, mounted(name).dir]) {
      const args = ["-c", EDIT, folder, seed, String(EDITS)];
      check(await run("/usr/bin/python3", args, { env: place.env, timeoutMs: LIMIT_MS }));
    }
    let left = contentsOf(await readTree(place, plain));
    assert.deepEqual(contentsOf(await readTree(place, mounted(name).dir)), left, `turn ${turn}, as left`);
    if (isKilled(turn)) {
      await die(name);
      left = contentsOf(await readTree(place, plain));
      assert.deepEqual(contentsOf(await readTree(place, mounted(name).dir)), left, `turn ${turn}, after the kill`);
    }
    check(await place.wsfs(["drain", mounted(name).dir, "--timeout", "180"], { timeoutMs: 200_000 }));
    for (const mount of mounts.values()) await shows(mount, left);
  }
  for (const mount of mounts.values()) {
    const { dirty, parked, conflicts } = await mount.status();
    assert.deepEqual({ dirty, parked, conflicts }, { dirty: 0, parked: 0, conflicts: 0 });
  }
  assert.deepEqual(await readGateway(place, gateway), contentsOf(await readTree(place, plain)));
  for (const mount of mounts.values()) await mount.umount();
  return turn;
}

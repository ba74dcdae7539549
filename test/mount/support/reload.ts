/** A program on a mount whose daemons change: it has files open all the time, and changes everything in turn. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { until } from "../../support/child.ts";
import { check, type Place, type TestMount } from "../../support/wsfs.ts";

const INSTALLED = fileURLToPath(new URL("installed.mjs", import.meta.url));

/** Writes, syncs, renames and lists in turn, with its files open all the time; at the end it says what there is. */
const PROGRAM = `
import mmap, os, sys, time
flag, beat = sys.argv[1:3]
os.mkdir("tree")
written = os.open("tree/written", os.O_RDWR | os.O_CREAT | os.O_APPEND)
mapped = os.open("tree/mapped", os.O_RDWR | os.O_CREAT)
os.ftruncate(mapped, 8192)
memory = mmap.mmap(mapped, 8192)
known = os.open("known", os.O_RDONLY)
far = os.open("far", os.O_RDONLY)
listed = os.open("listed", os.O_RDONLY | os.O_DIRECTORY)
turns = 0
while not os.path.exists(flag):
    line = b"%08d\\n" % turns
    os.write(written, line)
    os.fsync(written)
    assert os.pread(written, 9, 9 * turns) == line
    memory[turns % 8192] = turns % 251
    with open("tree/new", "wb") as new: new.write(line)
    os.rename("tree/new", "tree/name-%d" % (turns % 20))
    assert open("tree/name-%d" % (turns % 20), "rb").read() == line
    assert os.pread(known, 6, 0) == b"known\\n"
    assert os.pread(far, 10, turns % 100 * 10000) == b"0123456789"
    assert len(os.listdir(listed)) == 30
    turns += 1
    with open(beat, "w") as out: out.write(str(turns))
    # The daemon that comes needs the processor, too.
    time.sleep(0.01)
assert os.fstat(written).st_size == 9 * turns
assert os.pread(written, 9 * turns, 0) == b"".join(b"%08d\\n" % i for i in range(turns))
print(turns, sorted(os.listdir("tree")) == sorted(["written", "mapped"] + ["name-%d" % i for i in range(min(turns, 20))]))
`;

export interface ProgramAtWork {
  /** Resolves when it has made some more turns. */
  goesOn(): Promise<void>;
  /** Ends it; fails when it saw an error. */
  end(): Promise<void>;
}

/** What the program needs that is not of its own making. */
export async function makeFiles(mount: TestMount): Promise<void> {
  const far = "yes 0123456789 | tr -d '\\n' | head -c 1000000 > far";
  check(await mount.sh(`${far}; mkdir listed; touch listed/{1..30}; echo known > known`));
}

/** After makeFiles(), here or in an earlier mount. */
export async function work(place: Place, mount: TestMount): Promise<ProgramAtWork> {
  const [flag, beat] = [place.path("flag"), place.path("beat")];
  writeFileSync(place.path("program.py"), PROGRAM);
  const command = `/usr/bin/python3 '${place.path("program.py")}' '${flag}' '${beat}'`;
  const program = mount.sh(command, { timeoutMs: 900_000 });
  let over: string | undefined;
  void program.then(({ code, signal, stdout, stderr }) => {
    over = `exit code ${code} (${signal})\n${stdout}${stderr}`;
  });
  const turns = () => (existsSync(beat) ? Number(readFileSync(beat, "utf8")) : 0);
  const goesOn = async () => {
    const before = turns();
    await until("the program goes on", () => {
      if (over !== undefined) throw new Error(`the program ended at turn ${turns()}: ${over}`);
      return turns() > before + 3;
    });
  };
  await goesOn();
  return {
    goesOn,
    async end() {
      writeFileSync(flag, "");
      expect(check(await program).stdout).toMatch(/^\d+ True\n$/);
    },
  };
}

/**
 * For the daemons that are started from now on: answers how to say what is wrong with the program (installed.mjs),
 * and that answers whether it still is.
 */
export function install(place: Place): (wrong: string) => () => boolean {
  const file = place.path("installed");
  Object.assign(place.env, { NODE_OPTIONS: `--import ${INSTALLED}`, WSFS_INSTALLED: file });
  return (wrong) => {
    writeFileSync(file, wrong);
    return () => existsSync(file);
  };
}

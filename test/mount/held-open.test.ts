/**
 * A program keeps files open for writing, or mapped, that others save, replace and remove through another mount: all
 * other programs see that at once. It goes on with its bytes, also when the daemon is killed, and what it writes then is
 * kept beside, also when the mount ends before that is sent.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";
import { killDaemon } from "./support/replaced.ts";

let place: Place;
let holder: ChildProcess | undefined;
beforeEach(() => {
  place = createPlace();
});
afterEach(async () => {
  holder?.kill("SIGKILL");
  await place.cleanUp();
});

/** Has the files open and one mapped. At each line it reads or writes all of them; says what it read. */
const HOLDER = `
import mmap, os, sys
os.chdir(sys.argv[1])
files = {name: os.open(name, os.O_RDWR) for name in ["saved", "replaced", "removed"]}
fd = os.open("mapped", os.O_RDWR)
mapped = mmap.mmap(fd, 4)
os.close(fd)
print("open", flush=True)
for line in sys.stdin:
    text = line.strip().encode()
    if text != b"read":
        for fd in files.values(): os.pwrite(fd, text, 0)
        mapped[0:4] = text
        # Until then the kernel keeps it, where it does not write to the file itself.
        if "--no-passthrough" in sys.argv: mapped.flush()
    found = [os.pread(fd, 4, 0) for fd in files.values()] + [mapped[0:4]]
    print(*sorted({found.decode().strip() for found in found}), flush=True)
`;

async function hold(mount: TestMount, args: readonly string[]): Promise<(line: string) => Promise<string>> {
  const child = spawn("/usr/bin/python3", ["-c", HOLDER, mount.dir, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  holder = child;
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  expect(await next()).toBe("open");
  return (line) => {
    child.stdin.write(`${line}\n`);
    return next();
  };
}

/** A line for each file: its name without the time, and what is in it. */
const SHOW = `for f in *; do echo "$f $(cat "$f")"; done | sed 's/ (conflict, [^)]*)/-conflict/' | sort`;
const show = async (mount: TestMount) =>
  check(await mount.sh(SHOW))
    .stdout.trim()
    .split("\n");
const drain = async (mount: TestMount) =>
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));

test.each([["passthrough"], ["served by the daemon", "--no-passthrough"]])(
  "%s: a file that is open hides no remote change, and what is written to it is kept",
  { timeout: 240_000 },
  async (_, ...args) => {
    const gateway = await place.gateway();
    const here = await place.mount(gateway, { name: "here", args });
    const there = await place.mount(gateway, { name: "there" });
    check(await there.sh("for n in saved replaced removed mapped; do echo one >$n; done"));
    const comes = (lines: readonly string[]) =>
      until(`it shows ${lines}`, async () => `${await show(here)}` === `${lines}`);
    await comes(["mapped one", "removed one", "replaced one", "saved one"]);
    const tell = await hold(here, args);
    check(await there.sh("echo two >saved; echo two >.t; mv .t replaced; rm removed; echo two >mapped"));
    const theirs = ["mapped two", "replaced two", "saved two"];
    await comes(theirs);
    expect(await tell("read")).toBe("one");

    // It is said which files those are, and who has them.
    const program = { pid: holder?.pid, command: "python3" };
    const held = (path: string, isRemoved: boolean) => ({ path, isRemoved, isWritten: false, programs: [program] });
    const told = check(await place.wsfs(["status", here.dir, "--json"])).stdout;
    const { overtaken } = JSON.parse(told) as { overtaken: unknown };
    const all = ["/mapped", "/removed", "/replaced", "/saved"].map((path) => held(path, path === "/removed"));
    expect(overtaken).toHaveLength(all.length);
    expect(overtaken).toEqual(expect.arrayContaining(all.map((one) => expect.objectContaining(one))));
    const { stdout } = check(await place.wsfs(["status", here.dir]));
    expect(stdout).toContain(`held open  /saved: python3 (pid ${holder?.pid}) has it open for writing as it was`);

    // Who edits what is shown, as editors do, is in no conflict.
    check(await here.sh("echo edited >.t; mv .t saved"));
    await killDaemon(place, here);
    expect(await tell("read")).toBe("one");
    expect(await tell("left")).toBe("left");
    await killDaemon(place, here);
    await drain(here);
    const kept = (text: string) => [
      ...[`mapped two`, `mapped-conflict ${text}`, `removed ${text}`, "replaced two", `replaced-conflict ${text}`],
      ...["saved edited", `saved-conflict ${text}`],
    ];
    expect(await show(here)).toEqual(kept("left"));
    await until("the other mount shows it", async () => `${await show(there)}` === `${kept("left")}`);
    // It has them open still: what it writes now are versions of those, sent by the next mount.
    expect(await tell("more")).toBe("more");
    expect((await here.status()).overtaken).toBeUndefined();
    holder?.kill("SIGKILL");
    await here.umount();
    const again = await place.mount(gateway, { name: "here", args });
    expect(await show(again)).toEqual(kept("more"));
    await drain(again);
    await until("the other mount shows it too", async () => `${await show(there)}` === `${kept("more")}`);
    await again.umount();
    await there.umount();
  },
);

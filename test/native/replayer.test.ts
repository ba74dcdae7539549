/** The program that does others' changes once more: here in a folder of a file system in memory, which has a number as a mount has. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
} from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { compiled } from "../../src/lib/compiled.ts";
import { run } from "../support/child.ts";

const IN_MEMORY = "/dev/shm";
const { EINVAL, EEXIST, ENODEV, ENOENT, ELOOP, EXDEV, EOPNOTSUPP } = constants.errno;
const isThere = existsSync(IN_MEMORY);

let folder: string;
let connection: string;
beforeEach(() => {
  folder = mkdtempSync(join(isThere ? IN_MEMORY : "/tmp", "wsfs-replayer-"));
  connection = String(statSync(folder).dev % 256);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Its answers to these commands, one a line. */
async function replay(commands: readonly (readonly string[])[], number = connection): Promise<string[]> {
  const input = commands.map((words) => Array.from({ length: 5 }, (_, i) => `${words[i] ?? ""}\0`).join("")).join("");
  const { code, stdout, stderr } = await run(compiled("wsfs-replayer"), [folder, number, String(process.pid)], {
    input,
  });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.split("\n").slice(0, -1);
}

it.skipIf(!isThere)("makes, moves, touches and removes what it is told to", async () => {
  const answers = await replay([
    ["made", "", "folder", "folder"],
    ["made", "folder", "file", "file"],
    ["made", "folder", "link", "symlink"],
    ["made", "folder", "pipe", "fifo"],
    ["made", "folder", "socket", "socket"],
    ["attributes", "folder", "file"],
    ["written", "folder", "file"],
    ["closed", "folder", "file"],
    ["look", "folder", "file"],
    ["moved", "folder", "file", "", "moved"],
    ["gone", "folder", "link", "symlink"],
  ]);
  expect(answers).toEqual(Array(11).fill("0"));
  expect(readdirSync(folder).sort()).toEqual(["folder", "moved"]);
  expect(readdirSync(join(folder, "folder")).sort()).toEqual(["pipe", "socket"]);
  expect(lstatSync(join(folder, "folder/pipe")).isFIFO()).toBe(true);
});

it.skipIf(!isThere)("does nothing outside of the mount, nor of what it does not know", async () => {
  mkdirSync(join(folder, "in"));
  symlinkSync(folder, join(folder, "link"));
  const answers = await replay([
    ["made", "", "../out", "file"],
    ["made", "", "..", "folder"],
    ["made", "", "", "file"],
    ["moved", "", "in", "", "a/b"],
    ["made", "..", "out", "file"],
    ["made", "link", "out", "file"],
    ["made", "none", "out", "file"],
    ["made", "", "in", "folder"],
    ["made", "", "out", "door"],
    ["open", "", "in"],
    ["", "", "in"],
    ["closed", "", "link"],
  ]);
  const expected = [EINVAL, EINVAL, EINVAL, EINVAL, EXDEV, ELOOP, ENOENT, EEXIST, EOPNOTSUPP, EINVAL, EINVAL, ELOOP];
  expect(answers.map(Number)).toEqual(expected);
  expect(readdirSync(folder).sort()).toEqual(["in", "link"]);
  expect(await replay([["made", "", "out", "file"]], "999999")).toEqual([String(ENODEV)]);
});

it.skipIf(!isThere)("ends with its input, in the middle of a command or of one that is too long", async () => {
  const program = [compiled("wsfs-replayer"), [folder, connection, String(process.pid)]] as const;
  const half = await run(...program, { input: "made\0\0half\0" });
  const long = await run(...program, { input: `made\0${"x".repeat(20_000)}\0\0\0\0` });
  expect([half.code, half.stdout, long.code, long.stdout]).toEqual([0, "", 0, ""]);
  expect(readdirSync(folder)).toEqual([]);
});

it.skipIf(!isThere)("tells which inodes of the mount are watched, by whichever process", async () => {
  const watcher = watch(folder, () => {});
  onTestFinished(() => watcher.close());
  const [watched = ""] = await replay([["watched"]]);
  expect(watched.split(" ").map(Number)).toContain(statSync(folder).ino);
});

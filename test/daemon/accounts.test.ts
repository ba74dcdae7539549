/** Accounts of the machine: what is remembered for how long, and how those of this one are found. */
import { beforeEach, expect, test } from "vitest";
import { createAccounts, createFind, type FindAccount } from "../../src/daemon/accounts.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";
import type { Logger } from "../../src/lib/log.ts";

const MINUTE_MS = 60_001;
const LOG: Logger = { debug() {}, info() {}, warn() {}, error() {}, isLevelEnabled: () => false };

let lines: string[];
let asked: string[];
let changes: number;
let failure: Error | undefined;
let now: number;

const find: FindAccount = async (kind, by, key) => {
  asked.push(`${kind} ${by} ${key}`);
  if (failure !== undefined) throw failure;
  return lines.find((line) => line.split(":")[by === "name" ? 0 : 2] === key);
};
const begin = () => createAccounts({ log: LOG, elapsed: () => elapsedTime(now), onChange: () => changes++, find });
const settled = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  lines = ["root:x:0:0:root", "alice:x:1001:1001"];
  asked = [];
  changes = 0;
  failure = undefined;
  now = 1_000;
});

test("an account is asked for once, however many want to know, and that there is none is remembered too", async () => {
  const accounts = begin();
  const wanted = Array.from({ length: 5 }, () => accounts.numberOf("user", "alice"));
  expect(await Promise.all(wanted)).toEqual([1001, 1001, 1001, 1001, 1001]);
  expect(await accounts.nameOf("user", 0)).toBe("root");
  for (let i = 0; i < 3; i += 1) expect(await accounts.numberOf("user", "bob")).toBe(undefined);
  expect(asked).toEqual(["user name alice", "user number 0", "user name bob"]);
});

test("an old answer is given at once while it is asked for again, and a change is told", async () => {
  const accounts = begin();
  expect([await accounts.numberOf("user", "alice"), await accounts.numberOf("user", "bob")]).toEqual([1001, undefined]);
  now += MINUTE_MS;
  await accounts.numberOf("user", "alice");
  await settled();
  expect([asked.length, changes]).toEqual([3, 0]);
  lines = ["alice:x:1002:", "bob:x:7:"];
  now += MINUTE_MS;
  expect([await accounts.numberOf("user", "alice"), await accounts.numberOf("user", "bob")]).toEqual([1001, undefined]);
  await settled();
  expect(changes).toBe(2);
  expect([await accounts.numberOf("user", "alice"), await accounts.numberOf("user", "bob")]).toEqual([1002, 7]);
});

test("where it cannot be found out, what was known counts, else who asks is told so, and it is tried again soon", async () => {
  const accounts = begin();
  await accounts.numberOf("user", "alice");
  failure = new Error("no answer");
  now += MINUTE_MS;
  expect(await accounts.numberOf("user", "alice")).toBe(1001);
  await settled();
  expect(await accounts.numberOf("user", "alice")).toBe(1001);
  await expect(accounts.numberOf("user", "bob")).rejects.toThrow("could not be looked up");
  await expect(accounts.numberOf("user", "bob")).rejects.toThrow("could not be looked up");
  await expect(accounts.numberOf("user", "carol")).rejects.toThrow("could not be looked up");
  expect(asked).toEqual(["user name alice", "user name alice", "user name bob", "user name carol"]);
  failure = undefined;
  lines.push("bob:x:7:");
  now += 10_001;
  for (const name of ["bob", "carol"]) await accounts.numberOf("user", name).catch(() => {});
  await settled();
  // What was shown as nobody's is somebody's, or the number it has.
  expect([await accounts.numberOf("user", "bob"), await accounts.numberOf("user", "carol"), changes]).toEqual([
    7,
    undefined,
    2,
  ]);
});

test.each([
  ["of another account: digits are a number to getent", "name", "0", "root:x:0:0"],
  ["of another account, by number", "number", 5, "root:x:0:0"],
  ["without a number", "name", "alice", "alice:x::"],
  ["that stands for a directory", "name", "+", "+::::::"],
  ["without a name", "number", 0, ":x:0:0"],
])("a line %s is none", async (_, by, key, line) => {
  const accounts = createAccounts({ log: LOG, elapsed: () => elapsedTime(now), onChange() {}, find: async () => line });
  const answer = by === "name" ? accounts.numberOf("group", String(key)) : accounts.nameOf("group", Number(key));
  expect(await answer).toBe(undefined);
});

test("this machine knows root by name and number, and nobody whose name is made to be taken for an option", async () => {
  const { signal } = new AbortController();
  const findAccount = createFind(() => elapsedTime(now));
  for (const kind of ["user", "group"] as const) {
    expect(await findAccount(kind, "name", "root", signal)).toMatch(/^root:[^:]*:0:/);
    expect(await findAccount(kind, "number", "0", signal)).toMatch(/^root:/);
    for (const name of ["--help", "no such account", "a\0b", "4294967294"]) {
      expect(await findAccount(kind, "name", name, signal), name).toBe(undefined);
    }
  }
});

test("after a directory that does not answer nobody waits for it again soon, and who is in the files is found", async () => {
  const { signal } = new AbortController();
  const findAccount = createFind(
    () => elapsedTime(now),
    async (_, key) => {
      asked.push(key);
      throw new Error("no answer");
    },
  );
  await expect(findAccount("user", "name", "one of afar", signal)).rejects.toThrow("no answer");
  await expect(findAccount("user", "name", "another", signal)).rejects.toThrow("a moment ago");
  expect(await findAccount("user", "name", "root", signal)).toMatch(/^root:/);
  now += 10_001;
  await expect(findAccount("user", "name", "another", signal)).rejects.toThrow("no answer");
  expect(asked).toEqual(["one of afar", "another"]);
});

test("what is still being looked up ends with the mount", async () => {
  let signal: AbortSignal | undefined;
  const accounts = createAccounts({
    log: LOG,
    elapsed: () => elapsedTime(now),
    onChange() {},
    find: (_, __, ___, given) =>
      new Promise((_resolve, reject) => {
        signal = given;
        given.addEventListener("abort", () => reject(new Error("over")));
      }),
  });
  const asking = accounts.nameOf("user", 1001);
  await settled();
  expect(signal?.aborted).toBe(false);
  accounts.close();
  await expect(asking).rejects.toThrow("could not be looked up");
});

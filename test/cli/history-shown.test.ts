/** A command that changed the gateway ends when programs in its mount see that, although the journal tells of it late. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { finished, until } from "../support/child.ts";
import { check } from "../support/wsfs.ts";
import { createHistory, type History } from "./support/history.ts";

const LAG_MS = 1_500;
/** The journal tells nothing before the test is over. */
const LONG_MS = 300_000;

let history: History;
beforeAll(async () => {
  history = await createHistory(["--journal-lag", String(LAG_MS), "--faults"]);
}, 60_000);
afterAll(() => history?.end());

/** Names and contents of all files, at this moment. */
const seen = async () => check(await history.mount.sh("grep -r '' . | sort")).stdout;

test("undo, undelete and restore end when the mount shows what they did", async () => {
  await history.work("mkdir d; echo one > d/a; echo two > d/b");
  const then = new Date().toISOString();
  const before = await seen();
  await history.work("echo more >> d/a");
  const after = await seen();
  await history.output("restore", "mount/d/a@1");
  expect(await seen()).toBe(before);
  await history.output("restore", "mount/d/a@-1");
  expect(await seen()).toBe(after);
  await history.output("restore", "mount/d", "--at", then, "--yes");
  expect(await seen()).toBe(before);
  await history.work("rm -r d");
  await history.output("undelete", "mount/d");
  expect(await seen()).toBe(before);
  await history.work("rm -r d");
  await history.output("undo", "mount", "--last", "1", "--yes");
  expect(check(await history.mount.sh("ls")).stdout).toBe("d\n");
}, 120_000);

test("a mount that does not show it in time is named", async () => {
  await history.work("echo one > f");
  await history.work("echo two > f");
  await history.setFaults({ journalLagMs: LONG_MS });
  const restored = await history.wsfs("restore", "mount/f@1", "--timeout", "1");
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining("is the newest now") });
  expect(restored.stderr).toBe(
    `wsfs: it is done at the gateway, and ${history.mount.dir} does not show all of it yet\n`,
  );
  await history.setFaults({ journalLagMs: LAG_MS });
  await until("it shows it", async () => check(await history.mount.sh("cat f")).stdout === "one\n");
}, 60_000);

test("a mount that ends before it shows it does not make the command fail", async () => {
  await history.work("echo one > g");
  await history.work("echo two > g");
  await history.setFaults({ journalLagMs: LONG_MS });
  const command = history.place.spawnWsfs(["restore", "mount/g@1"]);
  const ended = finished(command);
  await new Promise((resolve) => command.stdout?.once("data", resolve));
  await history.mount.umount();
  const { code, stderr } = await ended;
  expect([code, stderr]).toEqual([
    0,
    `wsfs: it is done at the gateway, and ${history.mount.dir} does not show all of it yet\n`,
  ]);
}, 60_000);

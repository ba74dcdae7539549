/**
 * The database in the state dir of a real mount is damaged: what programs wrote is there again on the
 * next mount, under its name, arrives once, and everybody is told.
 */
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";
import { childrenAt } from "./support/nodes.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
  // What is kept of a mount that is gone, daemon and all, is shown here.
  place.env.WSFS_NO_RESTART = "1";
});
afterEach(() => place.cleanUp());

/** Its pages are no pages any more, and the log that may have newer ones is gone. */
function damage({ stateDir }: TestMount): void {
  const path = join(stateDir, "metadata.db");
  rmSync(`${path}-wal`);
  writeFileSync(path, Buffer.alloc(statSync(path).size, 0xa5));
}

async function kill(mount: TestMount): Promise<void> {
  process.kill(mount.pid, "SIGKILL");
  await place.wsfs(["umount", mount.dir]);
}

const drain = async (mount: TestMount) => check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
const isDelivered = (mount: TestMount) =>
  until("all is delivered", async () => (await mount.status()).dirty === 0, 60_000);

it("after an unmount: the copy takes its place, offline changes since are there, and it is said", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway);
  check(await first.sh("mkdir d; echo one > d/a; echo two > b"));
  await drain(first);
  await first.umount();
  expect(readdirSync(first.stateDir).filter((name) => name.startsWith("metadata.copy-"))).toHaveLength(1);

  const second = await place.mount(gateway);
  check(await second.sh("echo three > d/a; echo new > d/new; mkdir e; echo deep > e/deep"));
  await kill(second);
  damage(second);

  const third = await place.mount(gateway);
  const shown = "cat d/a b d/new e/deep; ls . d e";
  const wanted = "three\ntwo\nnew\ndeep\n.:\nb\nd\ne\n\nd:\na\nnew\n\ne:\ndeep\n";
  expect(check(await third.sh(shown)).stdout).toBe(wanted);
  expect(await third.status()).toMatchObject({ restored: { files: 3 } });
  const told = check(await place.wsfs(["status", third.dir])).stdout;
  expect(told).toContain("a copy of it was put in its place; 3 changed files brought back");
  expect(readdirSync(join(third.stateDir, "quarantine")).some((name) => name.endsWith(".db"))).toBe(true);
  await isDelivered(third);
  await third.umount();
  expect([...(await childrenAt(gateway, "/d")).keys()].sort()).toEqual(["a", "new"]);

  const other = await place.mount(gateway, { name: "other" });
  expect(check(await other.sh(shown)).stdout).toBe(wanted);
  await other.umount();
});

it("without database and copies: what was not sent comes back by name, the rest from the gateway", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway);
  check(await first.sh("mkdir d; echo sent > d/sent; echo old > d/both"));
  await drain(first);
  check(await first.sh("echo changed > d/both; echo unsent > d/unsent; head -c 3000000 /dev/zero | tr '\\0' x > big"));
  await kill(first);
  for (const name of readdirSync(first.stateDir)) {
    if (name.startsWith("metadata.")) rmSync(join(first.stateDir, name));
  }
  const second = await place.mount(gateway);
  const shown = "cat d/sent d/both d/unsent; wc -c < big; ls . d";
  const wanted = "sent\nchanged\nunsent\n3000000\n.:\nbig\nd\n\nd:\nboth\nsent\nunsent\n";
  expect(check(await second.sh(shown)).stdout).toBe(wanted);
  expect(JSON.stringify(await second.status())).toContain("the database was not there");
  await isDelivered(second);
  await second.umount();
  const other = await place.mount(gateway, { name: "other" });
  expect(check(await other.sh(shown)).stdout).toBe(wanted);
  await other.umount();
});

/** Signals for a program that waits for the mount, whoever serves it by then. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";
import { daemonOf } from "./support/replaced.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** A program that lists a folder, and waits for a gateway that does not answer. */
async function begin() {
  const gateway = await place.gateway();
  const first = await place.mount(gateway);
  check(await first.sh("mkdir far; touch far/{1..3}"));
  check(await first.umount("--drain=60"));
  const mount = await place.mount(gateway, { name: "other", args: ["--log-level", "debug", "--names-ahead=0"] });
  check(await mount.sh("ls"));
  const lines = () => readFileSync(join(mount.stateDir, "daemon.log"), "utf8").split("\n");
  const before = lines().length;
  const logged = (what: string) =>
    lines()
      .slice(before)
      .some((line) => line.includes(what));
  const listed = async () => {
    const { operations } = (await mount.status()) as { operations: Record<string, number> };
    return operations.READDIRPLUS ?? 0;
  };
  const listedBefore = await listed();
  process.kill(gateway.pid, "SIGSTOP");
  const ownPid = place.path("pid");
  const listing = mount.sh(`echo $$ > '${ownPid}'; exec ls far`);
  await until("it waits", async () => (await listed()) > listedBefore);
  const pid = Number(readFileSync(ownPid, "utf8"));
  return {
    listing,
    tell: (signal: NodeJS.Signals) => process.kill(pid, signal),
    goOn: () => process.kill(gateway.pid, "SIGCONT"),
    /** Of the daemon that serves it. */
    signalDaemon: (signal: NodeJS.Signals) => process.kill(daemonOf(place, mount), signal),
    isHeard: () => until("the daemon has heard of it", () => logged('"op":"INTERRUPT"')),
    isGivenUp: () => logged('"result":"EINTR"'),
  };
}

test.each([false, true])("one that is stopped for a while sees nothing of it; the daemon dies: %j", async (dies) => {
  const { listing, tell, goOn, signalDaemon, isHeard, isGivenUp } = await begin();
  // Heard by the daemon after it alone.
  if (dies) signalDaemon("SIGSTOP");
  tell("SIGSTOP");
  if (dies) signalDaemon("SIGKILL");
  await isHeard();
  goOn();
  tell("SIGCONT");
  expect(await listing).toMatchObject({ code: 0, stdout: "1\n2\n3\n" });
  expect(isGivenUp()).toBe(false);
});

test.each([false, true])("one that is told to end does; the daemon dies: %j", async (dies) => {
  const { listing, tell, goOn, signalDaemon, isGivenUp } = await begin();
  if (dies) signalDaemon("SIGSTOP");
  tell("SIGTERM");
  if (dies) signalDaemon("SIGKILL");
  expect(await listing).toMatchObject({ signal: "SIGTERM" });
  await until("its call was given up", isGivenUp);
  goOn();
});

test("one that is stopped can be told to end", async () => {
  const { listing, tell, goOn, isHeard, isGivenUp } = await begin();
  tell("SIGSTOP");
  await isHeard();
  expect(isGivenUp()).toBe(false);
  tell("SIGKILL");
  expect(await listing).toMatchObject({ signal: "SIGKILL" });
  await until("its call was given up", isGivenUp);
  goOn();
});

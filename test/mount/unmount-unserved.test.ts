/** `wsfs umount` of a mount that no daemon serves at this moment: what is in use stays. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlive } from "../../src/daemon/processes.ts";
import { waitsForRelease } from "../../src/daemon/supervisor-name.ts";
import { until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { install } from "./support/reload.ts";
import { recordOf } from "./support/replaced.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("a daemon that is long in coming keeps a mount in use; one that a reload waits for is given up", {
  timeout: 120_000,
}, async () => {
  const installed = install(place);
  const gateway = await place.gateway();
  const used = await place.mount(gateway, { name: "used" });
  const free = await place.mount(gateway, { name: "free" });
  const [left, went] = [place.path("left"), place.path("went")];
  const user = used.sh(`touch '${went}'; until [ -e '${left}' ]; do sleep 0.05; done; ls`, { timeoutMs: 100_000 });
  check(await place.sh(`until [ -e '${went}' ]; do sleep 0.05; done`));

  installed("stuck");
  const { supervisor } = recordOf(place, free);
  expect(waitsForRelease(supervisor)).toBe(false);
  const reloading = place.wsfs(["reload", free.dir], { timeoutMs: 60_000 });
  await until("nobody serves it", () => waitsForRelease(supervisor));
  process.kill(used.pid, "SIGKILL");
  const unmountingFree = place.wsfs(["umount", free.dir], { timeoutMs: 60_000 });
  const refused = await place.wsfs(["umount", used.dir], { timeoutMs: 60_000 });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/is busy: used by .*current folder/)]);
  await until(
    "the one that is free has gone",
    () => !mountsBelow(place.folder).some(({ mountpoint }) => mountpoint === free.dir),
  );

  rmSync(place.path("installed"));
  check(await unmountingFree);
  expect((await reloading).code).toBe(1);
  expect(isAlive(supervisor)).toBe(false);
  check(await place.sh(`touch '${left}'`));
  check(await user);
  expect(waitsForRelease(recordOf(place, used).supervisor)).toBe(false);
  await used.umount();
  expect(mountsBelow(place.folder)).toEqual([]);
});

/** `wsfs reload`: another daemon takes the mount over, and programs see a pause. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";
import { makeFiles, work } from "./support/reload.ts";
import { daemonOf } from "./support/replaced.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("a program that has files open and changes everything sees no reload", { timeout: 120_000 }, async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway, { name: "first" });
  await makeFiles(first);
  check(await first.umount("--drain=60"));
  const mount = await place.mount(gateway);
  const program = await work(place, mount);
  const reload = (...args: string[]) => place.wsfs(["reload", mount.dir, ...args], { timeoutMs: 60_000 });

  const plain = check(await reload()).stdout;
  const next = daemonOf(place, mount);
  expect(next).not.toBe(mount.pid);
  expect(plain).toMatch(
    new RegExp(`^${mount.dir} is served by a new daemon \\(release .*, pid ${next}\\); programs waited for .* s\\n$`),
  );
  await program.goesOn();

  const both = await Promise.all([reload("--durability", "remote"), reload("--durability", "remote")]);
  expect(Math.min(...both.map(({ code }) => code ?? 1))).toBe(0);
  for (const { code, stderr } of both) {
    // The daemon says so, or has no answer left when it has given way.
    if (code !== 0) expect(stderr).toMatch(/^wsfs: (the daemon refused: )?another reload is under way\n$/);
  }
  const second = daemonOf(place, mount);
  await program.goesOn();

  expect(await reload("--no-passthrough")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--no-passthrough cannot change while a workspace is mounted: "),
  });
  expect(daemonOf(place, mount)).toBe(second);

  const told = check(await reload("--cache-size", "1G", "--json")).stdout;
  const third = daemonOf(place, mount);
  expect(JSON.parse(told)).toEqual({
    release: expect.any(String),
    pid: third,
    waitedMs: expect.any(Number),
    isMigrated: false,
  });
  const status = await mount.status();
  expect(status).toMatchObject({ pid: third, supervisorPid: mount.supervisorPid, cacheLimit: 1024 ** 3 });
  expect(status).not.toHaveProperty("restarts");
  await program.goesOn();

  process.kill(third, "SIGKILL");
  expect(await mount.status()).toMatchObject({ cacheLimit: 1024 ** 3, restarts: { count: 1 } });
  await program.goesOn();
  await program.end();
  const sums = "find . -type f | sort | xargs sha256sum";
  const here = check(await mount.sh(sums)).stdout;
  check(await mount.umount("--drain=60"));
  expect(mountsBelow(place.folder)).toEqual([]);
  expect(listServed(place.path("run"))).toEqual([]);
  const other = await place.mount(gateway, { name: "other" });
  expect(check(await other.sh(sums)).stdout).toBe(here);
});

test("a drain goes on with the daemon after it, and a request that waits for the gateway is answered by that", async () => {
  const gateway = await place.gateway();
  const first = await place.mount(gateway, { name: "first" });
  check(await first.sh("head -c 3000000 /dev/zero > far"));
  check(await first.umount("--drain=60"));
  const mount = await place.mount(gateway);
  check(await mount.sh("ls -l; echo new > new"));
  process.kill(gateway.pid, "SIGSTOP");
  const reading = mount.sh("cat far | wc -c", { timeoutMs: 60_000 });
  const draining = place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 });
  await until("a request waits", async () => {
    const { operations } = (await mount.status()) as { operations: Record<string, number> };
    return (operations.READ ?? 0) > 0;
  });
  const reloading = place.wsfs(["reload", mount.dir], { timeoutMs: 60_000 });
  await until("another daemon serves", () => daemonOf(place, mount) !== mount.pid);
  process.kill(gateway.pid, "SIGCONT");
  check(await reloading);
  expect(check(await reading).stdout).toBe("3000000\n");
  check(await draining);
  expect(await mount.status()).toMatchObject({ dirty: 0 });
}, 90_000);

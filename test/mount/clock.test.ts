/**
 * Somebody sets the machine's clock while a workspace is mounted, by years and back: what is changed on either side
 * goes on arriving, nothing waits for a time that does not come, and a daemon that dies then is replaced.
 */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../support/child.ts";
import { compilePreload } from "../support/preload.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";

const DAY = 86_400;
const YEAR = 365 * DAY;

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** Commands from now on, and what they start, live by another clock; answers how to set it. */
function ownClock(): { set(ahead: number): void; end(): void } {
  const file = place.path("ahead");
  const library = compilePreload(join(import.meta.dirname, "support/clock.c"), place.path("clock.so"));
  writeFileSync(file, Buffer.alloc(8));
  Object.assign(place.env, { LD_PRELOAD: library, WSFS_AHEAD_FILE: file });
  return {
    // In its place: it is mapped.
    set(ahead) {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(ahead));
      const fd = openSync(file, "r+");
      writeSync(fd, bytes);
      closeSync(fd);
    },
    end() {
      delete place.env.LD_PRELOAD;
      delete place.env.WSFS_AHEAD_FILE;
    },
  };
}

const arrives = (mount: TestMount, name: string, text: string) =>
  until(`${name} holds ${text}`, async () => (await mount.sh(`cat '${name}'`)).stdout === text);

it("by years ahead and back: changes arrive on both sides, also with a daemon that is replaced", async () => {
  const gateway = await place.gateway();
  const clock = ownClock();
  const mount = await place.mount(gateway, { name: "here" });
  clock.end();
  const other = await place.mount(gateway, { name: "there" });
  let pid = mount.pid;
  expect(readFileSync(`/proc/${pid}/maps`, "utf8")).toContain("/clock.so");
  for (const [index, ahead] of [DAY, 30 * YEAR, -DAY, -20 * YEAR, 0].entries()) {
    check(await mount.sh(`printf ${index} > here; printf ${index} > "here ${index}"; mkdir folder${index}`));
    // Before it is sent.
    clock.set(ahead);
    await arrives(other, "here", String(index));
    await arrives(other, `here ${index}`, String(index));
    check(await other.sh(`printf ${index} > there; mv "here ${index}" "there ${index}"; rmdir folder${index}`));
    await arrives(mount, "there", String(index));
    await arrives(mount, `there ${index}`, String(index));
    await until("the folder is gone", async () => (await mount.sh(`test -e folder${index}`)).code === 1);
    check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
    expect(await mount.status()).toMatchObject({ online: true, live: true, dirty: 0, parked: 0 });
    if (index !== 1 && index !== 3) continue;
    check(await mount.sh(`printf dying > "dying ${index}"`));
    process.kill(pid, "SIGKILL");
    await arrives(mount, `dying ${index}`, "dying");
    pid = Number((await mount.status()).pid);
    await arrives(other, `dying ${index}`, "dying");
  }
  // A mount that begins with the clock set right again goes on with what the other one left.
  check(await mount.sh("printf last > here"));
  await mount.umount();
  const again = await place.mount(gateway, { name: "here" });
  await arrives(other, "here", "last");
  await arrives(again, "there", "4");
  expect(await again.status()).toMatchObject({ parked: 0 });
});

it("while uploads wait for a gateway that fails: they go on when it answers, not when the old time comes again", async () => {
  const gateway = await place.gateway({ args: ["--faults"] });
  const clock = ownClock();
  const mount = await place.mount(gateway);
  clock.end();
  const fail = async (failRate: number) => {
    const headers = { "content-type": "application/json" };
    const asked = { method: "PATCH", headers, body: JSON.stringify({ failRate }) };
    const answer = await fetch(`${gateway.baseUrl}/faults`, asked);
    expect(answer.status).toBe(200);
  };
  check(await mount.sh("printf first > file"));
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
  for (const ahead of [DAY, -DAY]) {
    clock.set(-ahead);
    await fail(1);
    check(await mount.sh(`echo ${ahead} > file`));
    await until("it waits", async () => /tried|does not answer/.test((await place.wsfs(["queue", mount.dir])).stdout));
    clock.set(ahead);
    await fail(0);
    await until("it is uploaded", async () => (await mount.status()).dirty === 0);
  }
});

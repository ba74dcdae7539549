/** Somebody floods the journal of a workspace with entries about one file: its mounts go on, and keep nothing of it. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

const ENTRIES = 4000;
const AT_ONCE = 16;

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

it("what others change is shown, and what is changed here is sent, in the middle of it and after it", async () => {
  const gateway = await place.gateway({ args: ["--quiet"] });
  const mount = await place.mount(gateway);
  check(await mount.sh("echo first > file && ls"));
  check(await place.wsfs(["drain", mount.dir]));
  const { nodes, files, journal, close } = connect({
    baseUrl: gateway.baseUrl,
    credentials: staticToken(gateway.token),
  });
  const { id } = await nodes.byPath("/file");
  let told = 0;
  const flood = async (upTo: number) => {
    const tell = async () => {
      while (told < upTo) {
        told += 1;
        await journal.append(id, `${"looked at ".repeat(5)}${told}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, tell));
  };
  const memory = () => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${mount.pid}/status`, "utf8"))?.[1]);
  const rows = () => statSync(join(mount.stateDir, "metadata.db")).size;

  const flooding = flood(ENTRIES);
  await until("it is in full spate", () => told > ENTRIES / 4);
  await files.upload("/theirs", "theirs");
  await until("theirs is shown", async () => (await mount.sh("cat theirs")).stdout === "theirs");
  check(await mount.sh("echo ours > ours && cat file"));
  await until("ours is sent", async () => (await nodes.list({ name: "ours" }).all()).length === 1);
  await flooding;
  const before = { memory: memory(), rows: rows() };
  await flood(2 * ENTRIES);
  await files.upload("/last", "last");
  await until("the last is shown", async () => (await mount.sh("cat last")).stdout === "last");
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
  expect(await mount.status()).toMatchObject({ pid: mount.pid, live: true, dirty: 0, parked: 0 });
  // As much again was told, and nothing of it is there.
  expect(memory()).toBeLessThan(1.5 * before.memory);
  expect(rows()).toBeLessThanOrEqual(1.5 * before.rows);
  expect((await journal.list({ pageSize: 1 }).page(1)).totalCount).toBeGreaterThan(2 * ENTRIES);
  await close();
});

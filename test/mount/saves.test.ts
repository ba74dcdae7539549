/**
 * Saving, as editors and tools do it: whatever the dance of names, the file keeps its node, which
 * gets one more version, and no other node is left behind. docs/user/ways-to-save.md is made of the same list
 * (`WSFS_WRITE_TABLES=1` writes it).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { childrenAt } from "./support/nodes.ts";
import { SAVES, saves } from "./support/saves.ts";

const TABLE = fileURLToPath(new URL("../../docs/user/ways-to-save.md", import.meta.url));

function saveTable(): string {
  const rows = Object.entries(SAVES).map(([name, { by = "", leaves = [] }]) => {
    const left = leaves.map((one) => `\`${one}\``).join(", ");
    return `| ${name} | ${by} | ${left} |\n`;
  });
  return `# Ways to save a file

Programs save a file in many ways: in place, beside it and renamed over, with the old one moved away first. After
each of these the gateway shows one more version of the same node, and no node of a temporary name. Each row is a
test on a mount (\`test/mount/saves.test.ts\`); this page is made of its list.

| the file is | programs that do so | name left beside it, with the old content |
|---|---|---|
${rows.join("")}`;
}

let place: Place;
let gateway: TestGateway;
let mount: TestMount;
beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  mount = await place.mount(gateway);
});
afterAll(() => place.cleanUp());

describe.each(Object.keys(SAVES))("%s", (name) => {
  test("one more version of the same node, and nothing else", () => saves(place, gateway, mount, name));
});

test("the table is made of this list", () => {
  const made = saveTable();
  if (process.env.WSFS_WRITE_TABLES === "1") writeFileSync(TABLE, made);
  expect(readFileSync(TABLE, "utf8")).toBe(made);
});

test("files saved again and again while they are sent stay one file each, without conflicts", async () => {
  const slow = await place.gateway({ name: "slow", args: ["--latency", "15"] });
  const busy = await place.mount(slow, { name: "busy" });
  // The pauses spread over the debounce and what follows it, so that writers come at each moment of an upload.
  const script = `
import os, random, sys, time
chance = random.Random(sys.argv[1])
until = time.time() + 15
saves = 0
while time.time() < until:
    name = f"f{chance.randrange(3)}"
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, f"save {saves:06}".encode(), chance.choice([0, 100_000]))
    if chance.random() < 0.3: os.fsync(fd)
    os.close(fd)
    saves += 1
    time.sleep(chance.choice([0, 0.01, 0.1, 0.5, 0.6, 1.1]) * chance.random())
print(saves)
`;
  const seed = String(SEED);
  const count = Number(
    check(await busy.sh(`exec /usr/bin/python3 -c "$SCRIPT" ${seed}`, { env: { SCRIPT: script } })).stdout,
  );
  expect(count).toBeGreaterThan(20);
  check(await place.wsfs(["drain", busy.dir, "--timeout", "60"], { timeoutMs: 70_000 }));
  expect(await busy.status(), `seed ${seed}`).toMatchObject({ conflicts: 0, parked: 0, dirty: 0 });
  const nodes = await childrenAt(slow);
  expect([...nodes.keys()].sort(), `seed ${seed}`).toEqual(["f0", "f1", "f2"]);
  const digests = check(await busy.sh("sha256sum f0 f1 f2 | cut -d' ' -f1"))
    .stdout.trim()
    .split("\n");
  expect(["f0", "f1", "f2"].map((name) => nodes.get(name)?.contentHash)).toEqual(digests);
  await busy.umount();
  await slow.stop();
});

/** A gateway whose path index and journal are late: nothing of that is seen in the mount. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Finished, run } from "../support/child.ts";
import { createChance, drawSeed } from "../support/seed.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { READER, WRITER } from "./support/flicker.ts";
import { contentsOf, readGateway, readTree } from "./support/tree.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const SECONDS = 9;
const chance = createChance();

let place: Place;
let gateway: TestGateway;
let mount: TestMount;
beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway({ args: ["--path-lag", "3000", "--journal-lag", "5000"] });
  mount = await place.mount(gateway);
});
afterAll(() => place.cleanUp());

/** Both programs at once in `busy`, for SECONDS. */
async function workAndWatch(where: TestMount): Promise<void> {
  const seed = drawSeed(chance);
  const python = (script: string): Promise<Finished> =>
    run(
      "/usr/bin/python3",
      ["-c", script, `${where.dir}/busy`, place.path("busy.log"), String(SECONDS), String(seed)],
      {
        env: place.env,
        timeoutMs: (SECONDS + 90) * 1000,
      },
    );
  let isOver = false;
  // Without waiting for the debounce, so that more is sent than the last state of each file.
  async function drainAgainAndAgain(): Promise<void> {
    while (!isOver) await place.wsfs(["drain", where.dir, "--no-settle", "--timeout", "5"]);
  }
  const programs = Promise.all([python(WRITER), python(READER)]).finally(() => {
    isOver = true;
  });
  const [[writer, reader]] = await Promise.all([programs, drainAgainAndAgain()]);
  const made = Number(check(writer).stdout);
  const seen = JSON.parse(check(reader).stdout) as { looks: number; wrong: unknown[] };
  expect(seen.wrong, `seed ${seed}`).toEqual([]);
  expect(made).toBeGreaterThan(30);
  expect(seen.looks).toBeGreaterThan(10);
}

describe("no old name comes back and no new one vanishes while another program works", () => {
  test("in a folder made here", async () => {
    check(await mount.sh("mkdir busy"));
    await workAndWatch(mount);
  });

  test("after a restart in the middle of it, while index and journal still show what was before", async () => {
    await mount.umount();
    mount = await place.mount(gateway);
    await workAndWatch(mount);
  });

  test("in a folder another mount has made, listed for the first time", async () => {
    await mount.umount("--drain=60");
    const other = await place.mount(gateway, { name: "other" });
    await workAndWatch(other);
    await other.umount("--drain=60");
    mount = await place.mount(gateway, { name: "third" });
  });
});

test("the main job in small: git, cp -a, tar, edits; all of it on another mount and over HTTP", async () => {
  const identity = {
    GIT_AUTHOR_NAME: "A",
    GIT_AUTHOR_EMAIL: "a@e.org",
    GIT_COMMITTER_NAME: "A",
    GIT_COMMITTER_EMAIL: "a@e.org",
  };
  const script = `set -euo pipefail
    mkdir repository; cd repository
    git init --quiet; cp -a "$PROJECT/src/lib" .; git add .; git commit --quiet -m one
    sed -i 's/^export/EXPORT/' lib/*.ts; git mv lib moved; git commit --quiet -am two; git fsck --strict
    test -z "$(git status --porcelain)"; cd ..
    cp -a repository copy; diff -r repository copy; tar cf - repository | (mkdir tar; tar xpf - -C tar); diff -r repository tar/repository
    rm -rf copy/.git; mv copy copied; diff -r repository/moved copied/moved; rm -rf tar`;
  check(await mount.sh(script, { env: { PROJECT, ...identity }, timeoutMs: 120_000 }));
  const left = await readTree(place, mount.dir);
  expect(Object.keys(left).length).toBeGreaterThan(60);
  await mount.umount("--drain=120");
  // Drained means settled: what knows nothing finds everything now, without waiting.
  expect(await readGateway(place, gateway)).toEqual(contentsOf(left));
  const another = await place.mount(gateway, { name: "another" });
  expect(await readTree(place, another.dir)).toEqual(left);
});

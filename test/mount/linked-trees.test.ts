/** Tools that make, copy and move trees of linked files: as on a plain folder, and another mount shows the same. */
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";
import { contentsOf, readGateway, readTree, type Tree } from "./support/tree.ts";

/** The same bytes and links every time, wherever it runs. */
const WORK = `set -e
mkdir -p src/sub; for i in 1 2 3 4 5; do echo "file $i" > src/$i; ln src/$i src/sub/also-$i; done
cp -al src snapshot-1
echo changed > new; mv new src/1            # the snapshot keeps the old one
cp -al src snapshot-2
rsync -aH src/ copied/
echo more >> copied/2; rsync -aH --inplace --ignore-times src/ copied/
mkdir far near; mv snapshot-1 far/; mv copied near/; mv far/snapshot-1/sub near/
rm -r snapshot-2/sub
export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
export GIT_CONFIG_GLOBAL=/dev/null
git init -q -b main repository; cd repository; cp ../src/[1-5] .; git add .
git -c user.name=A -c user.email=a@e.org commit -qm one; cd ..
git clone -q --local repository clone
git -C clone fsck --no-progress --strict; test -z "$(git -C clone status --porcelain)"
test "$(stat -c %h clone/.git/objects/*/* | sort -u)" = 2`;

/** Without what git writes of times and places. */
function shape(tree: Tree): Record<string, unknown> {
  const entries = Object.entries(tree).filter(([path]) => path !== "." && !/\.git\/(index|logs|config)/.test(path));
  return Object.fromEntries(
    entries.map(([path, { kind, mode, size, links, target, sha256 }]) => [
      path,
      kind === "folder" ? { kind, mode } : { kind, mode, size, links, target, sha256 },
    ]),
  );
}

let place: Place;
beforeAll(() => {
  place = createPlace();
});
afterAll(() => place.cleanUp());

test("cp -al, rsync -aH and --inplace, git clone --local, mv of trees", { timeout: 600_000 }, async () => {
  const gateway = await place.gateway();
  const plain = place.path("plain");
  mkdirSync(plain);
  check(await place.sh(`cd '${plain}'\n${WORK}`));
  const one = await place.mount(gateway, { name: "one" });
  const two = await place.mount(gateway, { name: "two" });
  check(await one.sh(WORK, { timeoutMs: 120_000 }));
  const left = await readTree(place, one.dir);
  expect(shape(left)).toEqual(shape(await readTree(place, plain)));
  check(await place.wsfs(["drain", one.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
  const shown = async () => shape(await readTree(place, two.dir).catch(() => ({})));
  await until("the other shows it", async () => JSON.stringify(await shown()) === JSON.stringify(shape(left)), 120_000)
    // Says what differs.
    .catch(async () => expect(await shown()).toEqual(shape(left)));
  expect(await readGateway(place, gateway)).toEqual(contentsOf(left));
});

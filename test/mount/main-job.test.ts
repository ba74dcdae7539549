/**
 * The main job, end to end: ordinary programs work in a mount, everything is uploaded, and another
 * mount that knows nothing, and curl, find it all. The tests build on each other, in order.
 *
 * WSFS_BIG=1 makes the big file 2 GiB instead of 512 MiB.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { peakMemory } from "./support/memory.ts";
import { contentsOf, readGateway, readTree } from "./support/tree.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const MIB = 1024 * 1024;
const BIG_MIB = process.env.WSFS_BIG === "1" ? 2048 : 512;
/** Of daemon and gateway, whatever the size of the files. */
const MEMORY_LIMIT = 350 * MIB;

const GIT_IDENTITY = {
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@example.com",
  // The clone may belong to another user than the one who runs the tests.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
};

let place: Place;
let gateway: TestGateway;
let mount: TestMount;
beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  mount = await place.mount(gateway);
});
afterAll(() => place.cleanUp());

/** A script in the mount that must succeed; what it prints. */
async function sh(script: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { env: { PROJECT, ...GIT_IDENTITY, ...env }, timeoutMs: 240_000 };
  return check(await mount.sh(`set -euo pipefail\n${script}`, options)).stdout;
}

test("git clones this repository, finds it clean and whole, and commits", async () => {
  // As from another machine: how many objects lie loose here is no matter.
  await sh('git clone --quiet --no-local "$PROJECT" clone');
  expect(await sh("cd clone; git status --porcelain; git fsck --strict 2>&1")).not.toMatch(
    /error|missing|corrupt|^.M/m,
  );
  expect(await sh("cd clone; git log --oneline | wc -l")).toBe(await sh('cd "$PROJECT"; git log --oneline | wc -l'));
  await sh("cd clone; echo a line >> README.md; git mv LICENSE COPYING; git commit --quiet -am change; git gc --quiet");
  expect(await sh("cd clone; git status --porcelain; git show --stat --format=%s HEAD")).toMatch(/^change\n/);
  await sh("cd clone; git checkout --quiet -b other HEAD~1; test -e LICENSE; git checkout --quiet -; test -e COPYING");
}, 600_000);

test("cp -a of a package folder is equal, with modes, times and links", async () => {
  await sh(
    'cp -a "$PROJECT/node_modules/typescript/." typescript; diff -r "$PROJECT/node_modules/typescript/" typescript',
  );
  const original = await readTree(place, `${PROJECT}/node_modules/typescript/`);
  const copy = await readTree(place, `${mount.dir}/typescript`);
  // What a disk counts as a folder's size is its own affair.
  expect(withoutFolderSizes(copy)).toEqual(withoutFolderSizes(original));
});

test("tar takes it apart and puts it together", async () => {
  await sh("tar cf ../typescript.tar typescript; mkdir untarred; tar xpf ../typescript.tar -C untarred");
  await sh("diff -r typescript untarred/typescript; tar df ../typescript.tar -C untarred");
});

test("vim and sed -i edit in each of their ways and leave nothing behind", async () => {
  await sh(`
    mkdir edits; cd edits
    for way in yes no auto; do
      for backup in backup nobackup; do
        f="$way-$backup"
        seq 1000 > "$f"
        vim -es -u NONE -i NONE -c "set backupcopy=$way $backup backupdir=. backupskip=" -c '%s/^5/five/' -c wq "$f"
        seq 1000 | sed 's/^5/five/' | cmp - "$f"
      done
    done
    seq 1000 > sed; chmod 640 sed; sed -i 's/^5/five/' sed; sed -i.bak 's/^6/six/' sed
    seq 1000 | sed 's/^5/five/; s/^6/six/' | cmp - sed; test "$(stat -c %a sed)" = 640`);
  expect((await sh("ls -A edits")).trim().split("\n")).toEqual(
    ["auto-backup", "auto-backup~", "auto-nobackup", "no-backup", "no-backup~", "no-nobackup", "sed", "sed.bak"].concat(
      ["yes-backup", "yes-backup~", "yes-nobackup"],
    ),
  );
});

test.each(["delete", "truncate", "wal"])("sqlite3 makes and queries a database, journal mode %s", async (mode) => {
  const database = `database-${mode}.db`;
  await sh(`
    sqlite3 -bail ${database} 'PRAGMA journal_mode=${mode}; CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT);'
    for i in $(seq 20); do
      sqlite3 -bail ${database} "INSERT INTO t(text) SELECT 'row ' || value FROM generate_series(1, 200);"
    done
    sqlite3 -bail ${database} "BEGIN; DELETE FROM t; ROLLBACK; UPDATE t SET text = 'changed' WHERE id % 7 = 0; CREATE INDEX i ON t(text);"`);
  const said = await sh(
    `sqlite3 ${database} "SELECT count(*), count(DISTINCT text), sum(text = 'changed') FROM t; PRAGMA integrity_check;"`,
  );
  expect(said).toBe("4000|201|571\nok\n");
});

test(`a file of ${BIG_MIB} MiB goes in and out`, async () => {
  // Bytes that repeat only after 64 MiB, with a line between: making them must not cost more than writing them.
  const said = await sh(`
    head -c ${64 * MIB} /dev/urandom > ../block
    for i in $(seq ${BIG_MIB / 64}); do cat ../block; echo $i; done | tee big | sha256sum > ../big.sum
    sha256sum < big | cmp - ../big.sum
    stat -c %s big`);
  expect(Number(said)).toBeGreaterThan(BIG_MIB * MIB);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "200"], { timeoutMs: 220_000 }));
  expect(peakMemory(mount.pid), "of the daemon").toBeLessThan(MEMORY_LIMIT);
  expect(peakMemory(gateway.pid), "of the gateway").toBeLessThan(MEMORY_LIMIT);
});

test("another mount that knows nothing has it all, and so has curl", async () => {
  await sh(
    "chmod 750 .; touch -d '2011-12-13 14:15:16.171819202' .; ln -s ../edits/sed typescript/link; touch -h -d '2001-01-01 1:1:1.5' typescript/link",
  );
  const left = await readTree(place, mount.dir);
  expect(left["."]).toMatchObject({ mode: "0o40750", mtime: "1323785716171819202", size: 4096 });
  await mount.umount("--drain=200");
  expect(await readGateway(place, gateway)).toEqual(contentsOf(left));

  mount = await place.mount(gateway, { name: "another" });
  expect(await readTree(place, mount.dir)).toEqual(left);
  // The link was added after the copy.
  await sh(
    'rm typescript/link; diff -r "$PROJECT/node_modules/typescript/" typescript; cd clone; git fsck --strict; test -z "$(git status --porcelain)"',
  );
  await sh("sha256sum < big | cmp - ../big.sum");
  expect(peakMemory(mount.pid), "of the daemon that fetched it all").toBeLessThan(MEMORY_LIMIT);
});

type Sized = Record<string, { kind: string; size: number }>;

function withoutFolderSizes<T extends Sized>(tree: T): Sized {
  return Object.fromEntries(
    Object.entries(tree).map(([path, entry]) => [path, entry.kind === "folder" ? { ...entry, size: 0 } : entry]),
  );
}

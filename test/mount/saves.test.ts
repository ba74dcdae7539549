/**
 * Saving, as editors and tools do it: whatever the dance of names, the file keeps its node, which
 * gets one more version, and no other node is left behind. src/vfs/SAVES.md is made of the same list
 * (`WSFS_WRITE_TABLES=1` writes it).
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { childrenAt, versionsOf } from "./support/nodes.ts";

const vim = (backupcopy: string, backup = "nobackup") =>
  `vim -es -u NONE -i NONE -c 'set backupcopy=${backupcopy} ${backup} backupdir=. backupskip=' -c '%s/one/two/' -c wq doc`;

/**
 * Each turns `doc` from "one" into "two". A "#" stands for a pause in which everything is uploaded:
 * what was sent by then has to be taken back.
 */
const SAVES: Record<string, { script: string; leaves?: readonly string[]; by?: string }> = {
  "written in place": { by: "VS Code, nano", script: "echo two > doc" },
  "written over without being cut": {
    script: '/usr/bin/python3 -c \'import os; os.pwrite(os.open("doc", 1), b"two", 0)\'',
  },
  "renamed over": { by: "gedit", script: "echo two > .doc.tmp; mv .doc.tmp doc" },
  "renamed over, the new one already uploaded": { script: "echo two > .doc.tmp\n#\nmv .doc.tmp doc" },
  "synced, then renamed over": {
    by: "gedit and others that sync",
    script: `/usr/bin/python3 -c '
import os
fd = os.open("t", os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.write(fd, b"two\\n"); os.fsync(fd); os.close(fd)
os.rename("t", "doc"); os.fsync(os.open(".", os.O_RDONLY))'`,
  },
  "moved away, created anew": { by: "Emacs", script: "mv doc doc~; echo two > doc", leaves: ["doc~"] },
  "moved away, created anew, the old one removed": { script: "mv doc doc~; echo two > doc; rm doc~" },
  "moved away, uploaded so, created anew": { script: "mv doc doc~\n#\necho two > doc", leaves: ["doc~"] },
  "moved away, the new one moved in": {
    by: "LibreOffice, MS Office",
    script: "echo two > lu1.tmp; mv doc doc.bak; mv lu1.tmp doc; rm doc.bak",
  },
  "linked away, renamed over": { script: "ln doc doc~; echo two > t; mv t doc; rm doc~" },
  "moved, removed there, made there": { script: "mv doc new; rm new; echo two > new; mv new doc" },
  "removed, then created": { script: "rm doc; echo two > doc" },
  "copied away, then written in place": { script: "cp -a doc doc~; echo two > doc; rm doc~" },
  "vim, backupcopy=yes": { script: vim("yes") },
  "vim, backupcopy=no": { script: vim("no") },
  "vim, backupcopy=auto": { script: vim("auto") },
  "vim, backupcopy=no, keeps a backup": { script: vim("no", "backup"), leaves: ["doc~"] },
  "vim, backupcopy=yes, keeps a backup": { script: vim("yes", "backup"), leaves: ["doc~"] },
  "sed -i": { script: "sed -i s/one/two/ doc" },
  "sed -i with a backup": { script: "sed -i.bak s/one/two/ doc", leaves: ["doc.bak"] },
  rsync: { script: "echo two > ../../two; rsync -a --ignore-times ../../two doc; rm ../../two" },
  "rsync --inplace": { script: "echo two > ../../two; rsync -a --inplace --ignore-times ../../two doc; rm ../../two" },
  "cp over": { script: "echo two > ../../two; cp ../../two doc; rm ../../two" },
  "install over": { script: "echo two > ../../two; install -m 644 ../../two doc; rm ../../two" },
  "a lock file, as git does": { by: "git", script: "set -C; echo two > doc.lock; set +C; mv doc.lock doc" },
};

const TABLE = fileURLToPath(new URL("../../src/vfs/SAVES.md", import.meta.url));

function saveTable(): string {
  const rows = Object.entries(SAVES).map(([name, { by = "", leaves = [] }]) => {
    const left = leaves.map((one) => `\`${one}\``).join(", ");
    return `| ${name} | ${by} | ${left} |\n`;
  });
  return `# Saves

Programs save a file in many ways: in place, beside it and renamed over, with the old one moved away first.
Whatever the dance, the gateway shows one more version of the same node afterwards, and no node of a temporary
name. Each row is a test on a mount (\`test/mount/saves.test.ts\`); this page is made of its list.

| the file is | so do | beside it is left, with the old content |
|---|---|---|
${rows.join("")}`;
}

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

let place: Place;
let gateway: TestGateway;
let mount: TestMount;
beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  mount = await place.mount(gateway);
});
afterAll(() => place.cleanUp());

async function drained(): Promise<void> {
  check(await place.wsfs(["drain", mount.dir, "--no-settle", "--timeout", "60"]));
}

describe.each(Object.entries(SAVES))("%s", (name, { script, leaves = [] }) => {
  test("one more version of the same node, and nothing else", async () => {
    const folder = name.replaceAll(/[^a-z]+/gi, "-");
    check(await mount.sh(`mkdir ${folder} && echo one > ${folder}/doc`));
    await drained();
    const before = (await childrenAt(gateway, `/${folder}`)).get("doc");
    expect(before?.contentHash).toBe(digest("one\n"));

    for (const step of script.split("\n#\n")) {
      check(await mount.sh(`set -euo pipefail; cd ${folder}\n${step}`));
      await drained();
    }
    expect(check(await mount.sh(`cat ${folder}/doc`)).stdout).toBe("two\n");
    const after = await childrenAt(gateway, `/${folder}`);
    expect([...after.keys()].sort()).toEqual(["doc", ...leaves].sort());
    expect(after.get("doc")?.id).toBe(before?.id);
    const versions = await versionsOf(gateway, before?.id ?? "");
    expect(versions.map(({ contentHash }) => contentHash)).toEqual([digest("one\n"), digest("two\n")]);
    for (const left of leaves) expect(after.get(left)?.contentHash).toBe(digest("one\n"));
  });
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
  const saves = Number(
    check(await busy.sh(`exec /usr/bin/python3 -c "$SCRIPT" ${seed}`, { env: { SCRIPT: script } })).stdout,
  );
  expect(saves).toBeGreaterThan(20);
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

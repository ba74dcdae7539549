/** The ways programs save a file, and what is to be there afterwards, on whatever mount. */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import { check, type Place, type TestGateway, type TestMount } from "../../support/wsfs.ts";
import { childrenAt, versionsOf } from "./nodes.ts";

const vim = (backupcopy: string, backup = "nobackup") =>
  `vim -es -u NONE -i NONE -c 'set backupcopy=${backupcopy} ${backup} backupdir=. backupskip=' -c '%s/one/two/' -c wq doc`;

/**
 * Each turns `doc` from "one" into "two". A "#" stands for a pause in which everything is uploaded:
 * what was sent by then has to be taken back.
 */
export const SAVES: Record<string, { script: string; leaves?: readonly string[]; by?: string }> = {
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

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

/** The save of this name is one more version of the same node, and nothing else. */
export async function saves(place: Place, gateway: TestGateway, mount: TestMount, name: string): Promise<void> {
  const { script, leaves = [] } = SAVES[name] ?? { script: "false" };
  const drained = async () => check(await place.wsfs(["drain", mount.dir, "--no-settle", "--timeout", "60"]));
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
}

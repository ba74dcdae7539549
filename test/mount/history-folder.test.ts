/** The history folder of a mount: what programs find in it, and that it is there through all that befalls a mount. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

let place: Place;
let gateway: TestGateway;
let mount: TestMount;

beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  mount = await place.mount(gateway);
});
afterAll(() => place.cleanUp());

/** The standard output of a shell in the mount. */
const sh = async (script: string): Promise<string> => check(await mount.sh(script)).stdout.trim();
const drain = async () => check(await place.wsfs(["drain", mount.dir]));
/** A moment that lies between what is here now and what comes, by the clock of the gateway, which is this machine's. */
async function momentBetween(): Promise<string> {
  await drain();
  const moment = await sh("sleep 0.05; date -u +%Y-%m-%dT%H:%M:%S.%3NZ; sleep 0.05");
  return moment;
}

test("every version of a file is a file; cp brings one back", async () => {
  for (const text of ["one", "two two", "three three three"]) {
    await sh(`printf '${text}' > notes.txt`);
    await drain();
  }
  expect(await sh('cd .wsfs/versions/notes.txt && for v in *; do cat "$v"; echo; done')).toBe(
    "one\ntwo two\nthree three three",
  );
  const names = (await sh("ls .wsfs/versions/notes.txt")).split("\n");
  expect(names).toHaveLength(3);
  for (const [index, name] of names.entries()) {
    expect(name).toMatch(new RegExp(`^000${index + 1} \\d{4}-\\d\\d-\\d\\d \\d\\d\\.\\d\\d\\.\\d\\d.*\\.txt$`));
  }
  expect(await sh("stat -c %s .wsfs/versions/notes.txt/*")).toBe("3\n7\n17");
  await sh("cp .wsfs/versions/notes.txt/0001* notes.txt");
  await drain();
  await until("the list shows it", async () => (await sh("ls .wsfs/versions/notes.txt | wc -l")) === "4");
  expect(await sh("cat notes.txt")).toBe("one");
});

test("versions follow a file through renames and moves", async () => {
  await sh("mkdir -p moved/deep; mv notes.txt moved/deep/renamed.md");
  await drain();
  const inVersions = async () => (await mount.sh("ls .wsfs/versions/moved/deep/renamed.md | wc -l")).stdout.trim();
  await until("the list shows it", async () => (await inVersions()) === "4");
  expect(await sh("ls .wsfs/versions/moved/deep/renamed.md")).toMatch(/^0001 .*\.md$/m);
});

test("the tree as it was, with folders, links and modes; what came later is not in it", async () => {
  await sh(
    "mkdir -p tree/sub; echo a > tree/a; echo b > tree/sub/b; chmod 755 tree/a; ln -s a tree/link; mkfifo tree/pipe",
  );
  const then = await momentBetween();
  await sh("rm -r tree/sub; echo changed > tree/a; echo later > tree/later; mv tree/link tree/other");
  await drain();
  expect(await sh(`cd .wsfs/at/${then}/tree && find . | sort`)).toBe(".\n./a\n./link\n./sub\n./sub/b");
  expect(await sh(`cat .wsfs/at/${then}/tree/a .wsfs/at/${then}/tree/sub/b; readlink .wsfs/at/${then}/tree/link`)).toBe(
    "a\nb\na",
  );
  expect(await sh(`stat -c %a .wsfs/at/${then}/tree/a`)).toBe("555");
  expect(await sh(`grep -r . .wsfs/at/${then}/tree | wc -l`)).toBe("2");
});

test("relative moments are links to one that stands still", async () => {
  const [link = "", later = ""] = (await sh("readlink .wsfs/at/1h; sleep 2.1; readlink .wsfs/at/1h")).split("\n");
  expect([link, later]).toEqual([expect.stringMatching(/^\d{4}-.*Z$/), expect.stringMatching(/^\d{4}-.*Z$/)]);
  expect(link < later).toBe(true);
  expect(await sh('cd -P .wsfs/at/1s; here=$(pwd -P); sleep 1.1; test "$(pwd -P)" = "$here" && echo same')).toBe(
    "same",
  );
  expect((await mount.sh("ls .wsfs/at/nonsense")).stderr).toContain("No such file");
  expect((await mount.sh("ls '.wsfs/at/2999-01-01'")).stderr).toContain("No such file");
});

test("ls -l of a folder of the past asks for its names at once, also by a relative moment", async () => {
  await sh("mkdir many; for i in $(seq 300); do echo $i > many/$i; done");
  await drain();
  await sh("sleep 1.1");
  const before = (await mount.status()).operations as Record<string, number>;
  expect(await sh("ls -l .wsfs/at/1s/many | wc -l")).toBe("301");
  const after = (await mount.status()).operations as Record<string, number>;
  const lookups = (after.LOOKUP ?? 0) - (before.LOOKUP ?? 0);
  // The kernel asks once more for each part of the path where a second passes, and for the first names.
  expect(lookups).toBeLessThan(100);
});

test("what was deleted can be read, by the folder it was in, a folder too", async () => {
  await sh("mkdir -p bin/folder; echo gone > bin/gone.txt; echo inner > bin/folder/inner");
  await drain();
  await sh("rm -r bin/gone.txt bin/folder");
  await drain();
  const listed = async () => (await mount.sh("ls .wsfs/deleted/bin")).stdout;
  await until("both are listed", async () => (await listed()).split("\n").length === 3);
  expect(await listed()).toMatch(/^folder \(.*\)\ngone \(.*\)\.txt\n$/);
  expect(await sh("cat .wsfs/deleted/bin/gone*; cat .wsfs/deleted/bin/folder*/inner*")).toBe("gone\ninner");
});

test("nothing can be changed, and the folder is found by name alone", async () => {
  expect((await sh("ls -A")).split("\n")).not.toContain(".wsfs");
  for (const change of [
    "touch .wsfs/x",
    "mkdir .wsfs/versions/y",
    "rm .wsfs/README",
    "mv .wsfs z",
    "mv .wsfs/README z",
    "ln .wsfs/README z",
    "echo > .wsfs/README",
    "chmod 777 .wsfs/README",
    "truncate -s 0 .wsfs/versions/moved/deep/renamed.md/0001*",
  ]) {
    const { code, stderr } = await mount.sh(change);
    expect([change, code !== 0, stderr]).toEqual([change, true, expect.stringMatching(/Read-only|cross-device/i)]);
  }
  expect((await mount.sh("mkdir .wsfs")).stderr).toContain("File exists");
  expect(JSON.parse(await sh("cat .wsfs/status.json"))).toMatchObject({ online: true });
  expect((await mount.sh("cat .wsfs/nodes/nothing")).stderr).toContain("No such file");
});

test("a daemon that dies leaves open files and folders of the past as they are", async () => {
  const { pid } = (await mount.status()) as { pid: number };
  const script = `
import os, signal, sys
name = sorted(os.listdir(".wsfs/versions/moved/deep/renamed.md"))[1]
path = ".wsfs/versions/moved/deep/renamed.md/" + name
f = os.open(path, os.O_RDONLY)
d = os.open(".wsfs/versions/moved/deep", os.O_RDONLY)
before = os.stat(path)
os.kill(${pid}, signal.SIGKILL)
print(os.read(f, 100).decode(), os.listdir(d), os.fstat(f).st_ino == before.st_ino, os.stat(path).st_ino == before.st_ino)
`;
  expect(await sh(`python3 -c '${script.replaceAll("'", '"')}'`)).toBe("two two ['renamed.md'] True True");
});

test("a kept content that is not the version's is fetched again", async () => {
  const read = "cat .wsfs/versions/moved/deep/renamed.md/0003*";
  await mount.umount();
  mount = await place.mount(gateway);
  expect(await sh(read)).toBe("three three three");
  await mount.umount();
  check(
    await place.sh(
      `for f in '${mount.stateDir}'/past/*; do printf 'x' | dd of="$f" conv=notrunc status=none; done; ls '${mount.stateDir}'/past | grep -q .`,
    ),
  );
  mount = await place.mount(gateway);
  expect(await sh(read)).toBe("three three three");
});

test("a content that the gateway has given up is told from one that cannot be had now", async () => {
  await sh("echo one > given-up");
  const then = await momentBetween();
  await sh("echo two > given-up");
  await drain();
  const own = ["--data", gateway.data, "--workspace", "workspace"];
  check(await place.wsfs(["gateway", "policy", "set", ...own, "--versions", "none"]));
  check(await place.wsfs(["gateway", "prune", ...own]));
  expect((await mount.sh(`cat .wsfs/at/${then}/given-up`)).stderr).toContain("No data available");
  expect(await sh("cat given-up")).toBe("two");
});

test("what was read is there without the gateway; what was not says so", async () => {
  const read = "cat .wsfs/versions/moved/deep/renamed.md/0004*";
  expect(await sh(read)).toBe("one");
  await gateway.stop();
  await sh("cat /proc/self/mounts > /dev/null; sleep 1.2");
  expect(await sh(read)).toBe("one");
  const { code, stderr } = await mount.sh("ls .wsfs/versions/tree");
  expect([code !== 0, stderr]).toEqual([true, expect.stringContaining("Input/output error")]);
});

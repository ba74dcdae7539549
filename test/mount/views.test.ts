/** Other views of a workspace: one folder of it as the whole mount, and a mount of a moment of the past. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect, type Gateway, tokenFile } from "../../src/client/index.ts";
import { until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

let place: Place;
let gateway: TestGateway;
let other: Gateway;
/** All of the workspace. */
let whole: TestMount;
/** Its folder x, wherever that is. */
let part: TestMount;

beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  const { baseUrl, workspace } = gateway;
  other = connect({ baseUrl, credentials: tokenFile(gateway.tokenFile), workspace });
  whole = await place.mount(gateway, { name: "whole" });
  await work("mkdir -p projects/x/deep/er projects/y; echo in > projects/x/in; echo out > projects/y/out");
  await work("echo deep > projects/x/deep/er/file; echo top > top");
  part = await place.mount(gateway, { name: "part", args: ["--path", "/projects/x/"] });
});
afterAll(async () => {
  await other?.close();
  await place.cleanUp();
});

const sh = async (mount: TestMount, script: string): Promise<string> => check(await mount.sh(script)).stdout.trim();
const wsfs = async (...args: string[]) => check(await place.wsfs(args)).stdout;
const drain = (mount: TestMount) => wsfs("drain", mount.dir);
/** In all of the workspace; then the gateway has it. */
async function work(script: string): Promise<void> {
  await sh(whole, `set -e; ${script}`);
  await drain(whole);
}
/** A moment between what is done and what comes, by the clock of the gateway, which is this machine's. */
const momentBetween = () => sh(whole, "sleep 0.05; date -u +%Y-%m-%dT%H:%M:%S.%3NZ; sleep 0.05");

/** Without --state-dir: what the command says, and its exit code. */
async function tryMount(name: string, ...args: string[]) {
  check(await place.sh(`mkdir -p '${place.path(name)}'`));
  const { baseUrl, workspace, tokenFile: file } = gateway;
  const from = ["--base-url", baseUrl, "--workspace", workspace, "--token-file", file, "--background"];
  const { code, stdout, stderr } = await place.wsfs(["mount", place.path(name), ...from, ...args]);
  return { code, stdout, stderr };
}

test("a folder is the root of the mount; nothing above it can be seen or named", async () => {
  expect(await sh(part, "find . | sort")).toBe(".\n./deep\n./deep/er\n./deep/er/file\n./in");
  await sh(part, "echo new > new; mkdir made; echo two >> in");
  await drain(part);
  const seen = async () => (await whole.sh("cat projects/x/new projects/x/in; ls -d projects/x/made")).stdout;
  await until("others see it", async () => (await seen()) === "new\nin\ntwo\nprojects/x/made\n");
  await work("echo y > projects/y/more; echo here > projects/x/here");
  await until("it is there", async () => (await part.sh("cat here")).stdout === "here\n");
  const asked = "cat .wsfs/status.json .wsfs/README; getfattr -d -m - . in; ls -A . ..; cat ../top .wsfs/../../y/out";
  const { stdout, stderr } = await part.sh(asked);
  expect(stdout).toContain('"name": "x"');
  expect(stdout + stderr).not.toMatch(/projects|more/);
  expect(JSON.stringify(await part.status())).not.toContain("projects");
  expect(await wsfs("status", part.dir)).toMatch(/^folder +"x" of the workspace/m);
});

test("its history folder has the past of the folder alone", async () => {
  const [inside, outside] = await Promise.all(
    ["/projects/x/deep/er/file", "/projects/y/out"].map((path) => other.nodes.byPath(path)),
  );
  const then = await momentBetween();
  await work("echo three >> projects/x/in; rm projects/x/new projects/y/out projects/y/more; mv projects/x elsewhere");
  const inPast = async (script: string) => (await part.sh(`cd .wsfs && ${script}`)).stdout;
  await until("the deletion is listed", async () => (await inPast("ls deleted")).includes("new ("));
  expect(await inPast("ls deleted | wc -l; ls versions/in | wc -l")).toBe("3\n3\n");
  expect(await inPast(`find at/${then} | sort | head -3; cat at/${then}/in`)).toBe(
    `at/${then}\nat/${then}/deep\nat/${then}/deep/er\nin\ntwo\n`,
  );
  expect(await inPast(`cat nodes/${inside?.id}`)).toBe("deep\n");
  const { code, stderr } = await part.sh(`cat .wsfs/nodes/${outside?.id}; ls .wsfs/nodes/${outside?.parentId}`);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^(.*No such file or directory\n){2}$/)]);
});

test("it goes on where the folder was moved, also with the next daemon and by commands on paths in it", async () => {
  process.kill((await part.status()).pid as number, "SIGKILL");
  expect(await sh(part, "cat in here")).toBe("in\ntwo\nthree\nhere");
  await sh(part, "echo four >> in");
  const lines = async (...args: string[]) => (await wsfs(...args)).trim().split("\n");
  await drain(part);
  expect(await lines("versions", `${part.dir}/in`)).toHaveLength(5);
  expect((await wsfs("diff", `${part.dir}/in@3`, `${part.dir}/in`)).replace(/.*@@/s, "")).toContain("+four");
  expect(await wsfs("restore", `${part.dir}/in@1`)).toContain("of /elsewhere/in (");
  await until("it is restored", async () => (await part.sh("cat in")).stdout === "in\n");
  expect((await lines("list", part.dir)).map((line) => line.replace(/.* /, ""))).toEqual([
    "NAME",
    "deep/",
    "here",
    "in",
    "made/",
  ]);
  expect(await wsfs("undelete", `${part.dir}/new`)).toContain("Back: /elsewhere/new");
  expect((await wsfs("log", part.dir)).replaceAll(/.* /g, "")).not.toContain("/projects/y");
  // Not by a number of changes: the time of the folder itself is sent before the deletions, among them or after them.
  const before = await momentBetween();
  await sh(part, "rm -r deep made");
  await drain(part);
  expect(await wsfs("undo", part.dir, "--since", before, "--yes")).toContain("changes taken back");
  await until("it is back", async () => (await part.sh("cat deep/er/file; ls -d made")).stdout === "deep\nmade\n");
  expect(await sh(whole, "ls")).toBe("elsewhere\nprojects\ntop");
});

test("what the mount has not uploaded is in the way of a restoration only where it is about the same path", async () => {
  const args = ["--port", new URL(gateway.baseUrl).port];
  await gateway.stop();
  gateway = await place.gateway({ args: [...args, "--fault", "writeContent:unavailable=1"] });
  await sh(part, "echo unsent > here");
  const { code, stderr } = await place.wsfs(["restore", `${part.dir}/here@1`, "--timeout", "1"]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/nothing was changed.*not uploaded all: \/here \(/)]);
  await wsfs("restore", `${part.dir}/in@2`, "--timeout", "1");
  await until("it is restored", async () => (await part.sh("cat in")).stdout === "in\ntwo\n");
  await gateway.stop();
  gateway = await place.gateway({ args });
});

test("a mount of a moment shows the tree as it was, and later changes never; nothing can be changed", async () => {
  await work("mkdir -p tree/sub; echo a > tree/a; echo b > tree/sub/b; ln -s a tree/link; chmod 755 tree/a");
  const then = await momentBetween();
  await work("echo changed > tree/a; rm -r tree/sub; mv tree later; mkdir tree; echo new > tree/new; rm top");
  const past = await place.mount(gateway, { name: "past", args: ["--at", then] });
  expect(await sh(past, "cd tree && find . | sort; cat a sub/b link; stat -c %a a; grep -r . . | sort")).toBe(
    ".\n./a\n./link\n./sub\n./sub/b\na\nb\na\n555\n./a:a\n./sub/b:b",
  );
  expect(await sh(past, "ls; test -e .wsfs || echo none; cat top")).toBe("elsewhere\nprojects\ntop\ntree\nnone\ntop");
  await work("echo again > tree/sub; rm -r later; echo more > more");
  expect(await sh(past, "ls; cat tree/a tree/sub/b")).toBe("elsewhere\nprojects\ntop\ntree\na\nb");
  for (const change of ["touch x", "mkdir tree/y", "rm top", "mv top z", "echo > top", "chmod 777 top", "ln top z"]) {
    const { code, stderr } = await past.sh(change);
    expect([change, code !== 0, stderr]).toEqual([change, true, expect.stringContaining("Read-only file system")]);
  }
  const nothingAhead = { at: then, live: true, settled: true, dirty: 0, names: { rest: "visited" } };
  expect(await past.status()).toMatchObject({ ...nothingAhead, readOnly: "asked for" });
  expect(await wsfs("status", past.dir)).toMatch(
    new RegExp(`^moment .*\\(${then}\\): all is as it was then(?:\n.*)*\nchanges +none`, "m"),
  );
  const { code, stderr } = await place.wsfs(["versions", `${past.dir}/top`]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^wsfs: .*shows a moment of the past.*\n$/)]);
  const script = `exec 5< tree/a 6< tree; kill -9 ${(await past.status()).pid}; cat <&5; ls /proc/self/fd/6/; stat -c %i tree`;
  expect((await sh(past, script)).split("\n").slice(0, -1)).toEqual(["a", "a", "link", "sub"]);
});

test("a moment and a folder together: the path is that of the moment", async () => {
  const then = await momentBetween();
  await work("rm -r elsewhere");
  const past = await place.mount(gateway, { name: "past-part", args: ["--at", then, "--path", "elsewhere/deep"] });
  expect(await sh(past, "find . | sort; cat er/file")).toBe(".\n./er\n./er/file\ndeep");
  expect(JSON.stringify(await past.status())).not.toContain("elsewhere");
  await past.umount();
  // It knows what it has read, also without the gateway, and no other folder.
  for (const [args, why] of [
    [["--path", "/elsewhere"], "the state dir belongs to folder /elsewhere/deep, not to folder /elsewhere"],
    [[], "the state dir belongs to folder /elsewhere/deep, not to all of the workspace"],
  ] as const) {
    const { code, stderr } = await tryMount("past-part", "--at", then, ...args, "--state-dir", past.stateDir);
    expect([code, stderr]).toEqual([1, `wsfs: ${why}: give another --state-dir\n`]);
  }
  const now = await tryMount("past-part", "--path", "/elsewhere/deep", "--state-dir", past.stateDir);
  expect([now.code, now.stderr]).toEqual([
    1,
    "wsfs: the state dir belongs to mounts of the past (--at): give another --state-dir\n",
  ]);
});

test("the folder that is mounted is deleted: what is known can be read, nothing changed", async () => {
  await until("the mount knows", async () => (await part.status()).readOnly !== undefined);
  const { code, stderr } = await part.sh("touch x");
  expect([code, stderr]).toEqual([1, expect.stringContaining("Read-only file system")]);
  expect((await place.wsfs(["list", part.dir])).stderr).toMatch(
    /^wsfs: the folder that is mounted at .* was deleted; .*\n$/,
  );
  await wsfs("undelete", `${whole.dir}/elsewhere`);
  await until("it goes on", async () => (await part.sh("echo back > back")).code === 0);
  await drain(part);
  await until("others see it", async () => (await whole.sh("cat elsewhere/back")).stdout === "back\n");
});

test("what cannot be mounted is said in one line, with an exit code, and leaves nothing", async () => {
  const before = mountsBelow(place.folder).length;
  for (const [args, code, why] of [
    [["--path", "/none"], 1, /there is no folder \/none in workspace "/],
    [["--path", "/elsewhere/back"], 1, /--path: \/elsewhere\/back in workspace ".*" is a file, expected a folder/],
    [["--at", "2001-01-01"], 1, /there was no workspace ".*" at 2001-01-01T/],
    [["--at", "1m", "--path", "/none"], 1, /there was no folder \/none in workspace ".*" at 2/],
    [["--at", "2999-01-01"], 2, /--at: expected a moment that is over, got 2999-01-01/],
    [["--at", "soon"], 2, /--at.*expected.* yesterday/],
  ] as const) {
    const said = await tryMount("refused", ...args);
    expect([args, said.code, said.stdout, said.stderr.trimEnd().split("\n").length]).toEqual([args, code, "", 1]);
    expect(said.stderr).toMatch(why);
  }
  const bare = await place.gateway({ name: "bare", args: ["--bare"] });
  const profile = new URL("../../src/gateway/bare.profile.json", import.meta.url).pathname;
  const { code, stderr } = await place.wsfs(
    ["mount", place.path("refused"), "--base-url", bare.baseUrl, "--workspace", bare.workspace].concat([
      "--token-file",
      bare.tokenFile,
      "--profile",
      profile,
      "--at",
      "1m",
    ]),
  );
  expect([code, stderr]).toEqual([1, "wsfs: --at: this gateway keeps no history that can be read\n"]);
  expect(mountsBelow(place.folder)).toHaveLength(before);
  expect(await sh(whole, `ls '${place.path("state")}/wsfs' | grep -v last-mounts; true`)).toBe("");
});

test("a moment is told once, at the mount; each view has a state dir of its own, and one of the past is no other's", async () => {
  const { id } = await other.nodes.byPath("/elsewhere");
  const workspace = ((await whole.status()).workspace as { id: string }).id;
  const views: [string, string[], string][] = [
    ["now", [], `workspace-${workspace}`],
    ["then", ["--at", "0s"], `workspace-${workspace}.past`],
    ["folder", ["--path", "/elsewhere"], `workspace-${workspace}.folder-${id}`],
    ["folder-then", ["--path", "/elsewhere", "--at", "0s"], `workspace-${workspace}.folder-${id}.past`],
  ];
  for (const [name, args] of views) expect(await tryMount(name, ...args)).toMatchObject({ code: 0 });
  const statuses = await Promise.all(
    views.map(async ([name]) => JSON.parse(await wsfs("status", place.path(name), "--json")) as Record<string, string>),
  );
  expect(statuses.map(({ stateDir = "" }) => stateDir.replace(/.*\//, ""))).toEqual(views.map(([, , dir]) => dir));
  await work("echo later > later");
  for (const name of ["then", "folder-then"]) {
    check(await place.sh(`cd '${place.path(name)}' && cat $(find . -name back) && ! test -e later`));
  }
  const again = JSON.parse(await wsfs("status", place.path("then"), "--json")) as Record<string, string>;
  expect(again.at).toBe(statuses[1]?.at);
  const refused = await place.wsfs(["reload", place.path("then"), "--at", "1h"]);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/^wsfs: --at cannot change while/)]);
  for (const [name] of views) await wsfs("umount", place.path(name));
  await gateway.stop();
  // "0s" would be another moment now, of which nothing is known.
  const known = (args: string[], at = "") => args.map((arg) => (arg === "0s" ? at : arg));
  for (const [index, [name, args]] of views.entries()) {
    expect(await tryMount(name, ...known(args, statuses[index]?.at))).toMatchObject({ code: 0 });
  }
  check(await place.sh(`cd '${place.path("folder-then")}' && cat back`));
});

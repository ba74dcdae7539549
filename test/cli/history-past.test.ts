/**
 * The past of a workspace from the command line: list, log, diff, undelete, restore --at and undo, in one mount, one test
 * after the other.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { finished, until } from "../support/child.ts";
import { check } from "../support/wsfs.ts";
import { createHistory, type History, linesOf, mountBare, TIME } from "./support/history.ts";

let history: History;
beforeAll(async () => {
  history = await createHistory(["--faults"]);
}, 60_000);
afterAll(() => history?.end());

/** What a program sees: names, kinds, modes, times, sizes and bytes. */
const SEEN = "find . -printf '%p %y %m %T@ %s\\n' | sort; find . -type f -print0 | sort -z | xargs -0 -r cat";
const seen = async () => check(await history.mount.sh(SEEN)).stdout;
const becomes = (expected: string) => until("the mount shows it", async () => (await seen()) === expected);

/** The gateway's clock, once it has gone on. */
async function now(): Promise<string> {
  const { time } = await history.other.journal.append((await history.other.nodes.byPath("/")).id, "noted");
  await until("its clock has gone on", () => Date.now() > Date.parse(time) + 1);
  return new Date(Date.parse(time) + 1).toISOString();
}

test("a workspace is listed as the gateway has it, and as it was", async () => {
  await history.work("mkdir -p docs/sub; echo one > docs/a.txt; echo two > docs/sub/b.txt; ln -s a.txt docs/link");
  const then = await now();
  await history.work("echo more >> docs/a.txt; mv docs/sub docs/other; echo new > docs/new.txt");
  expect(await history.output("list", "mount/docs")).toMatch(
    new RegExp(
      `^SIZE +MODIFIED +NAME\n9 B +${TIME}  a\\.txt\n0 B .*  link -> a\\.txt\n4 B .*  new\\.txt\n +${TIME}  other/\n$`,
    ),
  );
  const names = (items: Record<string, unknown>[]) => items.map(({ path }) => path);
  const below = names(await history.json("list", "mount", "--recursive"));
  expect(below).toEqual(["/docs", "/docs/a.txt", "/docs/link", "/docs/new.txt", "/docs/other", "/docs/other/b.txt"]);
  expect(names(await history.json("list", "mount/docs", "--at", then))).toEqual([
    "/docs/a.txt",
    "/docs/link",
    "/docs/sub",
  ]);
  expect(names(await history.json("list", "mount/docs/sub", "--at", then))).toEqual(["/docs/sub/b.txt"]);
  expect(await history.json("list", "mount/docs/a.txt")).toMatchObject([{ size: 9 }]);
  expect(await history.wsfs("list", "mount/docs/sub")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not there"),
  });
  expect(await history.wsfs("list", "mount/docs", "--at", "1w")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/was not there at /),
  });
});

test("the journal in words", async () => {
  const words = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/^.*? {2}/, ""));
  const [heads, ...rows] = words(await history.output("log", "mount/docs", "--limit", "4"));
  expect(heads).toMatch(/WHAT$/);
  expect(rows.join("\n")).toMatch(
    /moved from \/docs\/sub\/ to \/docs\/other\/|created \/docs\/new\.txt|saved \/docs\/a\.txt/,
  );
  const ofFile = await history.json("log", "mount/docs/a.txt");
  expect(ofFile.map(({ kind }) => kind)).toEqual(["updated", "created"]);
  expect(ofFile[0]).toMatchObject({ path: "/docs/a.txt", by: { mount: expect.stringContaining(history.mount.dir) } });
  expect(await history.output("log", "mount", "--by", "nobody")).toBe("The journal has no entry for it.\n");
  const [, , from = ""] = /^(\S+ \S+) +(\S+:\/\S+) /m.exec(await history.output("log", "mount", "--limit", "2")) ?? [];
  expect(await history.json("log", "mount", "--by", from, "--limit", "0")).not.toHaveLength(0);
  expect(await history.json("log", "mount", "--by", "elsewhere:/folder")).toEqual([]);
  expect(await history.json("log", "mount", "--since", new Date(Date.now() + 60_000).toISOString())).toEqual([]);
  const moved = (await history.json("log", "mount/docs", "--limit", "0")).filter(({ kind }) => kind === "moved");
  expect(moved).toMatchObject([{ path: "/docs/other", before: { name: "sub" } }]);
});

test("the journal is followed as it goes on", async () => {
  const child = history.place.spawnWsfs(["log", history.mount.dir, "--follow", "--json"]);
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await until("what was before is shown", () => text.includes("/docs/new.txt"));
  check(await history.mount.sh("echo followed > followed"));
  await until("what comes is shown", () => text.includes('"path":"/followed"'));
  child.kill("SIGINT");
  const positions = linesOf(text).map(({ position }) => Number(position));
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
  await history.work("rm followed");
});

test("two versions are compared, as text or as a whole", async () => {
  await history.work("printf 'one\\nand two\\n' > docs/a.txt");
  const patch = await history.output("diff", "mount/docs/a.txt");
  expect(patch).toMatch(
    new RegExp(`^--- /docs/a\\.txt@2\t${TIME}, 9 B, .*\n\\+\\+\\+ /docs/a\\.txt@3\t${TIME}, 12 B, `),
  );
  expect(patch).toMatch(/\n@@ .* @@\n one\n-more\n\+and two\n$/);
  expect(await history.output("diff", "mount/docs/a.txt@1", "mount/docs/other/b.txt")).toMatch(/\n-one\n\+two\n$/);
  expect(await history.output("diff", "mount/docs/a.txt@3")).toMatch(
    /^\/docs\/a\.txt@3 and \/docs\/a\.txt@3 have the same content/,
  );
  await history.work("printf '\\0bytes' > raw");
  await history.work("printf '\\0others' > raw");
  expect(await history.output("diff", "mount/raw")).toMatch(
    new RegExp(
      `^The contents differ, and are no text .*\nFILE .*SHA-256\n/raw@1 +${TIME} +6 B .*[0-9a-f]{64}\n/raw@2 .*7 B `,
    ),
  );
  expect(await history.json("diff", "mount/raw")).toMatchObject([
    { isSame: false, isText: false, old: { number: 1 }, new: { number: 2 } },
  ]);
  expect((await history.wsfs("diff", "mount/docs/new.txt")).stderr).toMatch(
    /^wsfs: \/docs\/new\.txt has 1 version only\n$/,
  );
});

test("what was deleted comes back: the same nodes, with all that went with it", async () => {
  await history.work(
    "rm raw; mkdir -p tree/deep; echo x > tree/x; chmod 600 tree/x; echo y > tree/deep/y; touch -d 2020-02-02 tree/deep",
  );
  const ids = async () =>
    (await history.json("list", "mount/tree", "--recursive")).map(({ id, path }) => `${String(path)} ${String(id)}`);
  const [before, seenBefore] = [await ids(), await seen()];
  await history.work("rm -rf tree");
  expect(await history.output("list", "mount", "--deleted")).toMatch(
    new RegExp(`^SIZE +DELETED +BY +FROM +NAME\n +${TIME} .*${history.mount.dir} +tree/\n7 B +${TIME} .* raw\n`),
  );
  expect(await history.output("undelete", "mount/tree")).toMatch(
    new RegExp(`^Back: /tree \\(deleted ${TIME}\\), with 3 things in it\\.\n$`),
  );
  expect(await ids()).toEqual(before);
  const sorted = (text: string) =>
    text
      .split("\n")
      .filter((line) => !/^\. /.test(line))
      .join("\n");
  await until("the mount shows it", async () => sorted(await seen()) === sorted(seenBefore));
});

test("what cannot come back is said, and how it can", async () => {
  await history.work("echo other > raw");
  expect((await history.wsfs("undelete", "mount/raw")).stderr).toBe(
    "wsfs: /raw cannot come back: something has the name /raw: --as gives it another\n",
  );
  expect(await history.json("undelete", "mount/raw", "--as", "raw (old)")).toMatchObject([
    { node: { path: "/raw (old)" }, restored: 1, left: 0 },
  ]);
  await history.work("rm -rf tree");
  expect((await history.wsfs("undelete", "mount/tree/x")).stderr).toBe(
    "wsfs: /tree/x cannot come back: its folder is deleted: undelete /tree first\n",
  );
  expect((await history.wsfs("undelete", "mount/docs")).stderr).toBe("wsfs: /docs is not deleted\n");
  expect((await history.wsfs("undelete", "mount/none")).stderr).toMatch(/^wsfs: nothing was deleted at \/none; /);
});

test("a folder whose return was broken off comes back whole when it is asked for again", async () => {
  const [gone] = (await history.json("list", "mount", "--deleted")).filter(({ name }) => name === "tree");
  const inside = await history.json("list", "mount/tree", "--deleted", "--recursive");
  const begin = Math.min(...inside.slice(0, 3).map(({ deletedAt }) => Date.parse(String(deletedAt))));
  await history.other.nodes.restore(String(gone?.id), { idempotencyKey: `undelete-${begin}-test` });
  expect(await history.json("undelete", "mount/tree")).toMatchObject([{ node: { path: "/tree" }, restored: 3 }]);
  expect((await history.wsfs("undelete", "mount/tree")).stderr).toBe("wsfs: /tree is not deleted\n");
});

test("a tree goes back to a moment: planned, then done", async () => {
  const before = await seen();
  const then = await now();
  await history.work("rm -rf docs/other; echo changed > docs/a.txt; mv docs/link docs/moved; echo new > docs/newer");
  const planned = await history.wsfs("restore", "mount/docs", "--at", then);
  expect(planned).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/wsfs: nothing was changed; --yes does it\n$/),
  });
  expect(planned.stdout).toMatch(/^restore +\/docs\/other$/m);
  expect(planned.stdout).toMatch(/^content +\/docs\/a\.txt$/m);
  expect(planned.stdout).toMatch(/^move +\/docs\/link, back from \/docs\/moved$/m);
  const done = await history.json("restore", "mount/docs", "--at", then, "--yes");
  expect(done.at(-1)).toMatchObject({ result: { skipped: 0 } });
  await until("what is newer stays", async () => (await seen()).includes("./docs/newer "));
  expect(await history.output("restore", "mount/docs", "--at", then, "--exact", "--yes")).toMatch(
    /\n\/docs is as it was at /,
  );
  const ofDocs = (text: string) => text.split("\n").filter((line) => line.startsWith("./docs/"));
  await until("the mount shows it", async () => ofDocs(await seen()).join() === ofDocs(before).join());
  expect(await history.output("restore", "mount/docs", "--at", then)).toMatch(
    /^\/docs is as it was at .*, beside newer files\.\n$/,
  );
  expect(await history.wsfs("restore", "mount/docs/newer", "--at", then)).toMatchObject({ code: 1, stdout: "" });
  expect(await history.wsfs("restore", "mount/docs", "--exact")).toMatchObject({ code: 2, stdout: "" });
});

test("what the mount did is taken back, and that again; what others changed since is not", async () => {
  await history.work("echo base > shared");
  const before = await seen();
  const then = await now();
  await history.work("rm -rf docs tree; echo mine > shared; mkdir fresh; echo f > fresh/f; mv raw renamed");
  const after = await seen();
  const planned = await history.wsfs("undo", history.mount.dir, "--since", then);
  const said = (less: string) =>
    new RegExp(`these are the changes from ${TIME} to ${TIME}${less}\nwsfs: nothing was changed; --yes does it\n$`);
  expect(planned).toMatchObject({ code: 1, stderr: expect.stringMatching(said("")) });
  expect(await history.wsfs("undo", history.mount.dir)).toMatchObject({
    ...{ code: 1, stderr: expect.stringMatching(said("; --since or --last takes back less")) },
  });
  expect(planned.stdout).toMatch(/^restore +\/docs$/m);
  expect(planned.stdout).toMatch(/^delete +\/fresh\/f$/m);
  expect(planned.stdout).toMatch(/^move +\/raw, back from \/renamed$/m);
  expect(planned.stdout).toMatch(/^content +\/shared, as before$/m);
  expect(await seen()).toBe(after);
  expect(await history.output("undo", history.mount.dir, "--since", then, "--yes")).toMatch(
    / taken back; wsfs undo once more /,
  );
  await becomes(before);
  expect((await history.json("undo", history.mount.dir, "--yes")).at(-1)).toMatchObject({ result: { skipped: 0 } });
  await becomes(after);
  expect((await history.json("undo", history.mount.dir, "--yes")).at(-1)).toMatchObject({ result: { skipped: 0 } });
  await becomes(before);
  await history.work("echo again > shared; echo two > docs/a.txt");
  await history.other.files.write((await history.other.nodes.byPath("/shared")).id, "by another program");
  expect(await history.output("undo", history.mount.dir, "--last", "2", "--yes")).toMatch(
    new RegExp(`^content +/docs/a\\.txt, as before\nskipped +/shared: changed since(?: by \\S+)?, ${TIME}\n`),
  );
  await until("the other's stays", async () => (await seen()).includes("by another program"));
});

test("an undo of one folder, of what is not sent yet, and by the name of the mount", async () => {
  await history.work("echo 1 > docs/here; echo 1 > there");
  await history.setFaults({ faults: { writeContent: { unavailable: 1 } } });
  check(await history.mount.sh("echo 2 > docs/here; echo 2 > there"));
  const command = history.place.spawnWsfs(["undo", "mount/docs", "--last", "1", "--yes"]);
  const ended = finished(command);
  await new Promise((resolve) => command.stderr?.once("data", resolve));
  await history.setFaults({ faults: {} });
  const inDocs = await ended;
  expect(inDocs.stdout).toMatch(/^content +\/docs\/here, as before\n1 change taken back/);
  expect(inDocs.stderr).toMatch(/^wsfs: waiting until .*mount has uploaded 2 changes/);
  await until(
    "the mount shows it",
    async () => check(await history.mount.sh("cat docs/here there")).stdout === "1\n2\n",
  );
  expect(await history.wsfs("undo", "mount", "--since", "1h", "--last", "1")).toMatchObject({ code: 2 });
  expect(await history.output("undo", "mount", "--since", new Date(Date.now() + 60_000).toISOString())).toBe(
    "There is nothing to undo.\n",
  );
});

test("a gateway without history: one clear line from each", async () => {
  const plain = await mountBare(history.place);
  check(await plain.sh("echo x > file"));
  const commands = [
    ["log", "plain"],
    ["diff", "plain/file"],
    ["undelete", "plain/file"],
    ["restore", "plain/file", "--at", "1h"],
    ["list", "plain", "--deleted"],
    ["undo", "plain"],
  ];
  for (const args of commands) {
    const { code, stdout, stderr } = await history.wsfs(...args);
    expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: "" });
    expect(stderr).toMatch(/^wsfs: this gateway keeps no such history: .*\n$/);
  }
});

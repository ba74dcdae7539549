/**
 * The versions of a file from the command line: `wsfs versions`, `wsfs restore FILE@V`, of paths in a mount and of a
 * workspace without one.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { restoreVersion } from "../../src/cli/history/restore.ts";
import { until } from "../support/child.ts";
import { signIn } from "../support/sign-in.ts";
import { check } from "../support/wsfs.ts";
import { createHistory, type History, mountBare, TIME } from "./support/history.ts";

let history: History;
beforeAll(async () => {
  history = await createHistory();
}, 60_000);
afterAll(() => history?.end());

async function saved(name: string, ...contents: string[]): Promise<void> {
  for (const content of contents) {
    check(await history.mount.sh(`printf %s '${content}' > '${name}'`));
    check(await history.wsfs("drain", history.mount.dir));
  }
}

async function read(name: string): Promise<string> {
  return check(await history.mount.sh(`cat '${name}'`)).stdout;
}

describe("in a mount", () => {
  test("versions are listed newest first, with who saved them where", async () => {
    await saved("notes.txt", "one", "two two", "three");
    const table = await history.output("versions", `${history.mount.dir}/notes.txt`);
    expect(table).toMatch(
      new RegExp(
        `^VERSION +SAVED +SIZE +BY +FROM\n3 \\(newest\\) +${TIME} +5 B +\\S+:${history.mount.dir}\n2 +${TIME} +7 B .*\n1 +${TIME} +3 B .*\n$`,
      ),
    );
    expect(await history.json("versions", `${history.mount.dir}/notes.txt`)).toMatchObject([
      { number: 3, size: 5, branch: "main" },
      { number: 2, size: 7 },
      { number: 1, size: 3 },
    ]);
    expect(await history.json("versions", `${history.mount.dir}/notes.txt`, "--limit", "1")).toMatchObject([
      { number: 3 },
    ]);
  });

  test("a path may be relative, go through links outside, and through the folder one is in", async () => {
    check(await history.place.sh(`ln -s mount link && mkdir -p '${history.mount.dir}/sub'`));
    for (const path of ["mount/notes.txt", "./link/sub/../notes.txt", "mount//notes.txt"]) {
      expect(await history.json("versions", path), path).toHaveLength(3);
    }
    const inside = check(
      await history.mount.sh(`cd sub && '${process.execPath}' '${history.place.program}' versions ../notes.txt --json`),
    );
    expect(inside.stdout.trimEnd().split("\n")).toHaveLength(3);
  });

  test("an earlier version is restored as a new one, and the mount shows it", async () => {
    expect(await history.output("restore", `${history.mount.dir}/notes.txt@1`)).toMatch(
      new RegExp(`^Restored: version 1 of /notes.txt \\(${TIME}, 3 B\\) is the newest now\\.\n$`),
    );
    await until("the mount shows it", async () => (await read("notes.txt")) === "one");
    const [{ attributes = {} } = {}] = await history.other.versions
      .list((await history.other.nodes.byPath("/notes.txt")).id)
      .all();
    expect(attributes?.mtime).toBeDefined();
    expect((await history.other.nodes.byPath("/notes.txt")).attributes).toEqual(attributes);
    expect(await history.json("versions", `${history.mount.dir}/notes.txt`)).toMatchObject([
      { number: 4, size: 3, by: { mount: expect.stringContaining(history.mount.dir) } },
      { number: 3 },
      { number: 2 },
      { number: 1 },
    ]);
    expect(await history.json("restore", `${history.mount.dir}/notes.txt@-1`)).toMatchObject([
      { isChanged: true, version: { number: 3 } },
    ]);
    expect(await history.json("restore", `${history.mount.dir}/notes.txt@3`)).toMatchObject([{ isChanged: true }]);
    expect(await history.output("restore", `${history.mount.dir}/notes.txt@6`)).toMatch(
      /^It is the newest already: version 6 /,
    );
  });

  test("what programs saved just before goes first, and is then the version that is gone back from", async () => {
    check(await history.mount.sh("printf late > notes.txt"));
    expect(await history.json("restore", `${history.mount.dir}/notes.txt@2`)).toMatchObject([{ isChanged: true }]);
    expect(await history.json("versions", `${history.mount.dir}/notes.txt`, "--limit", "3")).toMatchObject([
      { number: 8, size: 7 },
      { number: 7, size: 4 },
      { number: 6 },
    ]);
    await until("the mount shows it", async () => (await read("notes.txt")) === "two two");
  });

  test("a version of a moment, and none so old", async () => {
    const made = (await history.json("versions", `${history.mount.dir}/notes.txt`)).at(-1)?.createdAt;
    expect(await history.json("restore", `${history.mount.dir}/notes.txt@${String(made)}`)).toMatchObject([
      { version: { number: 1 } },
    ]);
    expect((await history.wsfs("restore", `${history.mount.dir}/notes.txt@3w`)).stderr).toMatch(
      new RegExp(`^wsfs: /notes.txt has no version that old: it was made after ${TIME}; `),
    );
  });

  test("a name that holds @ is itself where it is there; --version names the version then", async () => {
    await saved("a@2", "x", "y");
    await saved("a", "p", "q", "r");
    expect((await history.wsfs("restore", "mount/a@2")).stderr).toMatch(/^wsfs: which version of \/a@2\? /);
    expect(await history.json("restore", "mount/a@2@1")).toMatchObject([
      { node: { name: "a@2" }, version: { number: 1 } },
    ]);
    expect(await history.json("restore", "mount/a@2", "--version", "2")).toMatchObject([{ node: { name: "a@2" } }]);
    expect(await history.json("restore", "mount/a@1")).toMatchObject([{ node: { name: "a" }, version: { number: 1 } }]);
  });

  test("what cannot be is said in one line", async () => {
    const refusals: [string[], number, RegExp][] = [
      [["versions", history.mount.dir], 1, /^\/ is a folder, and only files have versions; /],
      [["versions", "mount/none"], 1, /^\/none is not there; if it was deleted: /],
      [["restore", "mount/a@99"], 1, /^\/a has no version 99; wsfs versions /],
      [["restore", "mount/a@x"], 2, /^expected as a version a version's number, -1 .*, got "x"$/],
      [["restore", "mount/a"], 2, /^which version of \/a\? /],
      [["versions", "home"], 3, /^home is in no mount of wsfs; --workspace /],
    ];
    for (const [args, code, message] of refusals) {
      const { stdout, stderr, ...ended } = await history.wsfs(...args);
      expect({ args, stdout, ...ended }).toEqual({ args, stdout: "", code, signal: null });
      expect(stderr).toMatch(/^wsfs: .*\n$/);
      expect(stderr.slice("wsfs: ".length).trimEnd()).toMatch(message);
    }
  });

  test("somebody who saves at the same moment is not overwritten", async () => {
    await saved("race", "first", "second");
    const node = await history.other.nodes.byPath("/race");
    await history.other.files.write(node.id, "by another program");
    const restoring = restoreVersion(history.other, { node, selector: { number: 1 } }, true, async () => {});
    await expect(restoring).rejects.toThrow("/race was saved from elsewhere at this moment; nothing was changed");
    expect((await history.other.nodes.get(node.id)).size).toBe("by another program".length);
  });

  test("what the mount cannot send is named, and is in the way of its own file only", async () => {
    await saved("kept", "k1", "k2");
    const port = new URL(history.gateway.baseUrl).port;
    await history.gateway.stop();
    history.gateway = await history.place.gateway({ args: ["--port", port, "--fault", "writeContent:unavailable=1"] });
    check(await history.mount.sh("printf unsent > kept"));
    const { code, stdout, stderr } = await history.wsfs("restore", "mount/kept@1", "--timeout", "1");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^wsfs: waiting until .*mount has uploaded 1 change/);
    expect(stderr).toMatch(
      /\nwsfs: nothing was changed, as .*mount has not uploaded all: \/kept \(.+\); see wsfs queue .*\n$/,
    );
    expect(await history.json("restore", "mount/a@3", "--timeout", "1")).toMatchObject([{ isChanged: true }]);
    const shown = await history.wsfs("versions", "mount/kept");
    expect(shown.stderr).toMatch(/^wsfs: not shown: 1 change that .*mount has not uploaded yet\n$/);
    await history.gateway.stop();
    history.gateway = await history.place.gateway({ args: ["--port", port] });
    expect(await history.json("restore", "mount/kept@1")).toMatchObject([{ isChanged: true }]);
    expect(await history.json("versions", "mount/kept")).toMatchObject([{ size: 2 }, { size: 6 }, {}, {}]);
  });
});

describe("of a workspace that is named", () => {
  test("no mount is needed, but a sign-in", async () => {
    const own = ["--data", history.gateway.data];
    const added = check(await history.place.wsfs(["gateway", "user", "add", "ada", ...own, "--generate"]));
    check(
      await history.place.wsfs([
        "gateway",
        "grant",
        "set",
        "ada",
        ...own,
        "--workspace",
        "workspace",
        "--role",
        "editor",
      ]),
    );
    check(await history.place.wsfs(["env", "add", "team", "--base-url", history.gateway.baseUrl]));
    const W = ["--workspace", "workspace"];
    expect((await history.wsfs("versions", ...W, "/notes.txt")).stderr).toMatch(
      /^wsfs: not signed in: run "wsfs login --env team"\n$/,
    );
    await signIn(history.place, { env: "team", baseUrl: history.gateway.baseUrl, password: added.stdout.trim() });
    expect(await history.wsfs("list", "--workspace", "elsewhere", "/")).toMatchObject({
      ...{ code: 1, stderr: 'wsfs: no workspace "elsewhere" is visible to this login\n' },
    });
    const before = await history.json("versions", ...W, "/notes.txt");
    expect(await history.json("restore", ...W, "notes.txt@2")).toMatchObject([
      { isChanged: true, version: { number: 2 } },
    ]);
    const [newest] = await history.json("versions", ...W, "/notes.txt");
    expect(newest).toMatchObject({ number: before.length + 1 });
    expect(newest?.by).toEqual({ account: "ada" });
    const [oldest] = before.slice(-1);
    const mount = (oldest?.by as { mount?: string } | undefined)?.mount ?? "";
    expect(await history.output("undo", ...W, "--mount", mount, "--yes")).toBe(
      "There is nothing to undo: only changes of ada are looked for.\n",
    );
  });

  test("a mount that goes by a sign-in has it for its paths, also after a reload", async () => {
    check(await history.place.sh("mkdir signed"));
    const by = ["--env", "team", "--workspace", "workspace", "--state-dir", history.place.path("signed.state")];
    check(await history.wsfs("mount", "signed", ...by, "--background"));
    const listed = await history.json("versions", "signed/notes.txt");
    expect(listed.length).toBeGreaterThan(1);
    check(await history.wsfs("reload", "signed"));
    expect(await history.json("restore", "signed/notes.txt@1")).toMatchObject([{ isChanged: true }]);
    const [newest] = await history.json("versions", "signed/notes.txt");
    expect(newest?.by).toEqual({ account: "ada", mount: expect.stringMatching(/:.*\/signed$/) });
    check(await history.wsfs("umount", "signed"));
    const mount = (newest?.by as { mount?: string } | undefined)?.mount ?? "";
    const undo = ["undo", "--workspace", "workspace", "--mount", mount, "--last", "1", "--yes"];
    const head = async () => (await history.json("versions", "--workspace", "workspace", "/notes.txt"))[0]?.contentHash;
    const before = await head();
    for (const expected of [listed[0]?.contentHash, before]) {
      expect((await history.json(...undo)).at(-1)).toEqual({ result: { undone: 1, skipped: 0 } });
      expect(await head()).toBe(expected);
    }
    expect((await history.wsfs("undo", "--workspace", "workspace")).stderr).toMatch(
      /^wsfs: which mount's changes\? --mount /,
    );
  });
});

test("a gateway that keeps no versions: one clear line", async () => {
  const plain = await mountBare(history.place);
  check(await plain.sh("echo x > file"));
  for (const args of [
    ["versions", "plain/file"],
    ["restore", "plain/file@1"],
  ]) {
    expect(await history.wsfs(...args)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "wsfs: this gateway keeps no such history: its profile says that it is plain\n",
    });
  }
});

/** What the history commands say of versions that the policy of the workspace has given up. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check } from "../support/wsfs.ts";
import { createHistory, type History } from "./support/history.ts";

let history: History;
/** A moment at which the file had each of its versions. */
const moments: string[] = [];

beforeAll(async () => {
  history = await createHistory();
  for (const text of ["one", "two", "three", "four"]) {
    await history.work(`printf ${text} > f; echo ${text} >> kept`);
    const { time } = await history.other.journal.append((await history.other.nodes.byPath("/")).id, "noted");
    await until("the gateway's clock has gone on", () => Date.now() > Date.parse(time) + 1);
    moments.push(new Date(Date.parse(time) + 1).toISOString());
  }
  const { id } = await history.other.nodes.byPath("/f");
  await history.work("mkdir d; mv f d");
  const gateway = async (...args: string[]) =>
    check(await history.place.wsfs(["gateway", ...args], { env: { WSFS_DATA: history.gateway.data } }));
  await gateway("policy", "set", "--workspace", history.gateway.workspace, "--versions", "none");
  await gateway("prune");
  const kept = await history.other.versions.list(id).all();
  expect(kept.map(({ number }) => number)).toEqual([4]);
}, 60_000);
afterAll(() => history?.end());

const failure = async (...args: string[]) => {
  const { code, stdout, stderr } = await history.wsfs(...args);
  expect([code, stdout]).toEqual([1, ""]);
  return stderr;
};

test("versions that were given up are counted", async () => {
  const shown = await history.wsfs("versions", "mount/d/f");
  expect(shown).toMatchObject({ code: 0, stderr: "3 more were given up by the workspace's policy\n" });
  expect(shown.stdout.trimEnd().split("\n")).toHaveLength(2);
  expect(await history.json("versions", "mount/d/f")).toMatchObject([{ number: 4 }, { thinned: 3 }]);
});

test("no other version is taken for one that was given up", async () => {
  const gone =
    /^wsfs: the version of \/d\/f of \S+ \S+ is not there: the workspace's policy has given it up; wsfs versions lists those that are kept\n$/;
  for (const at of moments.slice(0, 3)) {
    expect(await failure("restore", `mount/d/f@${at}`)).toMatch(gone);
    expect(await failure("diff", `mount/d/f@${at}`)).toMatch(gone);
  }
  expect(await failure("restore", "mount/d/f@2")).toMatch(
    /has no version 2, or the workspace's policy has given it up/,
  );
  expect(await failure("restore", "mount/d/f@1d")).toMatch(/has no version that old: it was made after /);
  expect(await history.output("restore", `mount/d/f@${moments[3]}`)).toMatch(/^It is the newest already: version 4 /);
});

test("a file that cannot be as it was is not said to be", async () => {
  const { code, stdout } = await history.wsfs("restore", "mount/kept", "--at", moments[0] ?? "", "--yes");
  expect(stdout).toMatch(
    /^skip +\/kept: the version of then is no longer kept\n\/kept is not as it was at .*, and nothing was changed: 1 skipped\.\n$/,
  );
  expect(code).toBe(1);
  await history.work("mkdir e; mv kept e");
  const both = await history.wsfs("restore", "mount/", "--at", moments[0] ?? "", "--yes");
  expect(both.stdout).toMatch(/\n\/ is not as it was at .* in all: \d+ changes, 2 skipped\.\n$/);
  expect(both.code).toBe(1);
});

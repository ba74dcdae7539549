/** `wsfs gateway policy`, `prune`, `backup` and `restore` as the owner calls them, while the gateway runs, while it does not, and killed at work. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { node as nodeSchema } from "../../src/contract/resources.ts";
import { spawnUntilLine } from "../support/child.ts";
import { createPlace, type Place, type TestGateway } from "../support/wsfs.ts";

const DIE = fileURLToPath(new URL("../support/die-at-step.mjs", import.meta.url));
const LARGE = "x".repeat(40_000);

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const data = () => ({ WSFS_DATA: place.path("gateway") });
const command = async (...args: string[]) => {
  const { code, stdout, stderr } = await place.wsfs(["gateway", ...args], { env: data() });
  return [code, stdout, stderr];
};

/** Killed at the fault point. */
async function killed(label: string, ...args: string[]): Promise<void> {
  const once = place.path("died");
  rmSync(once, { force: true });
  const env = { ...data(), WSFS_DIE_AT: label, WSFS_DIE_ONCE: once };
  const { signal } = await place.run(process.execPath, ["--import", DIE, place.program, "gateway", ...args], { env });
  expect([label, signal]).toEqual([label, "SIGKILL"]);
}

async function write({ baseUrl, token }: TestGateway, name: string, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const body = new FormData();
    body.set("file", new Blob([`${number} ${LARGE}`]));
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${baseUrl}/v1/files/${name}`, { method: "POST", body, headers });
    expect(answer.status).toBeLessThan(300);
  }
}

test.each([true, false])("a policy is shown, set and applied, while the gateway runs: %s", async (runs) => {
  expect(await command("policy")).toEqual([1, "", expect.stringContaining("is no folder of a gateway")]);
  const gateway = await place.gateway({ args: ["--workspace", "main", "--workspace", "papers"] });
  await write(gateway, "f", 4);
  if (!runs) await gateway.stop();
  const shown = [
    "WORKSPACE  VERSIONS      DELETED",
    "main       all for ever  ever",
    "papers     all for ever  ever",
    "",
  ];
  expect(await command("policy")).toEqual([0, shown.join("\n"), ""]);
  expect(await command("prune")).toEqual([
    0,
    ["main", "papers"]
      .map((name) => `${name}: 0 versions and 0 deleted nodes gone, 0 B, 0 files of the blob store\n`)
      .join(""),
    "",
  ]);
  const set = await command(
    "policy",
    "set",
    "--workspace",
    "main",
    "--versions",
    "hourly for 1d,monthly for ever",
    "--deleted",
    "2w",
  );
  expect(set).toEqual([
    0,
    'main keeps of the past: hourly for 1d, monthly for ever; deleted files can be restored for 14d\nIt is applied within a day; "wsfs gateway prune" applies it now\n',
    "",
  ]);
  expect(await command("policy", "set", "--workspace", "main", "--versions", "none", "--json")).toEqual([
    0,
    '{"workspace":"main","versions":"none","deleted":"14d"}\n',
    "",
  ]);
  const would = "main: 3 versions and 0 deleted nodes would go, 117 KiB, 3 files of the blob store\n";
  expect(await command("prune", "--workspace", "main", "--dry-run")).toEqual([0, would, ""]);
  const pruned = {
    workspaces: [{ workspace: "main", versions: 3, nodes: 0, bytes: 3 * 40_002, blobs: 3 }],
    orphans: 0,
  };
  expect(await command("prune", "--workspace", "main", "--json")).toEqual([0, `${JSON.stringify(pruned)}\n`, ""]);
});

test("what is wrong is told in a line", async () => {
  const gateway = await place.gateway();
  const refused = async (...args: string[]) => {
    const [code, stdout, stderr] = await command(...args);
    expect([stdout, stderr]).toEqual(["", expect.stringMatching(/^wsfs: [^\n]+\n$/)]);
    return [code, String(stderr).slice("wsfs: ".length, -1)];
  };
  const set = ["policy", "set", "--workspace"];
  expect(await refused(...set, "workspace")).toEqual([2, "gateway policy set needs --versions, --deleted or both"]);
  expect(await refused(...set, "nowhere", "--deleted", "1d")).toEqual([1, 'There is no workspace "nowhere".']);
  expect(await refused(...set, "workspace", "--deleted", "soon")).toEqual([
    2,
    '--deleted: expected an age such as 12h, 30d, 8w or 2y, or "ever", got "soon"',
  ]);
  expect(await refused("prune", "--workspace", "nowhere")).toEqual([1, 'There is no workspace "nowhere".']);
  expect(await refused("backup")).toEqual([2, expect.stringContaining("needs")]);
  expect(await refused("backup", gateway.data)).toEqual([1, expect.stringContaining("is no folder of backups")]);
  const home = place.path("home");
  expect(await refused("restore", home, "--data", place.path("new"))).toEqual([
    1,
    `${home} holds no backup that is whole`,
  ]);
});

test("killed at any step, a backup leaves nothing that looks whole, and the next one clears it away", async () => {
  const gateway = await place.gateway();
  await write(gateway, "f", 3);
  const backups = place.path("backups");
  for (const label of ["backup: rows copied", "backup: blobs taken", "backup: verified"]) {
    await killed(label, "backup", backups);
    const [code, , stderr] = await command("restore", backups, "--data", place.path("other"));
    expect([code, stderr]).toEqual([1, `wsfs: ${backups} holds no backup that is whole\n`]);
    expect(existsSync(place.path("other"))).toBe(false);
  }
  // What it held is free again.
  await command("policy", "set", "--workspace", "workspace", "--versions", "none");
  expect(JSON.parse(String((await command("prune", "--json"))[1]))).toMatchObject({ workspaces: [{ blobs: 2 }] });
  expect((await command("backup", backups, "--verify"))[1]).toMatch(
    / is whole: 1 content \(39\.1 KiB; 1 blob, 0 of them copied\), bytes and sizes verified\n$/,
  );
  expect(readdirSync(backups).filter((name) => name.startsWith("2"))).toEqual([expect.stringMatching(/Z$/)]);

  const other = place.path("other");
  await killed("restore: verified", "restore", backups, "--data", other);
  expect(existsSync(other)).toBe(false);
  rmSync(`${other}.restoring`, { recursive: true });
  expect((await command("restore", backups, "--data", other, "--verify"))[0]).toBe(0);
  const restored = await place.gateway({ name: "other" });
  const headers = { authorization: `Bearer ${gateway.token}` };
  const { id } = nodeSchema.parse(await (await fetch(`${restored.baseUrl}/v1/files/f`, { headers })).json());
  const content = await fetch(`${restored.baseUrl}/v1/nodes/${id}/content`, { headers });
  expect(await content.text()).toBe(`2 ${LARGE}`);
});

test("killed between rows and blobs, a prune leaves blobs that the next one frees", async () => {
  const gateway = await place.gateway();
  await write(gateway, "f", 4);
  await command("policy", "set", "--workspace", "workspace", "--versions", "none");
  await gateway.stop();
  await killed("gateway: versions thinned", "prune");
  const blobs = () =>
    readdirSync(join(gateway.data, "blobs"), { recursive: true, encoding: "utf8" }).filter((name) => name.length > 36);
  expect(blobs().length).toBe(4);
  expect(JSON.parse(String((await command("prune", "--json"))[1]))).toMatchObject({
    workspaces: [{ versions: 0 }],
    orphans: 3,
  });
  expect(blobs().length).toBe(1);
});

test.each([
  { made: ["main"], shown: "workspace main," },
  { made: ["main", "archive"], shown: "workspaces main, archive," },
])("a gateway that was restored has the workspaces of the backup: $made", async ({ made, shown }) => {
  const gateway = await place.gateway({ args: made.flatMap((name) => ["--workspace", name]) });
  await write(gateway, "f", 1);
  const backups = place.path("backups");
  expect((await command("backup", backups))[0]).toBe(0);
  expect((await command("restore", backups, "--data", place.path("other")))[0]).toBe(0);
  const restored = await place.gateway({ name: "other" });
  expect(restored.workspace).toBe("main");
  const headers = { authorization: `Bearer ${restored.token}` };
  expect((await fetch(`${restored.baseUrl}/v1/files/f`, { headers })).status).toBe(200);
  const policies = await place.wsfs(["gateway", "policy"], { env: { WSFS_DATA: restored.data } });
  const names = policies.stdout.trimEnd().split("\n").slice(1);
  expect(names.map((line) => line.split(" ")[0])).toEqual(made.toSorted());
  await restored.stop();
  rmSync(join(restored.data, "gateway.json"));
  const again = [place.program, "gateway", "--data", restored.data];
  const { child, line, ended } = await spawnUntilLine(process.execPath, again);
  child.kill("SIGTERM");
  await ended;
  expect(line).toContain(shown);
});

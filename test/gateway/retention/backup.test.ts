/** Backups of a gateway that is written to and pruned meanwhile, and what becomes of them. */
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeBackup } from "../../../src/gateway/backup/backup.ts";
import { restoreBackup } from "../../../src/gateway/backup/restore.ts";
import { checkHold, holdBlobs } from "../../../src/gateway/data-folder.ts";
import { askOwner } from "../../../src/gateway/owner-calls.ts";
import { type RunningGateway, startGateway } from "../../../src/gateway/start.ts";
import { wallTime } from "../../../src/lib/clocks.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import type { AnswerJson } from "../../support/answer-json.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const LARGE = "x".repeat(40_000);

interface Served {
  readonly data: string;
  readonly gateway: RunningGateway;
  readonly owner: ReturnType<typeof askOwner>;
  write(name: string, content: string): Promise<AnswerJson>;
  read(path: string): Promise<{ status: number; text: string }>;
}

async function serve(data: string): Promise<Served> {
  const socketPath = path.join(data, "s");
  mkdirSync(data, { recursive: true });
  const gateway = await startGateway({ dataDir: data, socketPath });
  onTestFinished(() => gateway.close());
  const headers = { authorization: `Bearer ${await gateway.issueToken({ workspace: "workspace" })}` };
  return {
    data,
    gateway,
    owner: askOwner(socketPath),
    async write(name, content) {
      const body = new FormData();
      body.set("file", new Blob([content]));
      const answer = await fetch(`${gateway.baseUrl}/v1/files/${name}`, { method: "POST", body, headers });
      expect(answer.status).toBeLessThan(300);
      return JSON.parse(await answer.text());
    },
    async read(at) {
      const answer = await fetch(`${gateway.baseUrl}/v1/${at}`, { headers });
      return { status: answer.status, text: await answer.text() };
    },
  };
}

async function contentOf(served: Served, name: string): Promise<string> {
  const { id }: AnswerJson = JSON.parse((await served.read(`files/${name}`)).text);
  return (await served.read(`nodes/${id}/content`)).text;
}

const backUp = (dataDir: string, folder: string, step: (label: string) => void = () => {}) =>
  makeBackup({ dataDir, folder, isThorough: true, clock: { wallClock: () => wallTime(Date.now()), step } });

async function restore(from: string, isThorough = true): Promise<Served & { readonly position: number }> {
  const dataDir = path.join(await temporaryFolder(), "restored");
  const { position } = await restoreBackup({
    from,
    dataDir,
    claim: (folder) => mkdirSync(folder),
    isThorough,
    clock: systemClock,
  });
  return { ...(await serve(dataDir)), position };
}

test("while it is written to: what is restored is one moment, with all that was answered before", async () => {
  const served = await serve(await temporaryFolder());
  const folder = path.join(await temporaryFolder(), "backups");
  let isOver = false;
  let written = 0;
  /** Small and large ones by turns: of a moment the second is what the first is, or one behind. */
  const writer = (async () => {
    while (!isOver) {
      written += 1;
      await served.write("first", `${written}`);
      await served.write("second", `${written} ${LARGE}`);
    }
  })();
  const answered: { before: number; backup: string; position: number }[] = [];
  for (let round = 0; round < 3; round += 1) {
    await expect.poll(() => written, { timeout: 30_000 }).toBeGreaterThan(10 * (round + 1));
    const before = written - 1;
    answered.push({ before, ...(await backUp(served.data, folder)) });
  }
  isOver = true;
  await writer;
  for (const { before, backup, position } of answered) {
    const restored = await restore(backup);
    const [first, second] = [
      Number(await contentOf(restored, "first")),
      parseInt(await contentOf(restored, "second"), 10),
    ];
    expect([first >= before, first - second === 0 || first - second === 1]).toEqual([true, true]);
    const { items }: AnswerJson = JSON.parse((await restored.read("journal?orderBy=-position&pageSize=1")).text);
    expect(items[0]?.position).toBe(position);
    expect(restored.position).toBe(position);
  }
});

test("a prune meanwhile takes nothing from it, and frees what it left with the next", async () => {
  const served = await serve(await temporaryFolder());
  const folder = path.join(await temporaryFolder(), "backups");
  const versions: AnswerJson[] = [];
  for (let number = 0; number < 20; number += 1) versions.push(await served.write("f", `${number} ${LARGE}`));
  await served.owner.setPolicy("workspace", { versions: "none" });
  let pruned: Promise<unknown> | undefined;
  const { backup } = await backUp(served.data, folder, (label) => {
    // The rows are copied, no blob is taken yet.
    if (label === "backup: rows copied") pruned = served.owner.prune(undefined, false);
  });
  expect(await pruned).toMatchObject({ workspaces: [{ versions: 19 }] });
  const restored = await restore(backup);
  for (const [number, { id, head }] of versions.entries()) {
    expect(await restored.read(`nodes/${id}/content?version=${head}`)).toEqual({
      status: 200,
      text: `${number} ${LARGE}`,
    });
  }
  await served.owner.prune(undefined, false);
  expect(blobsOf(served.data).length).toBe(1);
});

function blobsOf(data: string): string[] {
  const folder = path.join(data, "blobs");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).isFile());
}

test("blobs are held by any number of backups, and free again with the last", async () => {
  const folder = await temporaryFolder();
  const check = checkHold(folder);
  onTestFinished(check.close);
  const [one, other] = [holdBlobs(folder), holdBlobs(folder)];
  expect(check.isHeld()).toBe(true);
  one.release();
  expect(check.isHeld()).toBe(true);
  other.release();
  expect(check.isHeld()).toBe(false);
});

test("contents are links on the same disk; on another one they are copied once, and linked by the next backup", async () => {
  const served = await serve(await temporaryFolder());
  await served.write("f", LARGE);
  const [blob = ""] = blobsOf(served.data);
  const near = await backUp(served.data, path.join(await temporaryFolder(), "backups"));
  expect([near.blobs, near.copied, statSync(blob).nlink]).toEqual([1, 0, 2]);
  const elsewhere = await mkdtemp("/dev/shm/wsfs-test-");
  onTestFinished(() => rm(elsewhere, { recursive: true, force: true }));
  expect(statSync(elsewhere).dev).not.toBe(statSync(blob).dev);
  const folder = path.join(elsewhere, "backups");
  const far = await backUp(served.data, folder);
  expect([far.blobs, far.copied]).toEqual([1, 1]);
  await served.write("g", LARGE);
  const next = await backUp(served.data, folder);
  expect([next.blobs, next.copied]).toEqual([2, 1]);
  // Each is whole without the others.
  await rm(far.backup, { recursive: true });
  const restored = await restore(folder);
  expect(await contentOf(restored, "f")).toBe(LARGE);
});

test("what is missing or other than it was is told, and nothing is made of it", async () => {
  const served = await serve(await temporaryFolder());
  const { head } = await served.write("f", LARGE);
  const folder = path.join(await temporaryFolder(), "backups");
  const { backup } = await backUp(served.data, folder);
  const [blob = ""] = blobsOf(backup);
  // Not of the gateway: a name of its own.
  await rm(blob);
  await writeFile(blob, "y".repeat(LARGE.length));
  await expect(restore(backup)).rejects.toThrow(new RegExp(`^the content of version ${head} has the hash`));
  await restore(backup, false);
  await writeFile(blob, "y");
  await expect(restore(backup, false)).rejects.toThrow(`has 1 bytes, expected ${LARGE.length},`);
  await rm(blob);
  await expect(restore(backup, false)).rejects.toThrow("ENOENT");
  // Of the gateway: the backup that is made is not kept.
  await rm(blobsOf(served.data)[0] ?? "");
  await writeFile(path.join(served.data, "blobs", path.basename(path.dirname(blob)), path.basename(blob)), "short");
  await expect(backUp(served.data, folder)).rejects.toThrow("has 5 bytes");
  expect(readdirSync(folder).filter((name) => name.startsWith("2"))).toEqual([path.basename(backup)]);
});

test("a folder that is not empty, is no backup, or is somebody's is refused and left alone", async () => {
  const served = await serve(await temporaryFolder());
  const folder = path.join(await temporaryFolder(), "backups");
  const claim = (made: string) => mkdirSync(made);
  const into = (from: string, dataDir: string) =>
    restoreBackup({ from, dataDir, claim, isThorough: false, clock: systemClock });
  await backUp(served.data, folder);
  await expect(into(folder, served.data)).rejects.toThrow("is not empty");
  const nothing = await temporaryFolder();
  await expect(into(nothing, path.join(nothing, "data"))).rejects.toThrow("holds no backup that is whole");
  await writeFile(path.join(nothing, "letter"), "dear");
  await expect(backUp(served.data, nothing)).rejects.toThrow("may be somebody's");
  expect(readdirSync(nothing)).toEqual(["letter"]);
  const data = path.join(nothing, "data");
  mkdirSync(`${data}.restoring`);
  await expect(into(folder, data)).rejects.toThrow(`${data}.restoring is there`);
  expect(existsSync(data)).toBe(false);
});

test("only by its socket a gateway is asked for what is its owner's", async () => {
  const served = await serve(await temporaryFolder());
  expect(await served.owner.policies(undefined)).toEqual([
    { workspace: "workspace", versions: "all for ever", deleted: "ever" },
  ]);
  await expect(served.owner.policies("none")).rejects.toThrow('There is no workspace "none".');
  await expect(served.owner.setPolicy("workspace", { deleted: "x" })).rejects.toMatchObject({
    details: { field: "deleted" },
  });
  for (const [method, at] of [
    ["GET", "policies"],
    ["PATCH", "policies"],
    ["POST", "prune"],
  ] as const) {
    const answer = await fetch(`${served.gateway.baseUrl}/owner/${at}`, { method });
    expect([method, at, answer.status]).toEqual([method, at, 404]);
  }
});

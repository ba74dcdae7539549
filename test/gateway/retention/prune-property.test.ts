/**
 * After any history, policy and prunes: heads and whatever the policy keeps read byte for byte, every other content reads
 * so too or is a 410, lists of every moment are what they were, and the store holds exactly what rows name.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { THINNED } from "../../../src/contract/resources.ts";
import { DAY_MS, HOUR_MS } from "../../../src/lib/time.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { SEED } from "../../support/seed.ts";
import { type FileHistory, History, heldAt, isThere, steps } from "./history.ts";

interface Rule {
  readonly words: string;
  /** Moments it keeps between two times, as somebody with a calendar would find them. */
  moments(from: number, to: number): number[];
}

function momentsBy(every: (at: Date) => boolean, age: number) {
  return (from: number, to: number) => {
    const found: number[] = [];
    const start = Math.max(from, to - age);
    for (let time = Math.ceil(start / HOUR_MS) * HOUR_MS; time <= to; time += HOUR_MS)
      if (every(new Date(time))) found.push(time);
    return found;
  };
}
const isMidnight = (at: Date) => at.getUTCHours() === 0;

const RULES: readonly Rule[] = [
  { words: "hourly for 7d", moments: momentsBy(() => true, 7 * DAY_MS) },
  { words: "daily for 4w", moments: momentsBy(isMidnight, 28 * DAY_MS) },
  { words: "weekly for 90d", moments: momentsBy((at) => isMidnight(at) && at.getUTCDay() === 1, 90 * DAY_MS) },
  { words: "monthly for ever", moments: momentsBy((at) => isMidnight(at) && at.getUTCDate() === 1, 1e15) },
  {
    words: "yearly for 2y",
    moments: momentsBy((at) => isMidnight(at) && at.getUTCDate() === 1 && at.getUTCMonth() === 0, 730 * DAY_MS),
  },
];
const ALL_FOR_A_DAY = "all for 1d";

const policy = fc.record({
  all: fc.boolean(),
  rules: fc.subarray([...RULES]),
  deletedDays: fc.option(fc.constantFrom(0, 2, 30)),
});

async function check(
  { core, history }: { core: TestCore; history: History },
  kept: { all: boolean; rules: readonly Rule[]; deletedDays: number | null },
): Promise<void> {
  const now = history.now;
  const isGivenUp = (file: FileHistory) =>
    kept.deletedDays !== null && !isThere(file) && (file.turns.at(-1) ?? 0) < now - kept.deletedDays * DAY_MS;
  const content = (id: string, query: Record<string, string>) =>
    history.call("GET", `/v1/nodes/${id}/content`, { query });
  const start = history.moments[0]?.time ?? now;
  const changes = [...history.files.values()].flatMap(({ branches, turns }) => [
    ...[...branches.values()].flat().map(({ time }) => time),
    ...turns,
  ]);
  const moments = new Set(kept.rules.flatMap((rule) => rule.moments(start, now)));
  if (kept.all)
    for (const time of changes) for (const near of [time - 1, time]) if (near >= now - DAY_MS) moments.add(near);
  for (const file of history.files.values()) {
    for (const branch of file.branches.keys()) {
      if (isThere(file)) {
        const head = await content(file.id, { branch });
        expect([head.status, head.bytes.toString().slice(0, 5)]).toEqual([200, heldAt(file, branch, now)?.slice(0, 5)]);
      }
      let before: string | undefined;
      for (const time of [...moments].sort((a, b) => a - b)) {
        const held = heldAt(file, branch, time);
        // A file that stays as it is reads as at the moment before.
        if (held === before) continue;
        before = held;
        const read = await content(file.id, { branch, at: new Date(time).toISOString() });
        if (held === undefined) expect(read.status).toBe(404);
        else if (isGivenUp(file)) expect([read.status, read.json.type]).toEqual([410, THINNED]);
        else expect([time, read.status, read.bytes.equals(Buffer.from(held))]).toEqual([time, 200, true]);
      }
    }
    await checkVersions(history, file);
    if (isThere(file)) continue;
    const restored = core.database.prepare("SELECT purged FROM node WHERE id = ?").pluck().get(file.id);
    expect(restored).toBe(Number(isGivenUp(file)));
  }
}

/** Every version reads as it was written or is a 410, and the list has the former. */
async function checkVersions(history: History, { id, branches }: FileHistory): Promise<void> {
  const { items, thinned = 0 }: { items: readonly { number: number }[]; thinned?: number } = (
    await history.call("GET", `/v1/nodes/${id}/versions`, { query: { pageSize: "1000" } })
  ).json;
  const rows = history.core.database
    .prepare<[string], { id: string; number: number; branch: string; createdAt: number }>(
      "SELECT id, number, branch, created_at AS createdAt FROM version WHERE node = ? ORDER BY number",
    )
    .all(id);
  const readable: number[] = [];
  for (const version of rows) {
    const read = await history.call("GET", `/v1/nodes/${id}/content`, { query: { version: version.id } });
    if (read.status !== 200) expect([read.status, read.json.type]).toEqual([410, THINNED]);
    else {
      readable.push(version.number);
      const written = branches.get(version.branch)?.find(({ time }) => time === version.createdAt);
      expect(read.bytes.equals(Buffer.from(written?.content ?? "missing"))).toBe(true);
    }
  }
  expect(items.map(({ number }) => number)).toEqual(readable);
  expect(items.length + thinned).toBe(rows.length);
}

function checkStore({ database, blobs }: TestCore): void {
  const named = database.prepare<[], string>("SELECT blob FROM content WHERE blob IS NOT NULL").pluck().all();
  expect([...blobs.contents.keys()].sort()).toEqual(named.sort());
  const unused = "SELECT count(*) FROM content WHERE id NOT IN (SELECT content FROM version)";
  const dangling = "SELECT count(*) FROM version WHERE content <> 0 AND content NOT IN (SELECT id FROM content)";
  for (const sql of [unused, dangling]) expect([sql, database.prepare(sql).pluck().get()]).toEqual([sql, 0]);
}

async function checkLists(history: History): Promise<void> {
  for (const { time, tree } of history.moments) {
    const query = { path: "/", recursive: "true", pageSize: "1000", at: new Date(time).toISOString() };
    expect((await history.call("GET", "/v1/nodes", { query })).json.items).toEqual(tree);
  }
}

test("what a policy keeps is there, and nothing else is in the store", { timeout: 600_000 }, async () => {
  const gone = { versions: 0, nodes: 0, bytes: 0, blobs: 0 };
  await fc.assert(
    fc.asyncProperty(steps, policy, async (history, kept) => {
      const core = createTestCore();
      const told = new History(core);
      const words = [...(kept.all ? [ALL_FOR_A_DAY] : []), ...kept.rules.map((rule) => rule.words)].join(", ");
      core.gateway.retention.setPolicy("workspace", {
        versions: words === "" ? "none" : words,
        deleted: kept.deletedDays === null ? "ever" : `${kept.deletedDays}d`,
      });
      for (const step of [...history, { do: "prune" } as const]) {
        if (step.do !== "prune") {
          await told.apply(step);
          continue;
        }
        const { workspaces: foreseen } = await core.gateway.retention.prune({ isDry: true });
        const { workspaces, orphans } = await core.gateway.retention.prune();
        expect([workspaces, orphans]).toEqual([foreseen, 0]);
        const [pruned] = workspaces;
        for (const what of ["versions", "nodes", "bytes", "blobs"] as const) gone[what] += pruned?.[what] ?? 0;
        await check({ core, history: told }, kept);
        checkStore(core);
      }
      await checkLists(told);
    }),
    { seed: SEED, numRuns: Number(process.env.WSFS_RUNS ?? 150) },
  );
  process.stdout.write(`pruned: ${JSON.stringify(gone)}\n`);
  expect(Math.min(...Object.values(gone))).toBeGreaterThan(10);
});

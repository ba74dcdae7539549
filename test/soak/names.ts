/**
 * `npm run soak -- names [NODES] [LIMIT]`: a mount of a workspace of so many nodes (default 300000), in folders of two
 * hundred, that keeps LIMIT names (default a tenth of them). Programs walk through a third of it, and names are dropped
 * until the limit is kept. Then dropped folders are listed again. Tells the number of names and the memory of the daemon
 * at its most.
 */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fillGateway } from "../support/fill-gateway.ts";
import { check, createPlace, type TestMount } from "../support/wsfs.ts";

const PER_FOLDER = 200;
/** How often the figures are looked at, and how long any part may take. */
const LOOK_MS = 10_000;
const LIMIT_MS = 6 * 3_600_000;
/** Dropping begins beyond the limit by a small share of it, and ends at the limit. */
const SLACK = 1.05;

const [nodes = 300_000, limit = nodes / 10] = process.argv.slice(2).map(Number);
if (!(nodes >= PER_FOLDER) || !(limit > 0)) throw new Error("expected NODES and LIMIT");
const folders = Math.floor(nodes / PER_FOLDER);
const begun = performance.now();

async function look(mount: TestMount, what: string): Promise<{ known: number }> {
  const { names } = (await mount.status()) as { names: { known: number } };
  const [, peak = ""] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${mount.pid}/status`, "utf8")) ?? [];
  const database = statSync(join(mount.stateDir, "metadata.db")).size;
  const figures = [`${names.known} names`, `peak ${mb(Number(peak) * 1024)}`, `database ${mb(database)}`];
  process.stdout.write(`${((performance.now() - begun) / 1000).toFixed(0)} s  ${what}: ${figures.join(", ")}\n`);
  return names;
}

const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** Looks until the number of names is as expected. */
async function until(mount: TestMount, what: string, isSo: (known: number) => boolean): Promise<void> {
  const since = performance.now();
  while (!isSo((await look(mount, what)).known)) {
    if (performance.now() - since > LIMIT_MS) throw new Error(`${what}: it does not come to that`);
    await sleep(LOOK_MS);
  }
}

/** Each file of these folders is looked at, in the order in which the root lists them. */
async function walk(mount: TestMount, from: number, to: number): Promise<void> {
  const among = `ls -U | tail -n +${from + 1} | head -n ${to - from} | xargs -I{} find {} -type f -size +0`;
  const found = Number(check(await mount.sh(`${among} | wc -l`, { timeoutMs: LIMIT_MS })).stdout);
  const expected = (to - from) * PER_FOLDER;
  if (found !== expected) throw new Error(`found ${found} of ${expected} files`);
}

const place = createPlace();
try {
  const empty = await place.gateway();
  check(await empty.stop());
  process.stdout.write(`making ${nodes} nodes\n`);
  fillGateway(empty, { count: folders * PER_FOLDER, perFolder: PER_FOLDER });
  const mount = await place.mount(await place.gateway(), { args: [`--names-ahead=${limit}`] });
  await until(mount, "read in the background", (known) => known >= limit);
  const third = Math.max(1, Math.floor(folders / 3));
  for (let from = 0; from < third; from += 100) {
    await walk(mount, from, Math.min(third, from + 100));
    if (from % 1_000 === 0) await look(mount, `walked through ${from + 100} folders`);
  }
  await until(mount, "unused", (known) => known <= limit * SLACK);
  await walk(mount, 0, Math.min(10, third));
  await look(mount, "the first folders listed again");
} finally {
  await place.cleanUp();
}

/**
 * What a mount takes whose workspace has very many nodes, in folders of a thousand: the memory of all its
 * processes (PSS), how long the first walk through all of them takes, and one more, that asks the gateway nothing.
 *
 *   npm run bench -- known [--nodes N] [--json]
 */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fillGateway } from "../support/fill-gateway.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";
import { readCountOptions } from "./support/count-options.ts";
import { describeMachine, tellFailure } from "./support/options.ts";

const PER_FOLDER = 1_000;
const WALK_LIMIT_MS = 3_600_000;

/** Of the daemon and its supervisor, bytes. */
function memoryOf({ pid, supervisorPid }: TestMount): number {
  return [pid, supervisorPid].reduce((sum, process) => {
    const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${process}/smaps_rollup`, "utf8")) ?? [];
    return sum + Number(kilobytes) * 1024;
  }, 0);
}

/** Seconds; each node is looked at, and counted. */
async function walk(mount: TestMount, count: number): Promise<number> {
  const begun = performance.now();
  const found = check(await mount.sh("find . -type f -size +0 | wc -l", { timeoutMs: WALK_LIMIT_MS }));
  if (Number(found.stdout) !== count) throw new Error(`found ${found.stdout.trim()} of ${count} nodes`);
  return (performance.now() - begun) / 1000;
}

async function measure(place: Place, count: number) {
  const empty = await place.gateway();
  check(await empty.stop());
  process.stderr.write(`making ${count} nodes\n`);
  fillGateway(empty, { count, perFolder: PER_FOLDER });
  const gateway = await place.gateway();
  const mount = await place.mount(gateway);
  const before = memoryOf(mount);
  const first = await walk(mount, count);
  const after = memoryOf(mount);
  const second = await walk(mount, count);
  const again = memoryOf(mount);
  return { first, second, before, after, again, database: statSync(join(mount.stateDir, "metadata.db")).size };
}

async function bench(count: number, json: boolean): Promise<void> {
  const place = createPlace();
  const stop = () => void place.cleanUp().finally(() => process.exit(1));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, stop);
  try {
    const figures = await measure(place, count);
    const machine = describeMachine();
    if (json) {
      process.stdout.write(`${JSON.stringify({ bench: "known", machine, nodes: count, ...figures }, null, 2)}\n`);
      return;
    }
    const { first, second, before, after, again, database } = figures;
    const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
    process.stdout.write(
      `known: a mount of ${count} nodes in folders of ${PER_FOLDER} (${machine.cores} cores, ${machine.processor})\n` +
        `walk through all of them   ${first.toFixed(1)} s at first, ${second.toFixed(1)} s again\n` +
        `memory of its processes    ${mb(before)} at first, ${mb(after)} after the walk, ${mb(again)} after the second\n` +
        `its database               ${mb(database)}, ${Math.round(database / count)} bytes a node\n`,
    );
  } finally {
    await place.cleanUp();
  }
}

try {
  const options = readCountOptions("in folders of a thousand");
  if (options !== undefined) await bench(options.count, options.json);
} catch (error) {
  tellFailure(error);
}

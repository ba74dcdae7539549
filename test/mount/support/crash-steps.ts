/**
 * Real processes die by kill -9 at fault points, each once, while a program makes every kind of
 * change; what died is started as a user would. What was promised is there each time, and in the
 * end mount and gateway show the same, each file once. Throws what it found otherwise; the seconds
 * of the machine decide nothing.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { run, until } from "../../support/child.ts";
import { daemonLabels, engineLabels, gatewayLabels } from "../../support/step-labels.ts";
import { check, mountsBelow, type Place, type TestGateway, type TestMount } from "../../support/wsfs.ts";
import { CHANGES } from "./changes.ts";
import { promisedBy } from "./crash.ts";
import { contentsOf, readGateway, readTree } from "./tree.ts";

const DIE_AT_STEP = fileURLToPath(new URL("../../support/die-at-step.mjs", import.meta.url));

/** What only a second writer, a lost answer or somebody else brings about: died at in the simulation. */
const SIMULATED = new Set([
  "upload: given up for a writer",
  "upload: copied for a writer",
  "request: will be sent again",
  "request: content",
  "request: copy",
  "request: delete",
  "request: patch",
  "request: reference",
  "snapshot: copied",
  "gone: file removed",
  "listing: slice kept",
  "names: dropped",
  "adopt: not committed",
  "fetch: part written",
  "fetch: whole checked",
  "evict: file gone",
  "evict: row gone",
]);

/**
 * Nothing runs engines, prunes, copies large folders or makes workspaces here: died at in test/cli and, of test/gateway, in
 * engines, triggers, large-copies and create-workspace.
 */
const OF_OTHERS = /execution|trigger|thinned|copy (staged|finished) in part|new workspace/;

/** Passed by whoever comes after one that died there. */
const AFTER = new Map([
  ["write: bytes in the file", "recover: a file a writer had"],
  ["gateway: blob in place", "gateway: blob collected"],
]);
const AFTERS = new Set(AFTER.values());

/** Those of the labels that are passed here, with what is passed after a death at them. */
function inOrder(labels: Iterable<string>): string[] {
  const first = [...labels].filter((label) => !SIMULATED.has(label) && !AFTERS.has(label));
  return first.flatMap((label) => [label, AFTER.get(label) ?? []].flat());
}

export const allDaemonLabels = () => inOrder([...engineLabels(), ...daemonLabels()]);
export const allGatewayLabels = () => inOrder([...gatewayLabels()].filter((label) => !OF_OTHERS.test(label)));

/** Its write-ahead log must grow. */
const manyFor = (label: string) => (label.startsWith("checkpoint") ? 700 : 0);

/** One place through all its deaths: the log of what was promised is one. */
interface Chain {
  readonly place: Place;
  readonly log: string;
  lives: number;
}

const begin = (place: Place): Chain => ({ place, log: place.path("changes.log"), lives: 0 });

/** The next program that comes by the label dies; the answer says whether one has. */
function arm({ place }: Chain, label: string): () => boolean {
  const mark = place.path(`died-${label.replaceAll(/\W+/g, "-")}`);
  Object.assign(place.env, { NODE_OPTIONS: `--import ${DIE_AT_STEP}`, WSFS_DIE_AT: label, WSFS_DIE_ONCE: mark });
  return () => existsSync(mark);
}

function disarm({ place }: Chain): void {
  delete place.env.NODE_OPTIONS;
}

/** All the changes; a call may fail only when somebody died. */
async function work(chain: Chain, dir: string, many = 0, isDead = () => false): Promise<void> {
  const args = ["-c", CHANGES, dir, chain.log, `n${chain.lives}`, String(many)];
  chain.lives += 1;
  const env = { ...chain.place.env, NODE_OPTIONS: "" };
  const { stdout } = check(await run("/usr/bin/python3", args, { env, timeoutMs: 180_000 }));
  if (stdout !== "" && !isDead()) throw new Error(`a call failed although nobody died: ${stdout}`);
}

/** After one more life in which nobody dies, so that every name has its promise. */
async function allIsThere(chain: Chain, gateway: TestGateway, mount: TestMount): Promise<void> {
  const { place } = chain;
  await work(chain, mount.dir);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
  const { dirty, parked, conflicts } = await mount.status();
  assert.deepEqual({ dirty, parked, conflicts }, { dirty: 0, parked: 0, conflicts: 0 });
  const shown = contentsOf(await readTree(place, mount.dir));
  assert.deepEqual(await readGateway(place, gateway), shown);
  const { files, open } = promisedBy(readFileSync(chain.log, "utf8"));
  assert.deepEqual([...open], []);
  for (const [name, what] of files) {
    if (what?.startsWith("-> ") === true) continue;
    const found = shown.files[name] ?? (shown.folders.includes(name) ? "folder" : null);
    assert.deepEqual([name, found], [name, what]);
  }
  check(await mount.umount());
}

/** A fault point of writes that the daemon makes itself. */
const SERVED = "write: bytes in the file";

/** One of a file of which this machine has nothing yet. */
const FAR = "cache file: row made";

/** Enough files that only the gateway has, for a program in each life. */
async function putFar(place: Place, gateway: TestGateway, count: number): Promise<void> {
  const mount = await place.mount(gateway, { name: "far" });
  check(await mount.sh(`mkdir far; for i in $(seq ${count}); do echo $i > far/$i; done`));
  check(await mount.umount("--drain=60"));
}

/** Answers the labels nobody came by. */
export async function killDaemonAt(place: Place, labels: readonly string[]): Promise<string[]> {
  const chain = begin(place);
  const gateway = await place.gateway();
  const missed: string[] = [];
  if (labels.includes(FAR)) await putFar(place, gateway, labels.length + 1);
  for (const label of labels) {
    const isDead = arm(chain, label);
    const args = label === SERVED ? ["--no-passthrough"] : [];
    let mount = await place.mount(gateway, { args }).catch(() => undefined);
    if (mount === undefined) {
      if (!isDead()) throw new Error(`${label}: the mount did not start`);
      await until("nothing is mounted", () => mountsBelow(place.folder).length === 0);
      mount = await place.mount(gateway, { args });
    }
    await work(chain, mount.dir, manyFor(label), isDead);
    if (!isDead() && manyFor(label) > 0) await until(`it dies at "${label}"`, isDead);
    if (!isDead()) await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 });
    if (!isDead() && label.startsWith("reload: ")) await place.wsfs(["reload", mount.dir], { timeoutMs: 90_000 });
    if (!isDead()) await place.wsfs(["umount", mount.dir], { timeoutMs: 90_000 });
    if (!isDead()) missed.push(label);
    const { dir } = mount;
    await until("nothing is mounted", async () => {
      if (mountsBelow(place.folder).length === 0) return true;
      // It died before this mount was made, or just now.
      if (isDead()) await place.wsfs(["umount", dir], { timeoutMs: 90_000 });
      return false;
    });
  }
  disarm(chain);
  await allIsThere(chain, gateway, await place.mount(gateway));
  return missed;
}

/** `port` stays the gateway's in all its lives. */
export async function killGatewayAt(place: Place, labels: readonly string[], port: number): Promise<void> {
  const chain = begin(place);
  const args = ["--port", String(port)];
  let mount: TestMount | undefined;
  for (const label of labels) {
    const isDead = arm(chain, label);
    let gateway = await place.gateway({ args }).catch(() => undefined);
    if (gateway === undefined) {
      if (!isDead()) throw new Error(`${label}: the gateway did not start`);
      gateway = await place.gateway({ args });
    }
    disarm(chain);
    mount ??= await place.mount(gateway);
    // What a program does is held here: it need not know that the gateway is gone.
    await work(chain, mount.dir);
    await until(`it dies at "${label}"`, isDead);
    await gateway.stop();
  }
  if (mount === undefined) throw new Error("no labels");
  await allIsThere(chain, await place.gateway({ args }), mount);
}

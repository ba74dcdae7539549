/**
 * A mount whose rows are lost or older than its files: programs work, the rows are copied, the programs go on, and then
 * the mount ends, one way or the other, and starts again from the copy, from nothing, or from rows without their last
 * commits.
 */
import { seededRandom } from "../../support/virtual-clock.ts";
import { CallError, type Calls } from "./calls.ts";
import { violations } from "./invariants.ts";
import type { Mount } from "./mount.ts";
import { type Program, runProgram } from "./programs.ts";
import { rowsOf } from "./rows.ts";
import { differences, gatewayTree, type Tree, treeOf } from "./tree.ts";
import { createWorld, Fault, type World } from "./world.ts";

export interface Damage {
  /** What the next start finds in the place of the rows. behind: nothing says that they are. */
  readonly rows: "copy" | "none" | "behind";
  /** Of the list of changed files. */
  readonly list: "whole" | "damaged" | "gone";
  /** Whether all was sent before. */
  readonly isDrained: boolean;
  readonly ends: "crash" | "stop";
}

const PATHS = ["a", "b", "d/a", "d/b", "d/e/c", "f"];
const BEFORE = 12;
const AFTER = 10;
const ROUNDS_MAX = 40;
const QUIET_MS = 15_000;

/** What is wrong afterwards, one line each. */
export async function playDamage(seed: number, damage: Damage): Promise<string[]> {
  const world = await createWorld({ seed, mounts: ["alpha"] });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  const random = seededRandom(seed);
  try {
    await world.run(callsOf(mount).mkdir("d"));
    await world.run(callsOf(mount).mkdir("d/e"));
    await work(world, mount, random, BEFORE, "x");
    const copy = mount.copyRows();
    await work(world, mount, random, AFTER, "y");
    if (damage.isDrained) await rest(world, mount);
    const before = await world.run(treeOf(callsOf(mount), { withContent: true }));
    const behind = mount.copyRows();
    if (damage.rows === "behind") await save(world, mount, random);
    const had = await world.run(gatewayTree(world.outside, world.workspace.root));
    const shown = damage.rows === "behind" ? await world.run(treeOf(callsOf(mount), { withContent: true })) : before;

    world.note(`ends: ${JSON.stringify(damage)}`);
    if (damage.ends === "crash") mount.crash();
    else await world.run(mount.stop());
    await damageList(mount, damage.list, random);
    if (damage.rows === "behind") mount.replaceRows(behind);
    else mount.replaceRows(damage.rows === "copy" ? copy : undefined, "a test took them away");
    // Rows of nothing need the gateway.
    if (damage.rows === "none") mount.weather.isOffline = false;
    await world.run(mount.start());
    await rest(world, mount);
    const after = await world.run(treeOf(callsOf(mount), { withContent: true }));
    const there = await world.run(gatewayTree(world.outside, world.workspace.root));
    const problems = [
      ...differences(after, there, ["the mount", "the gateway"]),
      ...lost(shown, there),
      ...(damage.list === "whole" ? doubled(there, had) : []),
      ...(damage.isDrained && damage.list === "whole" && damage.rows !== "behind" ? changed(shown, there) : []),
    ];
    return problems.length === 0 ? [] : [...problems, ...world.lines];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return [error.message, ...world.lines];
  }
}

export function callsOf(mount: Mount): Calls {
  if (mount.process === undefined) throw new Fault("is down");
  return mount.process.kernel;
}

async function work(world: World, mount: Mount, random: () => number, count: number, label: string): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const program = choose(random);
    world.note(`${label}${index}: ${JSON.stringify(program)}`);
    try {
      await world.run(runProgram(callsOf(mount), program, `${label}${index}`));
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      world.note(`  ${error.message}`);
    }
    if (random() < 0.15) mount.weather.isOffline = !mount.weather.isOffline;
    if (random() < 0.5) await world.clock.advance(Math.floor(random() * 6_000));
  }
  // What a program was promised does not depend on the network.
  if (label === "y" && random() < 0.5) mount.weather.isOffline = true;
}

function choose(random: () => number): Program {
  const path = PATHS[Math.floor(random() * PATHS.length)] ?? "a";
  const to = PATHS[Math.floor(random() * PATHS.length)] ?? "b";
  const size = 20 + Math.floor(random() * 9_000);
  const kinds: readonly Program[] = [
    { do: "save", path, size },
    { do: "save", path, size },
    { do: "replace", path, size },
    { do: "replace", path, size },
    { do: "append", path, size },
    { do: "overwrite", path, at: Math.floor(size / 3), size },
    { do: "unlink", path },
    { do: "rename", path, to },
    { do: "backup", path, size, keeps: false },
    { do: "read", path },
  ];
  return kinds[Math.floor(random() * kinds.length)] ?? { do: "read", path };
}

/** The last thing before the end, of which the rows will know nothing. */
async function save(world: World, mount: Mount, random: () => number): Promise<void> {
  const path = PATHS[Math.floor(random() * PATHS.length)] ?? "a";
  await world.run(runProgram(callsOf(mount), { do: "save", path, size: 3_000 }, "last")).catch((error: unknown) => {
    if (!(error instanceof CallError)) throw error;
  });
}

async function damageList(mount: Mount, list: Damage["list"], random: () => number): Promise<void> {
  const files = mount.files();
  if (list === "whole") return;
  if (list === "gone") return files.remove("/state/staged");
  const file = await files.open("/state/staged", "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(Math.min(size, 400), "?"), Math.floor(random() * Math.max(1, size - 400)));
  await file.close();
}

/** All has arrived, been told and come to rest. */
export async function rest(world: World, mount: Mount): Promise<void> {
  const { process } = mount;
  if (process === undefined) throw new Fault("is down");
  mount.weather.isOffline = false;
  const { engine } = process;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    // What waits for somebody's word gets it.
    await world.run(engine.retry());
    const limit = new AbortController();
    const timer = world.clock.setTimer(10 * 60_000, () => limit.abort());
    const { drained, left } = await world.run(engine.drain({ settle: true, signal: limit.signal }));
    timer.cancel();
    const position = world.position();
    await world.clock.advance(QUIET_MS);
    world.check();
    const [first] = violations(process);
    if (first !== undefined) throw new Fault(first);
    if (!drained) world.note(`left: ${left.join("; ")}`);
    const rows = rowsOf(process.database);
    const isAtRest = engine.status().dirty === 0 && rows.rereads().length === 0 && rows.arrivals() === 0;
    if (isAtRest && world.position() === position) return;
  }
  throw new Fault("does not come to rest");
}

const contentsOf = (tree: Tree) =>
  [...tree].flatMap(([path, { kind, content }]) =>
    kind === "file" && content !== EMPTY ? [[path, content] as const] : [],
  );
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** What programs saw is there for everybody, under whatever name. */
function lost(shown: Tree, there: Tree): string[] {
  const contents = new Set(contentsOf(there).map(([, content]) => content));
  return contentsOf(shown).flatMap(([path, content]) =>
    contents.has(content) ? [] : [`${path}: its content is lost`],
  );
}

/** No content is there twice, as none of the programs copies one; but where a removal had not been sent. */
function doubled(there: Tree, had: Tree): string[] {
  const first = new Map<string, string>();
  return contentsOf(there).flatMap(([path, content]) => {
    if (had.get(path)?.content === content) return [];
    const other = first.get(content);
    first.set(content, path);
    return other === undefined ? [] : [`${path} has the content of ${other}`];
  });
}

/** Where all had been sent, nothing is lost with the rows: every file is where it was, and no other. */
function changed(shown: Tree, there: Tree): string[] {
  const [before, after] = [contentsOf(shown), contentsOf(there)].map((files) => new Map(files));
  return differencesOf(before ?? new Map(), after ?? new Map());
}

function differencesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((path) =>
    before.get(path) === after.get(path) ? [] : [`${path}: was ${before.get(path)}, is ${after.get(path)}`],
  );
}

/**
 * Several mounts of one workspace edited at random at the same time, behind a gateway whose listings
 * and journal are late; the gateway, daemons and supervisors are killed meanwhile. When all is drained and quiet,
 * all mounts and the gateway show the same, and every content that was acknowledged and not removed
 * by its own mount is a version at the gateway. Throws what it found otherwise.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { type Finished, run, until } from "../../support/child.ts";
import { drawSeed } from "../../support/seed.ts";
import { check, mountsBelow, type Place, type TestMount } from "../../support/wsfs.ts";
import { EDITOR } from "./editor.ts";
import { contentsEver } from "./nodes.ts";
import { killDaemon, killSupervisor } from "./replaced.ts";
import { contentsOf, readGateway, readTree, type Tree } from "./tree.ts";

const LATE = ["--path-lag", "200+300", "--journal-lag", "300+300"];
/** A linked file that was left half changed is completed by others after two minutes; an id that is gone is believed after five. */
const LIMIT_MS = 600_000;

/** A daemon dies with its mount, or is replaced; a supervisor is replaced, or its mount goes with it. */
export type Victim = "daemon" | "supervisor" | "gateway";

export interface Parallel {
  readonly chance: () => number;
  readonly mounts: number;
  /** By each mount's program. */
  readonly edits: number;
  /** Who dies while the programs are at work, one after another; one list a round. */
  readonly rounds: Iterable<readonly Victim[]>;
  readonly port: number;
  /** Daemons and supervisors that die are replaced, and no program sees anything of it. */
  readonly isReplaced: boolean;
}

export interface Counts {
  rounds: number;
  edits: number;
  inVain: number;
  /** Calls that failed while the gateway was gone. */
  withoutGateway: number;
  kept: number;
  conflicts: number;
  readonly killed: Record<Victim, number>;
}

interface Line {
  readonly has?: string;
  readonly gone?: string;
  readonly at?: string;
  readonly edit?: string;
  readonly died?: string;
  readonly error?: readonly [code: string, call: string, since: number, until: number];
}

export async function editInParallel(place: Place, options: Parallel): Promise<Counts> {
  const { chance, edits, port, isReplaced } = options;
  const names = Array.from({ length: options.mounts }, (_, index) => `m${index}`);
  const counts: Counts = {
    rounds: 0,
    edits: 0,
    inVain: 0,
    withoutGateway: 0,
    kept: 0,
    conflicts: 0,
    killed: { daemon: 0, supervisor: 0, gateway: 0 },
  };
  const startGateway = () => place.gateway({ args: ["--port", String(port), ...LATE] });
  let gateway = await startGateway();
  /** When it was not there for all mounts, in seconds: until they have drained, one may not have asked it again. */
  const outages: { from: number; to: number }[] = [];
  const mounts = new Map<string, TestMount>();
  const programs = new Map<string, Promise<Finished>>();
  let lives = 0;
  if (isReplaced) place.env.WSFS_CRASHES = "1000000";
  const mountArgs = isReplaced ? [] : ["--no-restart"];
  for (const name of names) mounts.set(name, await place.mount(gateway, { name, args: mountArgs }));

  const logOf = (name: string) => place.path(`${name}.log`);
  const linesOf = (name: string): Line[] => {
    if (!existsSync(logOf(name))) return [];
    return readFileSync(logOf(name), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  };
  const editsOf = (name: string) => linesOf(name).filter((line) => line.edit !== undefined).length;

  function edit(name: string, count: number): void {
    lives += 1;
    const dir = mountOf(name).dir;
    const args = ["-c", EDITOR, dir, logOf(name), `${name}.${lives}`, String(drawSeed(chance)), String(count)];
    programs.set(name, run("/usr/bin/python3", args, { env: place.env, timeoutMs: LIMIT_MS }));
  }

  function mountOf(name: string): TestMount {
    const mount = mounts.get(name);
    if (mount === undefined) throw new Error(`${name} is not mounted`);
    return mount;
  }

  /** As often as it takes for what died to be gone. */
  async function mountAgain(name: string): Promise<void> {
    const { dir } = mountOf(name);
    await until(`${name} is gone`, () => !mountsBelow(place.folder).some(({ mountpoint }) => mountpoint === dir));
    await until(`${name} is mounted again`, async () => {
      try {
        mounts.set(name, await place.mount(gateway, { name, args: mountArgs }));
        return true;
      } catch (error) {
        if (/is in use by process|is already a mount|was a mount whose daemon/.test(String(error))) return false;
        throw error;
      }
    });
  }

  async function kill(victim: Victim, before: ReadonlyMap<string, number>): Promise<void> {
    const name = names[Math.floor(chance() * names.length)] ?? "";
    const share = Math.floor(edits * (0.2 + 0.5 * chance()));
    const done = () => editsOf(name) - (before.get(name) ?? 0);
    let isOver = false;
    programs.get(name)?.finally(() => {
      isOver = true;
    });
    await until(`${name} has edited`, () => isOver || done() >= share, LIMIT_MS);
    counts.killed[victim] += 1;
    if (victim === "gateway") {
      const from = Date.now() / 1000;
      process.kill(gateway.pid, "SIGKILL");
      await gateway.stop();
      gateway = await startGateway();
      outages.push({ from, to: Number.POSITIVE_INFINITY });
      return;
    }
    if (isReplaced) {
      await (victim === "daemon" ? killDaemon : killSupervisor)(place, mountOf(name));
      return;
    }
    process.kill(victim === "daemon" ? mountOf(name).pid : mountOf(name).supervisorPid, "SIGKILL");
    check((await programs.get(name)) as Finished);
    await mountAgain(name);
    edit(name, Math.max(0, edits - done()));
  }

  /** In the end, and as long as somebody still hears of others. */
  async function agree(): Promise<void> {
    let difference = "";
    const isQuiet = async () => {
      for (const { dir } of mounts.values()) {
        const drained = await place.wsfs(["drain", dir, "--timeout", "120"], { timeoutMs: 150_000 });
        if (drained.code !== 0) difference = drained.stderr;
        if (drained.code !== 0) return false;
      }
      try {
        const trees = await Promise.all([...mounts.values()].map(({ dir }) => readTree(place, dir)));
        const remote = await readGateway(place, gateway);
        for (const tree of trees) {
          assert.deepEqual(lasting(tree), lasting(trees[0] ?? {}), "mounts differ");
          assert.deepEqual(contentsOf(tree), remote, "a mount and the gateway differ");
        }
        return true;
      } catch (error) {
        // While changes take place, and are shown late, a name may vanish between its listing and its reading.
        difference = String(error);
        return false;
      }
    };
    await until("all show the same", isQuiet, LIMIT_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${difference}`);
    });
  }

  async function nothingIsLost(): Promise<void> {
    const versions = await contentsEver(gateway);
    counts.kept = 0;
    for (const name of names) {
      const kept = new Map<string, string | undefined>();
      for (const { has, gone, at } of linesOf(name)) {
        if (has !== undefined) kept.set(has, at);
        if (gone !== undefined) kept.delete(gone);
      }
      const lost = [...kept].filter(([hash]) => !versions.has(hash));
      assert.deepEqual(lost, [], `${name}: no version has what was acknowledged`);
      counts.kept += kept.size;
    }
  }

  function count(): void {
    const all = names.flatMap(linesOf);
    counts.edits = all.filter((line) => line.edit !== undefined).length;
    counts.inVain = all.filter((line) => line.edit === "in vain").length;
    const errors = all.flatMap(({ error }) => (error === undefined ? [] : [error]));
    const isExplained = ([code, , since, to]: NonNullable<Line["error"]>) =>
      code === "EIO" && outages.some((outage) => since < outage.to && to > outage.from);
    assert.deepEqual(
      errors.filter((error) => !isExplained(error)),
      [],
      "a program was refused what a disk gives",
    );
    counts.withoutGateway = errors.length;
  }

  for (const victims of options.rounds) {
    const before = new Map(names.map((name) => [name, editsOf(name)]));
    for (const name of names) edit(name, edits);
    for (const victim of victims) await kill(victim, before);
    for (const program of programs.values()) check(await program);
    count();
    await agree();
    for (const outage of outages) outage.to = Math.min(outage.to, Date.now() / 1000);
    await nothingIsLost();
    counts.rounds += 1;
  }
  counts.conflicts = Object.keys((await readGateway(place, gateway)).files).filter((path) =>
    path.includes("(conflict"),
  ).length;
  for (const mount of mounts.values()) {
    const { dirty, parked } = await mount.status();
    assert.deepEqual({ dirty, parked }, { dirty: 0, parked: 0 });
    await mount.umount();
  }
  return counts;
}

/** What all mounts show alike: a folder's time rises where something is heard of. */
function lasting(tree: Tree): Record<string, unknown> {
  const entries = Object.entries(tree).filter(([path]) => path !== ".");
  return Object.fromEntries(
    entries.map(([path, { mtime, size, xattrs: _, ...rest }]) => [
      path,
      rest.kind === "folder" ? rest : { ...rest, mtime, size },
    ]),
  );
}

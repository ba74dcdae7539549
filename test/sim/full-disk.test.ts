/**
 * A state disk that has no room at one place or from one place on: programs hear ENOSPC where they
 * add something and nothing else anywhere; when space returns, all that was acknowledged is there,
 * mount and gateway agree, and nothing is left lying about.
 */
import { expect, test } from "vitest";
import { createReserve } from "../../src/content/reserve.ts";
import type { StateDisk } from "../../src/content/state-disk.ts";
import { type RunResult, SqliteError } from "../../src/lib/sqlite/index.ts";
import type { Connection } from "../../src/metadata/database.ts";
import type { MemoryFiles, Operation } from "../support/memory-files.ts";
import { CallError, type Calls } from "./support/calls.ts";
import { bytesOf, runProgram } from "./support/programs.ts";
import { differences, gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld, type World } from "./support/world.ts";

/** What a disk may refuse for want of room. */
const TAKES_ROOM: readonly Operation[] = [
  "create",
  "makeFolder",
  "rename",
  "truncate",
  "write",
  "allocate",
  "sync",
  "syncFolder",
];
const RESERVE = 64 * 1024;

/** How the disk fails: the n-th call that takes room, once or from then on. */
interface Failing {
  /** rows: those need the reserve; no rows: not even that helps them. */
  readonly what: "files" | "rows" | "no rows";
  readonly after: number;
  readonly isForGood: boolean;
}

/** Programs' doings, and what each file may be afterwards. */
function createPrograms(world: World, calls: Calls, hasRows: boolean, surprises: string[]) {
  const may = new Map<string, Set<string | null>>();
  const known = (path: string) => may.get(path) ?? new Set([null]);

  /** Whether it was done. Whoever adds nothing hears nothing of a full disk, unless even rows have no room. */
  async function attempt(what: string, adds: boolean, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await world.run(work());
      return true;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.code !== "ENOSPC" || !(adds || !hasRows)) surprises.push(`${what}: ${error.message}`);
      return false;
    }
  }

  return {
    may,
    attempt,
    async save(path: string, size = 600) {
      const [one, two] = [bytesOf(`${path} 1`, size), bytesOf(`${path} 2`, size)];
      const [first, second] = [one.toString("latin1"), two.toString("latin1")];
      const states = ["", first, first + second];
      let fd: number | undefined;
      const isOpen = await attempt(`open ${path}`, true, async () => {
        fd = await calls.open(path, { write: true, create: true, truncate: true });
      });
      if (!isOpen || fd === undefined) {
        may.set(path, new Set([...known(path), ""]));
        return;
      }
      const handle = fd;
      const isWritten =
        (await attempt(`write ${path}`, true, () => calls.write(handle, 0, one))) &&
        (await attempt(`write ${path}`, true, () => calls.write(handle, size, two)));
      const isClosed = await attempt(`close ${path}`, false, () => calls.close(handle));
      may.set(path, isWritten && isClosed ? new Set([first + second]) : new Set(states));
    },
    async rename(from: string, to: string) {
      // A save that failed left nothing to rename.
      if (known(from).size === 1 && known(from).has(null)) return;
      try {
        await world.run(calls.stat(from));
      } catch {
        return;
      }
      if (!(await attempt(`rename ${from}`, false, () => calls.rename(from, to)))) return;
      may.set(to, new Set([...known(from)].filter((state) => state !== null)));
      may.set(from, new Set([null]));
    },
    async unlink(path: string) {
      if (await attempt(`unlink ${path}`, false, () => calls.unlink(path))) may.set(path, new Set([null]));
    },
  };
}

async function history(
  failing: Failing | undefined,
): Promise<{ problems: string[]; taken: { files: number; rows: number } }> {
  const taken = { files: 0, rows: 0 };
  let isFull = false;
  let end = () => {};
  let isCounting = false;

  const engine = (files: MemoryFiles, database: Connection) => {
    const options = withReserve(files, () => (isFull ? 0 : 2 ** 30));
    const { reserve } = options.stateDisk;
    countRows(database, () => {
      if (!isCounting) return false;
      taken.rows += 1;
      if (failing === undefined || failing.what === "files" || taken.rows <= failing.after) return false;
      if (!failing.isForGood) return taken.rows === failing.after + 1;
      return isFull && (failing.what === "no rows" || reserve.held() > 0);
    });
    return options;
  };
  const world = await createWorld({ seed: 1, mounts: ["alpha"], engine });
  const [mount] = world.mounts;
  const running = mount?.process;
  if (mount === undefined || running === undefined) throw new Error("no mount");
  const { kernel: calls, files } = running;
  await world.run(world.outside.upload(world.workspace.root, "far", sourceOf(bytesOf("far", 20_000))));
  await world.clock.advance(5_000);

  const surprises: string[] = [];
  const programs = createPrograms(world, calls, failing?.what !== "no rows", surprises);
  await programs.save("old");
  const held = await world.run(calls.open("held", { write: true, create: true }));
  await world.clock.advance(5_000);

  isCounting = true;
  isFull = failing?.isForGood === true;
  if (failing?.what === "files") {
    const { after, isForGood } = failing;
    end = files.fail({
      path: /./,
      code: "ENOSPC",
      on: TAKES_ROOM,
      after,
      times: isForGood ? Number.POSITIVE_INFINITY : 1,
    });
  }
  const stopCounting = countCalls(files, () => {
    taken.files += 1;
  });

  await programs.save("a");
  await programs.save("b");
  // One that the gateway has, whether or not there is room for it here.
  await programs.attempt("read far", false, async () => {
    const read = await readFile(calls, "far");
    if (!read.equals(bytesOf("far", 20_000))) surprises.push("far reads wrong");
  });
  await world.clock.advance(800);
  // One that stays open is sent as a copy.
  const word = bytesOf("held", 400);
  const isWritten = await programs.attempt("write held", true, () => calls.write(held, 0, word));
  programs.may.set("held", new Set(isWritten ? [word.toString("latin1")] : ["", word.toString("latin1")]));
  await programs.attempt("fsync held", true, () => calls.fsync(held));
  await programs.rename("b", "c");
  await programs.save("a.tmp");
  await programs.rename("a.tmp", "a");
  await world.clock.advance(3_000);
  await programs.unlink("old");
  await programs.attempt("mkdir dir", true, () => calls.mkdir("dir"));
  await world.clock.advance(20_000);

  end();
  isFull = false;
  stopCounting();
  await world.clock.advance(60_000);
  await programs.attempt("close held", false, () => calls.close(held));
  isCounting = false;
  await programs.save("after");
  if (programs.may.get("after")?.size !== 1) surprises.push("no room when space had returned");

  const problems = [...surprises];
  const limit = new AbortController();
  const drained = await world.run(running.engine.drain({ settle: true, signal: limit.signal }));
  if (!drained.drained) problems.push(`not drained: ${drained.left.join("; ")}`);
  const there = await world.run(gatewayTree(world.outside, world.workspace.root));
  const here = await world.run(treeOf(calls, { withContent: true }));
  problems.push(...differences(here, there, ["the mount", "the gateway"]));
  for (const [path, states] of programs.may) {
    const content = here.has(path) ? (await world.run(readFile(calls, path))).toString("latin1") : null;
    if (!states.has(content)) problems.push(`${path} is ${content === null ? "not there" : `${content.length} bytes`}`);
  }
  const status = running.engine.status();
  if (status.disk?.state !== "ok" || status.disk.reserve !== RESERVE)
    problems.push(`the disk is ${status.disk?.state}`);
  await world.run(mount.stop());
  if (files.openHandles() > 0) problems.push(`${files.openHandles()} files are still open`);
  for (const shard of await files.list("/state/generation")) {
    const left = await files.list(`/state/generation/${shard}`);
    if (left.length > 0) problems.push(`left: ${left.join(", ")}`);
  }
  problems.push(...(await files.list("/state/quarantine")));
  return { problems, taken };
}

function withReserve(files: MemoryFiles, available: () => number) {
  const stateDisk: StateDisk = {
    reserve: createReserve(files, "/state/reserve", RESERVE, files.removeNow),
    isThere: () => true,
    look: () => ({ problem: undefined, total: 2 ** 30, available: available() }),
  };
  return { stateDisk, limits: { keepFree: 2 ** 20 } };
}

function sourceOf(bytes: Buffer) {
  return {
    size: bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** Every statement that changes something, and every commit, asks first. */
function countRows(database: Connection, refuses: () => boolean): void {
  const prepare = database.prepare.bind(database);
  database.prepare = ((sql: string) => {
    const statement = prepare(sql);
    if (!/^\s*(INSERT|UPDATE|DELETE|COMMIT)/i.test(sql)) return statement;
    const run = statement.run.bind(statement) as (...args: unknown[]) => RunResult;
    statement.run = ((...args: unknown[]) => {
      if (refuses()) throw new SqliteError("database or disk is full", "SQLITE_FULL");
      return run(...args);
    }) as typeof statement.run;
    return statement;
  }) as typeof database.prepare;
}

/** Counts by failures that never come. */
function countCalls(files: MemoryFiles, onCall: () => void): () => void {
  const path = /./;
  path.test = () => {
    onCall();
    return false;
  };
  return files.fail({ path, code: "ENOSPC", on: TAKES_ROOM, times: 1 });
}

const all = (count: number, step: number) =>
  Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);

test("a history without trouble is as it should be, and takes room at many places", async () => {
  const { problems, taken } = await history(undefined);
  expect(problems).toEqual([]);
  expect(taken.files).toBeGreaterThan(15);
  expect(taken.rows).toBeGreaterThan(100);
});

test("nothing is lost either where not even the reserve helps the rows", async () => {
  const { taken } = await history(undefined);
  for (const after of all(taken.rows, 29)) {
    const { problems } = await history({ what: "no rows", after, isForGood: true });
    expect([after, problems]).toEqual([after, []]);
  }
}, 120_000);

for (const isForGood of [false, true]) {
  const how = isForGood ? "from then on, until space returns" : "once";
  test(`every call on a file that takes room fails ${how}`, async () => {
    const { taken } = await history(undefined);
    for (const after of all(taken.files, 1)) {
      const { problems } = await history({ what: "files", after, isForGood });
      expect([after, problems]).toEqual([after, []]);
    }
  }, 120_000);

  test(`every change of a row fails ${how}`, async () => {
    const { taken } = await history(undefined);
    for (const after of all(taken.rows, 23)) {
      const { problems } = await history({ what: "rows", after, isForGood });
      expect([after, problems]).toEqual([after, []]);
    }
  }, 120_000);
}

test("a row that is put off is not written down on a full disk: the look is done again as a whole", async () => {
  const world = await createWorld({ seed: 1, mounts: ["alpha"], engine: (files) => withReserve(files, () => 2 ** 30) });
  const running = world.mounts[0]?.process;
  if (running === undefined) throw new Error("no mount");
  const { database, engine, kernel } = running;
  await world.run(runProgram(kernel, { do: "save", path: "a", size: 50 }, "one"));
  let mistakes = 0;
  let wasFull = false;
  database.function("mistaken", () => {
    if (wasFull) return 0;
    mistakes += 1;
    throw new Error("a mistake");
  });
  database.function("full", () => {
    // With others, then apart from them: what comes next puts the row off.
    if (mistakes < 2 || wasFull) return 0;
    wasFull = true;
    throw new SqliteError("database or disk is full", "SQLITE_FULL");
  });
  database.exec("CREATE TEMP TRIGGER mistaken BEFORE INSERT ON main.attempt BEGIN SELECT mistaken(); END");
  database.exec("CREATE TEMP TRIGGER full BEFORE UPDATE OF due ON main.node BEGIN SELECT full(); END");
  const limit = new AbortController();
  expect(await world.run(engine.drain({ settle: true, signal: limit.signal }))).toEqual({ drained: true, left: [] });
  expect([mistakes, wasFull]).toEqual([2, true]);
  expect(world.lines.filter((line) => /cannot be changed|loop failed/.test(line))).toEqual([]);
});

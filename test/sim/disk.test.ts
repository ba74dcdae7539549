/** The disk of the state dir is full or becomes read-only: programs get the right errno, and nothing is lost. */
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import type { Connection } from "../../src/metadata/database.ts";
import type { MemoryFiles, Operation } from "../support/memory-files.ts";
import { CallError, type Calls } from "./support/calls.ts";
import { onDisk, RESERVE, ROOMY } from "./support/disk.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { differences, gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld, type World } from "./support/world.ts";

describe("a full disk", () => {
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
      const options = onDisk(files, () => (isFull ? 0 : ROOMY));
      const { reserve } = options.stateDisk;
      countRows(database, () => {
        if (!isCounting) return false;
        taken.rows += 1;
        if (failing === undefined || failing.what === "files" || taken.rows <= failing.after) return false;
        if (!failing.isForGood) return taken.rows === failing.after + 1;
        return isFull && (failing.what === "no rows" || reserve.reservedBytes() > 0);
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
      if (!states.has(content))
        problems.push(`${path} is ${content === null ? "not there" : `${content.length} bytes`}`);
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

  /** Every statement that changes something, and every commit, asks first. */
  function countRows(database: Connection, refuses: () => boolean): void {
    const prepare = database.prepare.bind(database);
    database.prepare = ((sql: string) => {
      const statement = prepare(sql);
      if (!/^\s*(INSERT|UPDATE|DELETE|COMMIT)/i.test(sql)) return statement;
      const run = statement.run.bind(statement) as (...args: unknown[]) => Database.RunResult;
      statement.run = ((...args: unknown[]) => {
        if (refuses()) throw new Database.SqliteError("database or disk is full", "SQLITE_FULL");
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

  test("a history without failures ends well, and takes room at many places", async () => {
    const { problems, taken } = await history(undefined);
    expect(problems).toEqual([]);
    expect(taken.files).toBeGreaterThan(15);
    expect(taken.rows).toBeGreaterThan(100);
  });

  test("nothing is lost even where the reserve does not help the rows", async () => {
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

  test("a full disk keeps a row from being put off: the whole look is done again", async () => {
    const world = await createWorld({
      seed: 1,
      mounts: ["alpha"],
      engine: (files) => onDisk(files, () => ROOMY),
    });
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
      throw new Database.SqliteError("database or disk is full", "SQLITE_FULL");
    });
    database.exec("CREATE TEMP TRIGGER mistaken BEFORE INSERT ON main.attempt BEGIN SELECT mistaken(); END");
    database.exec("CREATE TEMP TRIGGER full BEFORE UPDATE OF due ON main.node BEGIN SELECT full(); END");
    const limit = new AbortController();
    expect(await world.run(engine.drain({ settle: true, signal: limit.signal }))).toEqual({ drained: true, left: [] });
    expect([mistakes, wasFull]).toEqual([2, true]);
    expect(world.lines.filter((line) => /cannot be changed|loop failed/.test(line))).toEqual([]);
  });
});

describe("a read-only disk", () => {
  test("changes end in EROFS, cached and remote content can be read, and everything goes on afterwards", async () => {
    let isReadOnly = false;
    const engine = (files: MemoryFiles, database: Connection) => {
      const prepare = database.prepare.bind(database);
      database.prepare = ((sql: string) => {
        const statement = prepare(sql);
        if (!/^\s*(INSERT|UPDATE|DELETE)/i.test(sql)) return statement;
        const run = statement.run.bind(statement) as (...args: unknown[]) => Database.RunResult;
        statement.run = ((...args: unknown[]) => {
          if (isReadOnly) throw new Database.SqliteError("disk I/O error", "SQLITE_IOERR_WRITE");
          return run(...args);
        }) as typeof statement.run;
        return statement;
      }) as typeof database.prepare;
      return onDisk(
        files,
        () => ROOMY,
        () => isReadOnly,
      );
    };
    const world = await createWorld({ seed: 1, mounts: ["alpha"], engine });
    const [running] = world.mounts.map((mount) => mount.process);
    if (running === undefined) throw new Error("no mount");
    const { kernel: calls, files } = running;
    const far = bytesOf("far", 5_000);
    await world.run(world.outside.upload(world.workspace.root, "far", sourceOf(far)));
    const fd = await world.run(calls.open("near", { write: true, create: true }));
    await world.run(calls.write(fd, 0, Buffer.from("near")));
    await world.run(calls.list(""));
    await world.clock.advance(5_000);
    expect(await world.run(calls.list(""))).toEqual(["far", "near"]);

    const other = await world.run(calls.open("other", { write: true, create: true }));
    await world.run(calls.write(other, 0, Buffer.from("other")));
    await world.run(calls.close(other));
    // What was written before was sent meanwhile.
    await world.run(calls.write(fd, 0, Buffer.from("near")));

    isReadOnly = true;
    const end = files.fail({
      path: /./,
      code: "EROFS",
      on: ["create", "write", "truncate", "setTimes", "rename", "makeFolder", "remove", "allocate"],
      times: Number.POSITIVE_INFINITY,
    });
    const refused = (work: Promise<unknown>) => expect(world.run(work)).rejects.toMatchObject({ code: "EROFS" });
    await refused(calls.write(fd, 4, Buffer.from("!")));
    await refused(calls.mkdir("folder"));
    await refused(calls.unlink("far"));
    await refused(calls.rename("near", "there"));
    expect(await world.run(readFile(calls, "far"))).toEqual(far);
    expect((await world.run(readFile(calls, "near"))).toString()).toBe("near");
    await world.clock.advance(10_000);
    expect(running.engine.status()).toMatchObject({ disk: { state: "readOnly" }, dirty: 3 });
    const waits = async () => {
      const all = [];
      for await (const items of running.engine.queue(10)) all.push(...items);
      return all;
    };
    const said = new Map((await world.run(waits())).map(({ path, why }) => [path, why]));
    expect(said.get("/near")).toMatch(/no copy of an open file can be made: the disk of the state dir .* is read-only/);
    expect(said.get("/other")).toMatch(/^the disk of the state dir .* is read-only/);

    isReadOnly = false;
    end();
    await world.clock.advance(5_000);
    expect(running.engine.status()).toMatchObject({ disk: { state: "ok" } });
    await world.run(calls.write(fd, 4, Buffer.from("!")));
    await world.run(calls.close(fd));
    await world.run(calls.unlink("far"));
    const limit = new AbortController();
    await world.run(running.engine.drain({ settle: true, signal: limit.signal }));
    const here = await world.run(treeOf(calls, { withContent: true }));
    expect(differences(here, await world.run(gatewayTree(world.outside, world.workspace.root)), ["a", "b"])).toEqual(
      [],
    );
    expect((await world.run(readFile(calls, "near"))).toString()).toBe("near!");
  });
});

/** A state disk that turns read-only while it is used: changes are refused, reads go on, and nothing is lost when it turns back. */
import { expect, test } from "vitest";
import { createReserve } from "../../src/content/reserve.ts";
import type { StateDisk } from "../../src/content/state-disk.ts";
import { type RunResult, SqliteError } from "../../src/lib/sqlite/index.ts";
import type { Connection } from "../../src/metadata/database.ts";
import type { MemoryFiles } from "../support/memory-files.ts";
import { bytesOf } from "./support/programs.ts";
import { differences, gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

test("changes end in EROFS, what is cached and what the gateway has can be read, and all goes on afterwards", async () => {
  let isReadOnly = false;
  const engine = (files: MemoryFiles, database: Connection) => {
    const prepare = database.prepare.bind(database);
    database.prepare = ((sql: string) => {
      const statement = prepare(sql);
      if (!/^\s*(INSERT|UPDATE|DELETE)/i.test(sql)) return statement;
      const run = statement.run.bind(statement) as (...args: unknown[]) => RunResult;
      statement.run = ((...args: unknown[]) => {
        if (isReadOnly) throw new SqliteError("disk I/O error", "SQLITE_IOERR_WRITE");
        return run(...args);
      }) as typeof statement.run;
      return statement;
    }) as typeof database.prepare;
    const stateDisk: StateDisk = {
      reserve: createReserve(files, "/state/reserve", 4096, () => false),
      isThere: () => true,
      look: () => ({ problem: isReadOnly ? "readOnly" : undefined, total: 2 ** 30, available: 2 ** 30 }),
    };
    return { stateDisk, limits: { keepFree: 0 } };
  };
  const world = await createWorld({ seed: 1, mounts: ["alpha"], engine });
  const [running] = world.mounts.map((mount) => mount.process);
  if (running === undefined) throw new Error("no mount");
  const { kernel: calls, files } = running;
  const far = bytesOf("far", 5_000);
  const source = {
    size: far.length,
    async *read() {
      yield far;
    },
  };
  await world.run(world.outside.upload(world.workspace.root, "far", source));
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
  expect(differences(here, await world.run(gatewayTree(world.outside, world.workspace.root)), ["a", "b"])).toEqual([]);
  expect((await world.run(readFile(calls, "near"))).toString()).toBe("near!");
});

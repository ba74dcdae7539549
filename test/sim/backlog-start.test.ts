/** A start on top of a long queue: what is done before the mount is used does not grow with it, and what is done later is done. */
import { expect, test } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import type { Connection } from "../../src/metadata/database.ts";
import { begin } from "./support/one-world.ts";

/** Counts statements that run, and rows they answer. */
function counting(database: Connection, count: (rows: number) => void): Connection {
  const counted = (result: unknown) => {
    count(Array.isArray(result) ? 1 + result.length : 1);
    return result;
  };
  const bound = (target: object, name: string | symbol) => {
    const value: unknown = Reflect.get(target, name);
    return typeof value === "function" ? value.bind(target) : value;
  };
  const statementOf = (prepared: ReturnType<Connection["prepare"]>): typeof prepared =>
    new Proxy(prepared, {
      get(statement, method) {
        const value: unknown = bound(statement, method);
        if (typeof value !== "function") return value;
        if (method === "raw" || method === "pluck") return (toggle: boolean) => statementOf(value(toggle));
        if (method !== "get" && method !== "all" && method !== "run") return value;
        return (...parameters: unknown[]) => counted(value(...parameters));
      },
    });
  return new Proxy(database, {
    get: (target, name) =>
      name === "prepare" ? (sql: string) => statementOf(target.prepare(sql)) : bound(target, name),
  });
}

/** Of a mount with so many files to be sent. */
async function workOfStart(files: number): Promise<number> {
  let work = 0;
  let isCounted = false;
  const inUse = deferred<void>();
  const engine = (_files: unknown, database: Connection) =>
    isCounted
      ? {
          inUse: inUse.promise,
          database: counting(database, (rows) => {
            work += rows;
          }),
        }
      : {};
  const it = await begin(true, {}, { engine });
  await it.names();
  it.mount.weather.isOffline = true;
  for (let index = 0; index < files; index++) await it.save(`f${index}`);
  isCounted = true;
  await it.again("remount");
  const { engine: started } = it.mount.process ?? {};
  expect(started?.condition()).toMatchObject({ online: false });
  const before = work;
  it.mount.weather.isOffline = false;
  inUse.resolve();
  await it.drain();
  it.world.check();
  return before;
}

test("no statement more, and no row more, before it is used", async () => {
  const few = await workOfStart(5);
  expect(few).toBeGreaterThan(10);
  expect(await workOfStart(60)).toBe(few);
});

/** Pages that are to take a page's time are read from an index: what SQLite says of each statement they take. */
import { expect, test, vi } from "vitest";
import { createTestCore } from "../support/gateway-core.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";
import { addEngine, begin, finish, install, start } from "./engines/support.ts";
import { endAll, makeTrigger, withEngines } from "./triggers/support.ts";

/** Reads a table that grows. */
const LARGE = /\bSELECT\b.*\b(?:FROM|JOIN) (?:change|place|past_place|node|version|execution|engine_trigger)\b/s;

/** Statements of which SQLite reads a whole table, or puts rows in order. */
async function dearStatements(ask: (core: ReturnType<typeof createTestCore>) => Promise<void>): Promise<string[]> {
  const core = createTestCore();
  const { database, clock, workspace } = core;
  const folder = { database, clock, workspace: workspace.id, parent: workspace.root };
  makeFilledFolder({ ...folder, name: "big", count: 3000 });
  const asked = vi.spyOn(database, "prepare");
  await ask(core);
  const texts = new Set(asked.mock.calls.map(([sql]) => String(sql)).filter((sql) => LARGE.test(sql)));
  expect(texts.size).toBeGreaterThan(1);
  asked.mockRestore();
  return [...texts].filter((sql) => {
    const plan = database
      .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...valuesFor(sql))
      .map(({ detail }) => detail);
    return plan.some(
      (step) =>
        /TEMP B-TREE|AUTOMATIC/.test(step) ||
        /^SCAN (?!j VIRTUAL|CONSTANT|t$|execution USING INDEX execution_running)/.test(step),
    );
  });
}

/** Anything, for a plan does not hang on it. */
function valuesFor(sql: string): unknown[] {
  const named = [...sql.matchAll(/:(\w+)/g)].map(([, name = ""]) => [name, "[]"]);
  return named.length > 0 ? [Object.fromEntries(named)] : [...sql.matchAll(/\?/g)].map(() => "[]");
}

test.each(["position", "-position", "time", "-time"])("the journal by %s", async (orderBy) => {
  const dear = await dearStatements(async (core) => {
    const read = async (query: Record<string, string>) => {
      const answer = await core.call("GET", "/v1/journal", { query: { orderBy, pageSize: "7", ...query } });
      expect([answer.status, answer.json.items.length]).toEqual([200, 7]);
      return answer.json.next;
    };
    const next = await read({});
    await read({ after: String(next) });
    await read({ pageNo: "5", after: "9" });
  });
  expect(dear).toEqual([]);
});

const PAST = { nodeId: "", by: "ada", mount: "here" } as const;

test.each([["nodeId"], ["by"], ["mount"], ["by", "mount"], ["nodeId", "by", "mount"]] as const)(
  "entries by %s %s %s",
  async (...names) => {
    const dear = await dearStatements(async (core) => {
      const nodeId = (await core.call("GET", "/v1/files/big")).json.id;
      const filter = Object.fromEntries(names.map((name) => [name, name === "nodeId" ? nodeId : PAST[name]]));
      for (const orderBy of ["position", "-time"]) {
        const query = { ...filter, orderBy, before: "true", since: "2026-01-01T00:00:00Z" };
        expect((await core.call("GET", "/v1/journal", { query })).status).toBe(200);
      }
    });
    expect(dear).toEqual([]);
  },
);

test("what was deleted, a version's attributes, and a tree that goes back", async () => {
  const dear = await dearStatements(async (core) => {
    const { items } = (await core.call("GET", "/v1/nodes", { query: { path: "/big", pageSize: "3" } })).json;
    const at = new Date(core.clock.wallClock()).toISOString();
    await core.clock.advance(1000);
    for (const { id } of items) await core.call("DELETE", `/v1/nodes/${id}`);
    await core.file("/big/newer", "x");
    for (const query of [{ path: "/big" }, { path: "/", recursive: "true", orderBy: "-deletedAt" }]) {
      const { json } = await core.call("GET", "/v1/nodes", { query: { deleted: "true", ...query } });
      expect(json.totalCount).toBe(3);
    }
    await core.call("GET", `/v1/nodes/${items[0]?.id}/versions`);
    const folder = (await core.call("GET", "/v1/files/big")).json.id;
    for (let after: string | null = ""; after !== null; ) {
      const json: object = { at, exact: true, after };
      after = (await core.call("POST", `/v1/nodes/${folder}/restore-tree`, { json })).json.next;
    }
    expect((await core.call("GET", "/v1/nodes", { query: { path: "/big" } })).json.totalCount).toBe(3000);
  });
  expect(dear).toEqual([]);
});

test("the journal by position is put in order for nobody: as many as like may ask for pages of it at once", async () => {
  const core = createTestCore();
  const { database, clock, workspace } = core;
  makeFilledFolder({ database, clock, workspace: workspace.id, parent: workspace.root, name: "big", count: 5000 });
  const asked = ["-position", "-time"].flatMap((orderBy) =>
    Array.from({ length: 30 }, (_, after) =>
      core.call("GET", "/v1/journal", { query: { orderBy, after: String(after), pageSize: "1", pageNo: "2" } }),
    ),
  );
  const answers = await Promise.all(asked);
  expect(new Set(answers.map(({ status, json }) => [status, json.items?.[0]?.position].join()))).toEqual(
    new Set(["200,5001"]),
  );
});

test.each(["name", "-name", "id", "-id", "createdAt", "-createdAt"])("a large folder by %s", async (orderBy) => {
  const dear = await dearStatements(async (core) => {
    const read = async (query: Record<string, string>) => {
      const asked = { path: "/big", orderBy, pageSize: "7", ...query };
      const answer = await core.call("GET", "/v1/nodes", { query: asked });
      expect([answer.status, answer.json.items.length]).toEqual([200, 7]);
      return answer.json.next;
    };
    const next = await read({ after: "" });
    await read({ after: String(next) });
    await read({ pageNo: "5" });
  });
  expect(dear).toEqual([]);
});

test("the last change of a workspace", async () => {
  const dear = await dearStatements(async (core) => {
    const answer = await core.call("GET", "/v1/nodes", { query: { path: "/big", orderBy: "size", pageSize: "7" } });
    expect(answer.status).toBe(200);
    const { items } = (await core.call("GET", "/v1/nodes", { query: { path: "/big", pageSize: "1" } })).json;
    expect((await core.call("GET", `/v1/nodes/${items[0]?.id}/versions`)).json.totalCount).toBe(1);
  });
  expect(dear).toEqual([]);
});

test("executions are queued, taken, listed and forgotten", async () => {
  const dear = await dearStatements(async (core) => {
    addEngine(core, "scan");
    await install(core, "scan");
    await begin(core);
    const { id } = await start(core, "scan");
    await finish(core, id);
    await core.gateway.engines?.recover();
    await core.gateway.forget();
    expect((await core.call("GET", "/v1/executions", { query: { state: "succeeded" } })).json.totalCount).toBe(1);
  });
  expect(dear).toEqual([]);
});

test("what triggers and API keys read", async () => {
  const dear = await dearStatements(async (core) => {
    await withEngines(core, "scan");
    await makeTrigger(core, { on: { journal: { path: "/big/*" } } });
    await makeTrigger(core, { name: "timed", on: { schedule: { cron: "* * * * *" } } });
    const folder = (await core.call("GET", "/v1/files/big")).json.id;
    for (const name of ["a", "b"]) await core.folder(folder, name);
    await core.clock.advance(60_000);
    expect((await core.call("GET", "/v1/executions")).json.totalCount).toBe(3);
    await endAll(core);
    expect((await core.call("GET", "/v1/triggers")).json.totalCount).toBe(2);
  });
  expect(dear).toEqual([]);
});

test("what a prune looks at, and versions that were thinned", async () => {
  const dear = await dearStatements(async (core) => {
    const { id } = await core.file("/f", "old");
    await core.file("/f", "new");
    const { id: gone } = await core.file("/gone", "old");
    await core.call("DELETE", `/v1/nodes/${gone}`);
    core.gateway.retention.setPolicy("workspace", { versions: "none", deleted: "0d" });
    core.clock.jump(1);
    for (const isDry of [true, false]) {
      expect((await core.gateway.retention.prune({ isDry })).workspaces).toMatchObject([{ versions: 2, nodes: 1 }]);
    }
    expect((await core.call("GET", `/v1/nodes/${id}/versions`)).json).toMatchObject({ totalCount: 1, thinned: 1 });
    expect((await core.call("GET", `/v1/nodes/${id}/content`)).status).toBe(200);
  });
  expect(dear).toEqual([]);
});

/** Nodes, versions, workspaces and the journal are paged alike: any field, any page, one position. */
import { beforeEach, expect, test } from "vitest";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

type Item = Record<string, unknown>;

async function page(path: string, query: Record<string, string>) {
  const answer = await core.call("GET", path, { query, token: core.token(undefined, null) });
  expect([answer.status, query, answer.json.detail]).toEqual([200, query, undefined]);
  const { items, ...rest } = answer.json;
  return { ...rest, items: items as unknown as Item[] };
}

async function walk(path: string, query: Record<string, string>, between: () => Promise<unknown> = async () => {}) {
  const items: Item[] = [];
  const totals = new Set<number>();
  for (let after: string | null = path.endsWith("journal") ? "0" : ""; after !== null; ) {
    const answer = await page(path, { ...query, after });
    items.push(...answer.items);
    totals.add(answer.totalCount);
    after = answer.next;
    await between();
  }
  return { items, totals };
}

function sorted(items: readonly Item[], orderBy: string, tie: string): Item[] {
  const field = orderBy.replace("-", "");
  const compare = (a: unknown, b: unknown) => {
    if (a === b) return 0;
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
    if (b === null || b === undefined) return 1;
    if (typeof a === "number" && typeof b === "number") return a - b;
    const [first, second] = [a, b].map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value)));
    if (first === second) return 0;
    return String(first) < String(second) ? -1 : 1;
  };
  const order = [...items].sort((a, b) => compare(a[field], b[field]) || compare(a[tie], b[tie]));
  return orderBy.startsWith("-") ? order.reverse() : order;
}

async function checkList(
  path: string,
  fields: readonly string[],
  tie: string,
  change: () => Promise<unknown>,
  more: Record<string, string> = {},
) {
  const query = { workspace: core.workspace.id, ...more };
  for (const field of fields) {
    for (const orderBy of [field, `-${field}`]) {
      const all = (await page(path, { ...query, pageSize: "1000" })).items;
      const expected = sorted(all, orderBy, tie);
      for (const pageNo of [1, 2, 4]) {
        const { items, totalCount } = await page(path, { ...query, orderBy, pageSize: "3", pageNo: String(pageNo) });
        expect([orderBy, totalCount]).toEqual([orderBy, all.length]);
        expect([orderBy, pageNo, items]).toEqual([orderBy, pageNo, expected.slice(3 * pageNo - 3, 3 * pageNo)]);
      }
      const { items } = await walk(path, { ...query, orderBy, pageSize: "3" }, change);
      // What came after the first page of the journal in its own order is read on, as always.
      expect([orderBy, items.slice(0, expected.length)]).toEqual([orderBy, expected]);
    }
  }
}

test("nodes, those of a branch and all below a folder too", async () => {
  for (let index = 0; index < 10; index++) {
    const attributes = {
      mode: [0o644, 0o600, 0o755][index % 3],
      ...(index % 4 === 0 && { mtime: `${index}.000000000` }),
    };
    const file = await core.file(`/d/${index % 2 === 0 ? "" : "e/"}${index}`, "x".repeat((index * 7) % 5), {
      metadata: { attributes, ...(index % 3 === 0 && { idempotencyKey: `k${index}` }) },
    });
    if (index % 4 < 2) {
      const metadata = { branch: "b", attributes: { mtime: `${9 - index}.000000000` } };
      await core.upload(`/v1/nodes/${file.id}/content`, "branch", { method: "PUT", metadata });
    }
    if (index % 2 === 0) await core.clock.advance(3);
  }
  const fields = Object.keys(await core.node((await core.file("/d/f", "x")).id));
  expect(fields).toContain("attributes");
  let changes = 0;
  const change = async () => {
    changes += 1;
    if (changes % 7 === 0) await core.file(`/d/${changes % 10}`, "z".repeat(changes % 11));
  };
  for (const query of [{}, { branch: "b" }, { recursive: "true", branch: "b" }]) {
    const where = { path: "/d", ...query };
    await checkList("/v1/nodes", fields, "id", change, where);
    const at = new Date(core.clock.wallClock()).toISOString();
    await core.clock.advance(3);
    await core.file("/d/0", `newer ${changes}`, { metadata: { attributes: { mode: 0o400 } } });
    await checkList("/v1/nodes", ["attributes", "modifiedAt"], "id", change, { ...where, at });
  }
});

test("versions", async () => {
  const file = await core.file("/f", "x");
  const write = (content: string, branch: string) =>
    core.upload(`/v1/nodes/${file.id}/content`, content, { method: "PUT", metadata: { branch } });
  for (let index = 0; index < 10; index++) {
    await write("y".repeat((index * 7) % 5), index % 3 === 0 ? "b" : "main");
    if (index % 2 === 0) await core.clock.advance(3);
  }
  const fields = ["id", "nodeId", "number", "branch", "size", "contentHash", "mimeType", "createdAt"];
  let changes = 0;
  await checkList(`/v1/nodes/${file.id}/versions`, fields, "id", async () => {
    changes += 1;
    if (changes % 7 === 0) await write("z".repeat(changes % 11), "b");
  });
  const wrong = await core.call("GET", `/v1/nodes/${file.id}/versions`, { query: { orderBy: "path" } });
  expect(wrong.json.field).toBe("orderBy");
  const first = await page(`/v1/nodes/${file.id}/versions`, { pageSize: "1", after: "" });
  const other = await core.call("GET", `/v1/nodes/${file.id}/versions`, {
    query: { pageSize: "1", after: String(first.next), orderBy: "size" },
  });
  expect(other.json.field).toBe("after");
});

test("workspaces", async () => {
  for (const name of ["b", "a", "Z", "ä", "c", "x", "y"]) core.gateway.ensureWorkspace(name);
  await core.file("/f", "content");
  const all = (await page("/v1/workspaces", {})).items;
  expect(all.length).toBe(8);
  let changes = 0;
  for (const field of ["id", "name", "rootId", "quota", "used"]) {
    for (const orderBy of [field, `-${field}`]) {
      const before = (await page("/v1/workspaces", { pageSize: "1000" })).items;
      const { items, totals } = await walk("/v1/workspaces", { orderBy, pageSize: "3" }, async () => {
        changes += 1;
        if (changes % 3 === 0) core.gateway.ensureWorkspace(`made-${changes}`);
      });
      expect([orderBy, items]).toEqual([orderBy, sorted(before, orderBy, "id")]);
      expect([...totals]).toEqual([before.length]);
    }
  }
});

test("the journal", async () => {
  for (let index = 0; index < 12; index++) {
    const file = await core.file(`/f${index % 5}`, "x".repeat(index % 3), {
      metadata: index % 2 === 0 ? { idempotencyKey: `k${index}` } : {},
    });
    if (index % 4 === 0) await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { attributes: { mode: index } } });
    if (index % 3 === 0) await core.clock.advance(3);
  }
  const fields = "position time kind nodeId revision parentId name head contentHash key branch branchHead".split(" ");
  let changes = 0;
  await checkList("/v1/journal", fields, "position", async () => {
    changes += 1;
    if (changes % 9 === 0) await core.file(`/n${changes}`, "");
  });
  const { items } = await page("/v1/journal", { workspace: core.workspace.id, pageSize: "1000" });
  const middle = String(items[5]?.position);
  const rest = await page("/v1/journal", {
    workspace: core.workspace.id,
    after: middle,
    orderBy: "-name",
    pageSize: "4",
  });
  expect([rest.totalCount, rest.items]).toEqual([
    items.length - 6,
    sorted(items.slice(6), "-name", "position").slice(0, 4),
  ]);
  for (const after of ["x", "-1", "1.x", `${middle}.abc`]) {
    const answer = await core.call("GET", "/v1/journal", { query: { after } });
    expect([after, answer.status, answer.json.field]).toEqual([after, 400, "after"]);
  }
});

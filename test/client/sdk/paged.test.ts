/** Lists walked by items, pages and numbers; a walk shows one position, whatever happens meanwhile. */
import { expect, test } from "vitest";
import { connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { createCoreTransport } from "../../support/core-transport.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { exampleNode, examplePage } from "../support/examples.ts";
import { broken, json, scripted } from "../support/scripted-transport.ts";
import { failureOf } from "../support/server.ts";

async function folderOf(count: number): Promise<{ core: TestCore; gateway: Gateway; names: string[] }> {
  const core = createTestCore();
  const names = Array.from({ length: count }, (_, index) => `file ${String(index).padStart(3, "0")}`);
  for (const name of names) await core.file(`/${name}`, name);
  const transport = createCoreTransport(() => core.gateway);
  const credentials = staticToken(core.token());
  return { core, names, gateway: connect({ baseUrl: "http://core.invalid", transport, credentials }) };
}

async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

test.each([0, 1, 9, 10, 11, 20, 25])("%i nodes are walked in pages of ten", async (count) => {
  const { gateway, names } = await folderOf(count);
  const list = gateway.nodes.list({ pageSize: 10 });
  expect((await collect(list)).map(({ name }) => name)).toEqual(names);
  expect((await list.all()).map(({ name }) => name)).toEqual(names);
  const pages = await collect(list.pages());
  expect(pages).toHaveLength(Math.max(1, Math.ceil(count / 10)));
  for (const page of pages) expect(page.totalCount).toBe(count);
});

test.each(["name", "-name", "createdAt"])(
  "a walk by %s shows what was there when it began, the next one what is there then",
  async (orderBy) => {
    const { core, gateway, names } = await folderOf(25);
    const list = gateway.nodes.list({ pageSize: 10, orderBy });
    const seen: string[] = [];
    for await (const { name } of list) {
      if (seen.length === 3) {
        await core.file("/file 0245", "new, in what comes");
        await core.file("/a", "new, in what has come");
        const { id } = await gateway.nodes.byPath("/file 020");
        await gateway.nodes.delete(id);
      }
      seen.push(name);
    }
    expect(orderBy === "name" ? seen : seen.toSorted()).toEqual(names);
    const later = (await list.all()).map(({ name }) => name);
    expect(later.toSorted()).toEqual([...names.filter((name) => name !== "file 020"), "a", "file 0245"].sort());
  },
);

test("pages come by number, in any order of one's own", async () => {
  const { gateway, names } = await folderOf(25);
  const list = gateway.nodes.list({ pageSize: 10, orderBy: "-name" });
  expect((await list.page(3)).items.map(({ name }) => name)).toEqual(names.slice(0, 5).toReversed());
  expect((await list.page(4)).items).toEqual([]);
  expect((await collect(list)).map(({ name }) => name)).toEqual(names.toReversed());
  const page = await gateway.nodes.list({ pageSize: 10 }).page(2);
  expect(page).toMatchObject({ pageNo: 2, pageSize: 10, totalCount: 25 });
  expect(page.items[0]?.name).toBe("file 010");
});

test("the same holds for versions, workspaces and the journal", async () => {
  const { core, gateway } = await folderOf(0);
  const { id } = await core.file("/a", "0");
  for (let number = 1; number < 7; number += 1) await gateway.files.write(id, `${number}`);
  const versions = await gateway.versions.list(id, { pageSize: 3 }).all();
  expect(versions.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  const newest = await gateway.versions.list(id, { pageSize: 3, orderBy: "-number" }).all();
  expect(newest.map(({ number }) => number)).toEqual([7, 6, 5, 4, 3, 2, 1]);
  const entries = await gateway.journal.list({ pageSize: 3 }).all();
  expect(entries.filter(({ nodeId }) => nodeId === id)).toHaveLength(7);
  const rest = await gateway.journal.list({ after: entries[3]?.position, pageSize: 2 }).all();
  expect(rest).toEqual(entries.slice(4));
  expect((await gateway.journal.list({ after: entries[3]?.position, pageSize: 2 }).page(2)).items).toEqual(
    entries.slice(6, 8),
  );

  for (let number = 0; number < 5; number += 1) core.gateway.ensureWorkspace(`extra ${number}`);
  const credentials = staticToken(core.token(undefined, null));
  const transport = createCoreTransport(() => core.gateway);
  const all = connect({ baseUrl: "http://core.invalid", transport, credentials });
  expect(await all.workspaces.list({ pageSize: 2 }).all()).toHaveLength(6);
  expect(await all.workspaces.list({ pageSize: 4, orderBy: "-name" }).all()).toHaveLength(6);
});

test("a gateway that knows page numbers only is walked by them", async () => {
  const nodes = Array.from({ length: 5 }, (_, index) => exampleNode({ id: `n${index}` }));
  const { gateway, requests, run } = scripted([
    (request) => {
      const pageNo = Number(request.query.pageNo ?? 1);
      const items = nodes.slice((pageNo - 1) * 2, pageNo * 2);
      return json(200, examplePage(items, { totalCount: 5, pageNo, pageSize: 2 }))(request);
    },
  ]);
  expect(await run(gateway.nodes.list().all())).toEqual(nodes);
  expect(requests.map(({ query }) => [query.after, query.pageNo])).toEqual([
    ["", undefined],
    [undefined, "2"],
    [undefined, "3"],
  ]);
});

test("a page that fails is asked for again; the walk goes on where it was", async () => {
  const page = (id: string, next: string | null) =>
    json(200, examplePage([exampleNode({ id })], { next, totalCount: 3 }));
  const steps = [page("n1", "2"), broken(), broken("silent"), page("n2", "3"), page("n3", null)];
  const { gateway, requests, run } = scripted(steps);
  const nodes = await run(gateway.nodes.list().all());
  expect(nodes.map(({ id }) => id)).toEqual(["n1", "n2", "n3"]);
  expect(requests.map(({ query }) => query.after)).toEqual(["", "2", "2", "2", "3"]);
});

test("an abort ends a walk", async () => {
  const controller = new AbortController();
  const endless = json(200, examplePage([exampleNode()], { next: "more", totalCount: 9 }));
  const { gateway, run } = scripted([endless]);
  const walk = async () => {
    for await (const _ of gateway.nodes.list({ signal: controller.signal })) controller.abort();
  };
  expect(await run(failureOf(walk()))).toMatchObject({ code: "aborted" });
});

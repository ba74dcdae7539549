/** The past broken on purpose does not get through. How many histories it takes is printed. */
import { expect, test } from "vitest";
import type { JournalEntry } from "../../src/client/index.ts";
import type { Paged } from "../../src/client/sdk/paged.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { Sabotage } from "./support/mount.ts";
import { playHistories } from "./support/run.ts";
import { PAST } from "./support/worlds.ts";

const HISTORIES_MAX = 60;

function withMoment(change: (moment: number) => number): Sabotage {
  return {
    request(request: HttpRequest) {
      const { at } = request.query;
      if (at === undefined) return request;
      const moment = new Date(change(Date.parse(String(at)))).toISOString();
      return { ...request, query: { ...request.query, at: moment } };
    },
  };
}

/** A moment shows what was deleted before it too. */
const withDeleted: Sabotage = {
  engine: (_files, _rows, { client }) => ({
    client: {
      ...client,
      async listNodes(query) {
        const page = await client.listNodes(query);
        if (query?.at === undefined) return page;
        const { at: _, ...now } = query;
        const names = new Set(page.items.map(({ name }) => name));
        const gone = (await client.listNodes({ ...now, deleted: true })).items.filter(({ name }) => !names.has(name));
        return { ...page, items: [...page.items, ...gone] };
      },
    },
  }),
};

/** To who plans an undo, what others did looks like what was done by the mount. */
const withoutOthers: Sabotage = {
  connected(gateway, mount) {
    const { journal } = gateway;
    const list = (options: Parameters<typeof journal.list>[0] = {}): Paged<JournalEntry> => {
      const all = journal.list(options);
      if (options.mount !== undefined) return all;
      const entries = all.all().then((whole) => {
        const newest = whole.findLastIndex(({ by }) => by?.mount === mount);
        return whole.map((entry, index) => (index > newest ? entry : { ...entry, by: { account: null, mount } }));
      });
      entries.catch(() => {});
      return Object.assign(Object.create(all) as Paged<JournalEntry>, { all: () => entries });
    };
    return { ...gateway, journal: { ...journal, list } };
  },
};

const neverExact: Sabotage = {
  connected(gateway) {
    const { nodes } = gateway;
    const restoreTree: typeof nodes.restoreTree = (id, at, options) =>
      nodes.restoreTree(id, at, { ...options, exact: false });
    return { ...gateway, nodes: { ...nodes, restoreTree } };
  },
};

test.each([
  { name: "a moment ignores deletions", sabotage: withDeleted, noticed: /\/at\// },
  {
    name: "a moment is without what was changed at that very time",
    sabotage: withMoment((moment) => moment - 1),
    noticed: /\/at\//,
  },
  {
    name: "an undo changes what another changed since",
    sabotage: withoutOthers,
    noticed: /changed since by .* told of: undefined/,
  },
  { name: "an exact restoration leaves what is newer", sabotage: neverExact, noticed: /is newer and there/ },
])("$name: noticed", { timeout: 600_000 }, async ({ name, sabotage, noticed }) => {
  const failure = await playHistories({ ...PAST.options, sabotage, seed: 1, count: HISTORIES_MAX, shrinkMs: 0 });
  console.log(`${name}: history ${failure?.runs}: ${failure?.error.message.split("\n").slice(0, 2).join(" ")}`);
  expect(failure?.error.message).toMatch(noticed);
});

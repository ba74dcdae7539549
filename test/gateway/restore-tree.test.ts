/** A tree goes back to what it was at a moment, whatever happened since, is happening, or is asked twice. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTestCore } from "../support/gateway-core.ts";
import { act, histories, lookOf, momentOf, restoreTree, type Step, shapeOf, tree } from "../support/tree-histories.ts";

/** A history with a moment in it; what the tree was then, and what became of it. */
async function live(before: readonly Step[], after: readonly Step[]) {
  const core = createTestCore();
  for (const step of before) await act(core, step);
  const { root } = core.workspace;
  const then = { at: momentOf(core), shape: await shapeOf(core, root), nodes: await tree(core, root) };
  for (const step of after) await act(core, step);
  return { core, root, then };
}

const LONG = { numRuns: 150 };

test("exactly: the tree is what it was then, in slices of any size, each of them asked for twice", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), fc.integer({ min: 1, max: 5 }), async (before, after, pageSize) => {
      const { core, root, then } = await live(before, after);
      const now = { at: momentOf(core), shape: await shapeOf(core, root) };
      const wanted = { at: then.at, exact: true, pageSize };
      const planned = await restoreTree(core, root, { ...wanted, plan: true });
      expect(await shapeOf(core, root)).toEqual(now.shape);
      await core.clock.advance(1000);
      const done = await restoreTree(core, root, wanted, { tries: 2 });
      expect(await shapeOf(core, root)).toEqual(then.shape);
      const what = (items: typeof done) => items.map(({ action, nodeId }) => `${action} ${nodeId}`).sort();
      expect(what(done)).toEqual(what(planned));
      expect(done.filter(({ action }) => action === "skip")).toEqual([]);
      expect(await restoreTree(core, root, wanted)).toEqual([]);
      await restoreTree(core, root, { at: now.at, exact: true });
      expect(await shapeOf(core, root)).toEqual(now.shape);
    }),
    LONG,
  );
});

test("what is newer stays: a name it has goes to nobody else", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), async (before, after) => {
      const { core, root, then } = await live(before, after);
      const newer = (await tree(core, root)).filter(({ id }) => !then.nodes.some((node) => node.id === id));
      await restoreTree(core, root, { at: then.at, pageSize: 3 });
      const now = new Map((await tree(core, root)).map((node) => [node.id, node]));
      for (const node of then.nodes) {
        const found = now.get(node.id);
        expect(found && [found.parentId, ...lookOf(found)]).toEqual([node.parentId, ...lookOf(node)]);
        if (found?.name !== node.name) expect(found?.name).toMatch(/ \(restored 2026-01-01 00\.\d\d\.\d\d\)(\.txt)?$/);
      }
      for (const { id, name, parentId } of newer) expect(now.get(id)).toMatchObject({ name, parentId });
      expect(await restoreTree(core, root, { at: then.at })).toEqual([]);
    }),
    LONG,
  );
});

test("of a folder: what is in it, wherever it is by now", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), fc.nat(99), async (before, after, which) => {
      const { core, then } = await live(before, after);
      const folders = then.nodes.filter(({ kind }) => kind === "folder");
      const folder = folders[which % Math.max(1, folders.length)];
      if (folder === undefined) return;
      const json = { at: then.at, exact: true, pageSize: 2 };
      const { status } = await core.call("POST", `/v1/nodes/${folder.id}/restore-tree`, { json });
      if (status === 409) return;
      await restoreTree(core, folder.id, json);
      const below = Object.entries(then.shape).filter(([path]) => path.startsWith(`${folder.path}/`));
      const expected = Object.fromEntries(below.map(([path, look]) => [path.slice(folder.path.length), look]));
      expect(await shapeOf(core, folder.id)).toEqual(expected);
    }),
    LONG,
  );
});

test("others go on meanwhile: it comes to an end, and asked for again to the tree of then", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(10), histories(10), async (before, after, meanwhile) => {
      const { core, root, then } = await live(before, after);
      const wanted = { at: then.at, exact: true, pageSize: 1 };
      const rest = [...meanwhile];
      await restoreTree(core, root, wanted, {
        async between() {
          const step = rest.shift();
          if (step !== undefined) await act(core, step);
        },
      });
      await restoreTree(core, root, wanted);
      expect(await shapeOf(core, root)).toEqual(then.shape);
    }),
    LONG,
  );
});

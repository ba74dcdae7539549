/** What is remembered of deletions, and of nodes to be read again: long enough, and not for ever. */
import { expect, test } from "vitest";
import { inodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { begin } from "./support/one-world.ts";

test("a node the gateway fails to show keeps nobody from being read again", async () => {
  const it = await begin(true);
  const { outside, workspace } = it.world;
  await it.save("a");
  await it.save("b");
  await it.drain();
  it.world.setLag({ path: 0, journal: 3_600_000, id: 0 });
  const [a, b] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.patchNode(b?.id ?? "", { name: "c" }));
  it.rules.choose = ({ path }) => (path === `/v1/nodes/${a?.id}` ? "unavailable" : undefined);
  for (const node of [a, b]) it.metadata().rereads.add(node?.id ?? "");
  await it.world.clock.advance(5_000);
  expect(await it.names()).toEqual(["a", "c"]);
  it.rules.choose = () => undefined;
  it.world.setLag({ path: 0, journal: 0, id: 0 });
  await it.ends(["a", "c"]);
  expect(it.metadata().rereads.count()).toBe(0);
});

test("deletions are forgotten though nobody lists a folder any more", async () => {
  const it = await begin(true);
  await it.save("a");
  await it.drain();
  await it.unlink("a");
  await it.until(() => it.asked.includes("DELETE /v1/nodes/ID 200"));
  await it.world.clock.advance(1_000);
  expect(it.metadata().tombstones.isAnyUpTo(Number.MAX_SAFE_INTEGER)).toBe(true);
  await it.world.clock.advance(90_000);
  expect(it.metadata().tombstones.isAnyUpTo(Number.MAX_SAFE_INTEGER)).toBe(false);
});

test("a name that was deleted while its folder is being listed does not come back with the listing", async () => {
  const answers: (() => void)[] = [];
  const shown: boolean[] = [];
  let held = "";
  const it = await begin(true, {
    engine({ context: { client, metadata } }) {
      const { listFolder, readJournal } = client;
      Object.assign(client, {
        async listFolder(...args: Parameters<typeof listFolder>) {
          const page = await listFolder(...args);
          if (args[0] === held) await new Promise<void>((resolve) => answers.push(resolve));
          return page;
        },
        readJournal(...args: Parameters<typeof readJournal>) {
          const folder = metadata.entries.find(ROOT_INODE, "d")?.inode ?? inodeId(0);
          shown.push(metadata.entries.find(folder, "n") !== undefined);
          return readJournal(...args);
        },
      });
    },
  });
  const { outside, workspace } = it.world;
  const d = await it.world.run(outside.createFolder(workspace.root, "d"));
  const e = await it.world.run(outside.createFolder(workspace.root, "e"));
  const n = await it.world.run(outside.createFolder(d.id, "n"));
  expect(await it.names()).toEqual(["d", "e"]);
  held = d.id;
  const listed = it.calls().list("d");
  await it.until(() => answers.length > 0);
  // The journal tells of it, another listing is past it, and the journal goes on.
  await it.world.run(outside.deleteNode(n.id));
  await it.until(() => it.metadata().settings.getNumber("cursor") >= it.world.position());
  expect(await it.world.run(it.calls().list("e"))).toEqual([]);
  await it.world.run(outside.patchNode(e.id, { attributes: { mode: 0o700 } }));
  await it.until(() => it.metadata().settings.getNumber("cursor") >= it.world.position());
  held = "";
  for (const answer of answers) answer();
  expect(await it.world.run(listed)).toEqual([]);
  expect(shown).not.toContain(true);
});

/** Moved nodes that are observed together: a conflict, a crash or a late entry meanwhile finds each node in its own folder. */
import { expect, test } from "vitest";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import { applyEntries } from "../../../src/engine/remote/follow.ts";
import { observeTogether } from "../../../src/engine/remote/observe-batch.ts";
import { type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { createBytesWorld, hashOf } from "../support/bytes-world.ts";

const NODE: Omit<Node, "id" | "kind" | "name" | "parentId"> = {
  path: "/",
  mimeType: null,
  size: 3,
  head: null,
  contentHash: null,
  lastKey: null,
  revision: 1,
  createdAt: "2026-01-01T00:00:00.000Z",
  modifiedAt: "2026-01-01T00:00:00.000Z",
  attributes: {},
};
const FOLDER = { atime: "0.000000000", ctime: "0.000000000", attributes: {}, size: 0, hash: null } as const;

async function twoInFolder() {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  const files = ["x", "y"].map((name) => world.addRemote(Buffer.from("old"), { name }));
  const folder = metadata.transaction(() => {
    const made = { ...FOLDER, kind: "folder", content: "clean", originNode: null, originVersion: null } as const;
    const { id } = metadata.inodes.create(made);
    const entry = metadata.entries.create(ROOT_INODE, "d", id);
    metadata.nodes.create(born(entry.id, { ...NODE, id: "d", kind: "folder", name: "d", parentId: "root" }));
    for (const name of ["x", "y"]) {
      const row = metadata.nodes.ofNodeId(name);
      if (row?.entry == null || row.base === null) throw new Error("no row");
      metadata.entries.move(row.entry, id, name);
      metadata.nodes.update(row.id, { base: { ...row.base, parent: "d" } });
    }
    return id;
  });
  const told = (name: string, to: string, content: string): Node => ({
    ...NODE,
    id: name,
    kind: "file",
    name: to,
    parentId: "d",
    head: content === "old" ? `version of ${name}` : `${content} version of ${name}`,
    contentHash: hashOf(Buffer.from(content)),
    revision: 2,
  });
  const names = (parent: InodeId) =>
    metadata.entries
      .list(parent, 0, 100)
      .filter((entry) => entry.inode !== parent)
      .map(({ name }) => name);
  return { world, folder, files, told, names };
}

test("changed on both sides, a file that moved with others leaves its conflict copy in its own folder", async () => {
  const { world, folder, files, told, names } = await twoInFolder();
  const [x] = files;
  if (x === undefined) throw new Error("no file");
  const handle = await world.open(x, { write: true });
  await world.write(handle, 0, Buffer.from("our"));
  await world.close(handle);
  expect(await world.context.snapshots.take(x.id, new AbortController().signal)).toBe("taken");
  const nodes = [told("x", "x2", "new"), told("y", "y2", "old")];
  observeTogether(world.context, nodes, "id");
  for (const node of nodes) world.context.observer.node(node, "id");
  expect(names(ROOT_INODE)).toEqual(["d"]);
  expect(
    names(folder)
      .map((name) => name.replace(/ \(conflict.*\)/, " (conflict)"))
      .sort(),
  ).toEqual(["x (conflict)", "x2", "y2"]);
});

test("a noted node is due after a crash; one that is observed afterwards is not", async () => {
  const { world, told } = await twoInFolder();
  const { nodes } = world.context.metadata;
  observeTogether(world.context, [told("x", "x2", "new")], "id");
  expect(world.crash().context.metadata.nodes.ofNodeId("x")).toMatchObject({ due: expect.any(Number) });
  const again = told("y", "y", "old");
  observeTogether(world.context, [again], "id");
  world.context.observer.node(again, "id");
  expect(nodes.ofNodeId("y")).toMatchObject({ seen: null, due: null });
});

test("a folder that cannot take its place yet does not go back into one that went into it", async () => {
  const { context } = await createBytesWorld();
  const { metadata } = context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  const folder = (id: string, parentId: string | null, name = id, revision = 1): Node => ({
    ...NODE,
    id,
    kind: "folder",
    name,
    parentId,
    size: 0,
    contentHash: null,
    revision,
  });
  const entryOf = (position: number, kind: string, { id, name, parentId, revision }: Node): JournalEntry => {
    return { position, time: NODE.createdAt, kind, nodeId: id, revision, parentId, name };
  };
  const inodeOf = (name: string, parent = ROOT_INODE) => metadata.entries.find(parent, name)?.inode ?? inodeId(0);
  metadata.nodes.create(born(root?.id ?? null, folder("root", null, "")));
  for (const id of ["x", "y", "z"]) context.observer.node(folder(id, "root"));
  const [x, y] = [inodeOf("x"), inodeOf("y")];
  metadata.inodes.update(x, { listed: 1 });
  context.observer.node(folder("a", "x"));
  const a = inodeOf("a", x);

  /** Bounded: a folder that is in itself has no end. */
  const pathOf = (inode: InodeId): string => {
    const names: string[] = [];
    for (let at = inode; at !== ROOT_INODE && names.length < 9; ) {
      const [entry] = metadata.entries.ofInode(at);
      if (entry === undefined) break;
      names.unshift(entry.name.replace(/ \(conflict.*\)/, " (conflict)"));
      at = entry.parent;
    }
    return names.join("/");
  };

  // rmdir z; mv x/a z; mv x z/x: the last two are read already when the journal tells of what was before.
  const moved = [folder("a", "root", "z", 3), folder("x", "a", "x", 3)];
  const earlier = moved.map((node, index) => entryOf(1 + index, "changed", { ...node, revision: 2 }));
  applyEntries(context, earlier, new Map(moved.map((node) => [node.id, node])));
  expect([a, x].map(pathOf)).toEqual(["a (conflict)", "a (conflict)/x"]);
  context.observer.node(folder("y", "x", "y", 2), "id");
  expect(pathOf(y)).toBe("a (conflict)/x/y");

  applyEntries(context, [entryOf(3, "deleted", folder("z", "root", "z", 2))], new Map());
  const later = moved.map((node, index) => entryOf(4 + index, "moved", node));
  applyEntries(context, later, new Map(moved.map((node) => [node.id, node])));
  expect([a, x, y].map(pathOf)).toEqual(["z", "z/x", "z/x/y"]);
  expect(metadata.nodes.dirty(9).map(({ nodeId }) => nodeId)).toEqual([]);
});

/** Whatever is changed, and undone: what is remembered of the rows is what reading them again says. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { NO_RANGES } from "../../src/lib/ranges.ts";
import { forgetRead, openDatabase } from "../../src/metadata/database.ts";
import { type AttemptId, entryId, inodeId, kernelNodeId, nodeRowId, snapshotId } from "../../src/metadata/ids.ts";
import { createMetadata, type Part, ROOT_INODE } from "../../src/metadata/metadata.ts";
import { born, unborn } from "../../src/metadata/nodes.ts";
import { NEW_INODE } from "../support/new-inode.ts";
import { SEED } from "../support/seed.ts";

const NEW = { ...NEW_INODE, kind: "file", attributes: { mode: 0o644 }, content: "dirty" } as const;
const NODE = {
  kind: "file",
  path: "/a",
  name: "a",
  parentId: "p",
  mimeType: "text/plain",
  size: 1,
  head: "h",
  contentHash: "c",
  lastKey: null,
  revision: 3,
  createdAt: "2026-01-01T00:00:00.000Z",
  modifiedAt: "2026-01-01T00:00:00.000Z",
  attributes: {},
} as const;
const IDS = 6;
const UNDONE = new Error("undone");

const step = fc.record({ what: fc.nat(28), a: fc.integer({ min: 1, max: IDS }), b: fc.integer({ min: 1, max: IDS }) });
/** `undo`: all of it is taken back, or a part of a transaction that goes on. */
const change = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  undo: fc.constantFrom("no", "no", "no", "part", "all"),
});

test("what is remembered is what is there", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40, size: "max" }), (changes) => {
      const database = openDatabase(":memory:");
      const metadata = createMetadata<unknown>(database, (value) => value);
      const { inodes, entries, nodes, cacheFiles, times, recount, snapshots, attempts, settings } = metadata;
      metadata.transaction(() => {
        inodes.create({ ...NEW, kind: "folder" });
        metadata.createRootEntry();
      });
      let names = 0;
      // Most steps take one of the newest rows, so that they are there and point at each other.
      const made = {
        inode: [inodeId(1)],
        entry: [entryId(3)],
        node: [nodeRowId(0)],
        attempt: [] as AttemptId[],
        generation: [snapshotId(0)],
      };
      const noted = <Id>(ids: Id[], { id }: { readonly id: Id }) => ids.push(id);
      const inodeAt = (back: number) => made.inode.at(-back) ?? inodeId(1);
      const entryAt = (back: number) => made.entry.at(-back) ?? entryId(3);
      const nodeAt = (back: number) => made.node.at(-back) ?? nodeRowId(0);
      const attemptAt = (back: number) => made.attempt.at(-back) ?? (0 as AttemptId);
      const generationAt = (back: number) => made.generation.at(-back) ?? snapshotId(0);
      const kernelNodeIdAt = (back: number) => inodes.get(inodeAt(back))?.kernelNodeId ?? kernelNodeId(0);
      const steps: ((a: number, b: number) => unknown)[] = [
        () => noted(made.inode, inodes.create(NEW)),
        (a) => inodes.update(inodeAt(a), { size: a, attributes: { mode: a, mtime: `${a}.0` } }),
        (a, b) =>
          inodes.update(inodeAt(a), { content: b > 3 ? "clean" : "dirty", synced: "durable", isFsynced: b > 1 }),
        (a) => inodes.replaceKernelNodeId(inodeAt(a), { content: "clean" }),
        (a) => noted(made.entry, entries.create(ROOT_INODE, `name-${names++}`, inodeAt(a))),
        (a, b) => noted(made.node, nodes.create(unborn(entryAt(a), "file", rowTime(b), rowTime(b)))),
        (a, b) => noted(made.node, nodes.create(born(entryAt(a), { ...NODE, id: `node-${b}` }))),
        (a) => nodes.update(nodeAt(a), { due: null, parked: "no", priority: a > 1 ? "bulk" : "small" }),
        (a, b) => nodes.update(nodeAt(a), { entry: entryAt(b) }),
        (a) => nodes.update(nodeAt(a), { entry: null }),
        (a, b) => nodes.update(nodeAt(a), { nodeId: `node-${b}`, base: { ...baseOf(a), revision: b } }),
        (a, b) => nodes.update(nodeAt(a), { seen: b > 3 ? null : { deleted: true, revision: b } }),
        (a) => nodes.remove(nodeAt(a)),
        (a, b) => entries.setInode(entryAt(a), inodeAt(b)),
        (a, b) => entries.move(entryAt(a), ROOT_INODE, `name-${names++}`, b > 3 ? "other" : null),
        (a) => entries.remove(entryAt(a)),
        (a) => cacheFiles.create({ ...LIVE, kernelNodeId: kernelNodeIdAt(a) }),
        (a, b) => cacheFiles.update(kernelNodeIdAt(a), { size: b, missing: NO_RANGES }),
        (a) => cacheFiles.remove(kernelNodeIdAt(a)),
        (a) => inodes.removeKernelNodeId(kernelNodeIdAt(a)),
        (a) => inodes.remove(inodeAt(a)),
        (a, b) => [
          nodes.expedite(rowTime(a), b),
          times.notAfter(rowTime(a)),
          cacheFiles.markAllForCheck(),
          recount(rowTime(0)),
        ],
        (a, b) =>
          noted(made.generation, snapshots.create({ ...CUT, inode: inodeAt(a), kernelNodeId: kernelNodeIdAt(b) })),
        (a) => snapshots.detach(generationAt(a)),
        (a) => snapshots.remove(generationAt(a)),
        (a, b) =>
          noted(
            made.attempt,
            attempts.create({
              ...SENT,
              node: nodeAt(a),
              snapshot: generationAt(b),
              key: `${++names}`,
              priority: b > 1 ? "bulk" : "small",
            }),
          ),
        (a, b) =>
          b > 3 ? attempts.failed(attemptAt(a), rowTime(b), "failed") : attempts.abandon(attemptAt(a), rowTime(b)),
        (a, b) => (b > 1 ? attempts.remove(attemptAt(a)) : attempts.removeAllOf(nodeAt(a))),
        (a, b) => settings.set(b > 3 ? "cursor" : "written", String(a)),
      ];
      const baseOf = (back: number) =>
        nodes.get(nodeAt(back))?.base ?? born(null, { ...NODE, id: "x" }).base ?? never();
      const kernelNodeIds = () => Math.max(...made.inode.map((id) => inodes.get(id)?.kernelNodeId ?? 0));
      const all = () => [
        [settings.getNumber("cursor"), settings.get("written"), inodes.newestKernelNodeId(), entries.count()],
        ...Array.from({ length: names + 1 }, (_, count) => entries.find(ROOT_INODE, `name-${count}`)),
        ...made.generation.map((id) => [snapshots.get(id), attempts.ofSnapshot(id)]),
        ...made.inode.map((id) => snapshots.newestOf(id)),
        ...made.node.map((id) => attempts.openOf(id)),
        ...[...made.inode, inodeId(9)].map((id) => [
          inodes.get(id),
          entries.ofInode(id),
          entries.links(id),
          entries.firstOfInode(id),
          inodes.kernelNodeIds(id),
        ]),
        ...[...made.entry, entryId(99)].map((id) => [entries.get(id), nodes.ofEntry(id)]),
        ...[...made.node, nodeRowId(9)].map((id) => nodes.get(id)),
        ...Array.from({ length: IDS + 1 }, (_, id) => nodes.ofNodeId(`node-${id}`)),
        ...Array.from({ length: kernelNodeIds() + 2 }, (_, id) => kernelNodeId(id)).map((id) => [
          inodes.ofKernelNodeId(id),
          cacheFiles.get(id),
          snapshots.ofKernelNodeId(id),
        ]),
      ];
      const run = (change: (typeof changes)[number]) => {
        for (const { what, a, b } of change.steps) attempt(() => steps[what]?.(a, b));
        if (change.undo !== "no") throw UNDONE;
      };
      for (const one of changes) {
        all();
        if (one.undo === "part") metadata.transaction(() => attempt(() => resultOf(metadata.part(() => run(one)))));
        else attempt(() => metadata.transaction(() => run(one)));
        const remembered = all();
        forgetRead(database);
        expect(all()).toEqual(remembered);
      }
      metadata.close();
    }),
    { seed: SEED, numRuns: 20 },
  );
});

const SENT = { request: { do: "folder", left: undefined }, nextAt: rowTime(1), createdAt: rowTime(1) };
const CUT = { changes: 0, size: 1, hash: "h", mtime: "", synced: 1, boot: "" };
const LIVE = { originNode: null, originVersion: null, size: 0, bytes: 0, missing: NO_RANGES, usedAt: rowTime(1) };

/** Many steps ask for what is not there, or not to be had twice: such a change is none. */
function attempt(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    const isRefused =
      error instanceof Error && /^(SQLITE_CONSTRAINT|no (inode|node row|cache file))/.test(codeOf(error));
    if (error !== UNDONE && !isRefused) throw error;
  }
}

function resultOf<T>(part: Part<T>): T {
  if ("error" in part) throw part.error;
  return part.value;
}

const codeOf = (error: Error) => ("code" in error ? String(error.code) : error.message);

function never(): never {
  throw new Error("a born row has a base");
}

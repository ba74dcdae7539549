/** Link leases as rows: which mount updates the names of a linked file, until when, and how far it came. */
import { beforeEach, expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { entryId, type InodeId } from "../../src/metadata/ids.ts";
import { createMetadata, type Metadata } from "../../src/metadata/metadata.ts";
import { unborn } from "../../src/metadata/nodes.ts";

let metadata: Metadata<unknown>;
beforeEach(() => {
  metadata = createMetadata(openDatabase(":memory:"), (value) => value);
});

function file(): InodeId {
  const about = { attributes: {}, size: 0, hash: null, originNode: null, originVersion: null, atime: "0", ctime: "0" };
  return metadata.inodes.create({ kind: "file", content: "clean", ...about }).id;
}

test("a link lease ends at its first end, however often it is begun again", () => {
  const [a, b] = [file(), file()];
  expect([metadata.linkLeases.get(a), metadata.linkLeases.nextEnd()]).toEqual([undefined, undefined]);
  metadata.linkLeases.begin(a, rowTime(200));
  metadata.linkLeases.begin(b, rowTime(100));
  metadata.linkLeases.begin(a, rowTime(300));
  expect([metadata.linkLeases.get(a)?.endsAt, metadata.linkLeases.nextEnd()]).toEqual([200, 100]);
  expect([99, 100, 200].map((now) => metadata.linkLeases.ended(rowTime(now))?.inode)).toEqual([undefined, b, b]);
  metadata.linkLeases.done(b);
  expect([metadata.linkLeases.ended(rowTime(200))?.inode, metadata.linkLeases.nextEnd()]).toEqual([a, 200]);
});

test("an interrupted update goes on where it was; with a clock that begins anew the link lease is over", () => {
  const a = file();
  metadata.linkLeases.begin(a, rowTime(10_000));
  metadata.linkLeases.reached(a, entryId(7));
  expect(metadata.linkLeases.ended(rowTime(9_999))).toBeUndefined();
  metadata.times.notAfter(rowTime(500));
  expect(metadata.linkLeases.ended(rowTime(500))).toEqual({ inode: a, endsAt: 500, reached: 7 });
});

test("the link lease of a file goes with the file", () => {
  const a = file();
  metadata.linkLeases.begin(a, rowTime(1));
  metadata.inodes.remove(a);
  expect([metadata.linkLeases.ended(rowTime(1)), metadata.linkLeases.nextEnd()]).toEqual([undefined, undefined]);
});

test("names are made due in slices, but for those that have a time of their own", () => {
  const [folder, inode, other] = [file(), file(), file()];
  const row = (name: string, of: InodeId, change: object) => {
    const { id } = metadata.entries.create(folder, name, of);
    return metadata.nodes.create({
      ...unborn(id, "file", rowTime(0), rowTime(0)),
      dirtySince: null,
      due: null,
      ...change,
    }).id;
  };
  const rows = [
    row("a", inode, {}),
    row("b", inode, { due: 900 }),
    row("c", inode, { dirtySince: 1 }),
    row("d", other, {}),
    row("e", inode, {}),
  ];
  const due = () => rows.map((id) => metadata.nodes.get(id)?.due);
  const reached = metadata.nodes.lookAtNames(inode, rowTime(50), 0, 3);
  expect(due()).toEqual([50, 900, null, null, null]);
  expect(metadata.nodes.lookAtNames(inode, rowTime(60), reached ?? 0, 3)).toBeUndefined();
  expect(due()).toEqual([50, 900, null, null, 60]);
});

/** How many folders are shown in a folder: counted as names come and go, and in the rows of the schema before. */
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { type EntryId, entryId, type InodeId, inodeId } from "../../src/metadata/ids.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { NEW_INODE } from "../support/new-inode.ts";
import { SEED } from "../support/seed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PLACES = 4;

interface Counted {
  readonly id: InodeId;
  readonly folders: number;
  readonly shown: number;
}

function counts(database: Connection): Counted[] {
  const count = database.prepare<[], Counted>(`SELECT id, folders,
    (SELECT count(*) FROM entry, inode AS child WHERE entry.parent = inode.id AND child.id = entry.inode
      AND child.kind = 'folder' AND entry.name <> '' AND entry.name NOT LIKE '%/%') AS shown FROM inode ORDER BY id`);
  return count.all();
}

const expectCounted = (database: Connection) =>
  expect(counts(database).map(({ id, folders }) => ({ id, folders }))).toEqual(
    counts(database).map(({ id, shown }) => ({ id, folders: shown })),
  );

const step = fc.record({
  what: fc.constantFrom("folder", "file", "move", "aside", "exchange", "remove", "rename"),
  at: fc.nat(20),
  to: fc.nat(20),
  isUndone: fc.boolean(),
});

test("names come, move, step aside and go: the count is that of the folders shown, for programs told as a change", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const database = openDatabase(":memory:");
      const metadata = createMetadata<unknown>(database, (value) => value);
      const { inodes, entries } = metadata;
      metadata.transaction(() => {
        const root = inodes.create({ ...NEW_INODE, kind: "folder" });
        metadata.createRootEntry();
        for (let place = 1; place < PLACES; place += 1) {
          entries.create(root.id, `p${place}`, inodes.create({ ...NEW_INODE, kind: "folder" }).id);
        }
      });
      let told = new Set<number>();
      metadata.changed.onTell((changed) => {
        told = new Set([...changed.inodes, ...changed.made]);
      });
      let named = 0;
      const all = () => database.prepare<[], { id: EntryId }>("SELECT id FROM entry WHERE id > 15 ORDER BY id").all();
      const entryAt = (index: number) => entries.get(all()[index % all().length]?.id ?? entryId(0));
      const make = (kind: "folder" | "file", to: number) => {
        named += 1;
        entries.create(inodeId(1 + (to % PLACES)), `n${named}`, inodes.create({ ...NEW_INODE, kind }).id);
      };
      const carryOut = ({ what, at, to }: (typeof steps)[number]) => {
        if (what === "folder" || what === "file") return make(what, to);
        const [one, other] = [entryAt(at), entryAt(to)];
        if (one === undefined || other === undefined) return;
        named += 1;
        if (what === "move") entries.move(one.id, inodeId(1 + (to % PLACES)), `n${named}`);
        if (what === "rename") entries.move(one.id, one.parent, `n${named}`, "as the gateway has it");
        if (what === "aside") entries.move(one.id, one.parent, `/${one.id}`);
        if (what === "exchange") {
          entries.setInode(one.id, other.inode);
          entries.setInode(other.id, one.inode);
        }
        if (what === "remove" && all().length > PLACES) entries.remove(one.id);
      };
      for (const one of steps) {
        const before = counts(database);
        told.clear();
        const undone = new Error("undone");
        const change = () => {
          carryOut(one);
          if (one.isUndone) throw undone;
        };
        try {
          metadata.transaction(change);
        } catch (error) {
          if (error !== undone) throw error;
        }
        expectCounted(database);
        for (const { id, folders } of counts(database)) {
          expect(inodes.get(id)?.folders).toBe(folders);
          const was = before.find((row) => row.id === id)?.folders ?? 0;
          if (was !== folders) expect(told).toContain(id);
        }
      }
      metadata.close();
    }),
    { seed: SEED, numRuns: 150 },
  );
});

test("the rows of the schema before are counted once", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  const length = MIGRATIONS.findIndex((sql) => sql.includes("ADD COLUMN folders"));
  for (const sql of MIGRATIONS.slice(0, length)) before.exec(sql);
  before.pragma(`user_version = ${length}`);
  before.exec(`INSERT INTO inode (id, lineage, kind, attributes, size, content, atime, ctime)
    VALUES (1, 1, 'folder', '{}', 0, 'clean', '0', '0'), (2, 2, 'folder', '{}', 0, 'clean', '0', '0'),
      (3, 3, 'folder', '{}', 0, 'clean', '0', '0'), (4, 4, 'file', '{}', 0, 'clean', '0', '0'),
      (5, 5, 'folder', '{}', 0, 'clean', '0', '0')`);
  before.exec(`INSERT INTO entry (id, parent, name, inode)
    VALUES (3, 1, '', 1), (16, 1, 'a', 2), (17, 1, 'b', 3), (18, 2, 'file', 4), (19, 1, '/19', 5)`);
  before.close();
  const database = openDatabase(path);
  expect(counts(database).map(({ folders }) => folders)).toEqual([2, 0, 0, 0, 0]);
  expectCounted(database);
  database.close();
});

/** A process of its own: rows as a mount keeps them, by whichever SQLite this Node has. Prints that one's name, commits and reads a second. */
import { join } from "node:path";
import { sqliteDriver } from "../../../src/lib/sqlite/index.ts";
import { openDatabase, prepare } from "../../../src/metadata/database.ts";

const SECONDS = 1;
const ROWS = 2000;

const database = openDatabase(join(process.argv[2] ?? "", "rows.db"));
database.exec(`CREATE TABLE sample (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL,
  time INTEGER NOT NULL, hash TEXT, state TEXT NOT NULL) STRICT; CREATE UNIQUE INDEX sample_name ON sample(parent, name)`);
const insert = prepare(
  database,
  "INSERT INTO sample (parent, name, size, time, hash, state) VALUES (?, ?, ?, ?, NULL, 'new')",
);
const update = prepare(database, "UPDATE sample SET size = ?, state = 'written' WHERE id = ?");
const read = prepare<{ id: number; name: string }>(database, "SELECT * FROM sample WHERE parent = ? AND name = ?");
const begin = database.prepare("BEGIN");
const commit = database.prepare("COMMIT");

/** How often a second. */
function measure(work: (turn: number) => void): number {
  const begun = performance.now();
  let turns = 0;
  let elapsed = 0;
  for (; elapsed < SECONDS * 1000; elapsed = performance.now() - begun) {
    for (let index = 0; index < 50; index += 1, turns += 1) work(turns);
  }
  return turns / (elapsed / 1000);
}

const commits = measure((turn) => {
  begin.run();
  const { lastInsertRowid } = insert.run(turn % 40, `file ${turn}`, 0, turn);
  update.run(turn, lastInsertRowid);
  commit.run();
});
const reads = measure((turn) => {
  const row = turn % ROWS;
  if (read.get(row % 40, `file ${row}`)?.name !== `file ${row}`) throw new Error(`row ${row} is not as it was written`);
});
database.close();
console.log(JSON.stringify({ driver: sqliteDriver(), commits, reads }));

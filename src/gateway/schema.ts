/**
 * The tables of the gateway's store, as numbered migrations: one that has been released is never
 * changed, a new one is appended.
 *
 * History is kept, not overwritten. `change` has one row for every change of a node with its state
 * after it; `node` says which one is the latest. `place` says which node has a name in a folder
 * since which position, `past_place` who had it before; together they answer a listing as of any
 * position, which is how the path index (late by its lag), pages of one snapshot and at= are served
 * from the same rows. A position is a place in one sequence for all workspaces.
 */
import type { Database } from "better-sqlite3";

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE workspace (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    entries INTEGER NOT NULL,         -- journal entries so far
    used INTEGER NOT NULL             -- bytes of all versions
  );
  CREATE TABLE node (                 -- the authoritative store: what is true now
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT,                      -- null for a root
    name TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    provisioned INTEGER NOT NULL,     -- 0: a folder no journal entry has named yet; it has no place
    position INTEGER NOT NULL,        -- its latest change
    versions INTEGER NOT NULL,        -- number of its latest version
    created_at INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX node_name ON node(parent, name) WHERE deleted = 0;
  CREATE TABLE change (
    position INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,            -- ms; never goes back
    workspace TEXT NOT NULL,
    node TEXT NOT NULL,
    kind TEXT NOT NULL,
    activity INTEGER NOT NULL,        -- 1: told by a caller, the node is as before
    entry INTEGER,                    -- number of the journal entry in its workspace; null: none
    revision INTEGER NOT NULL,
    parent TEXT,
    name TEXT NOT NULL,
    head TEXT,
    attributes TEXT NOT NULL,         -- JSON
    deleted INTEGER NOT NULL,
    key TEXT                          -- idempotency key of the request
  );
  CREATE INDEX change_node ON change(node, position) WHERE activity = 0;
  CREATE INDEX change_entry ON change(workspace) WHERE entry IS NOT NULL;   -- in the order of positions
  CREATE TABLE place (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    node TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
  ) WITHOUT ROWID;
  CREATE TABLE past_place (           -- held for since <= position < until
    parent TEXT NOT NULL,
    until INTEGER NOT NULL,
    name TEXT NOT NULL,
    node TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (parent, until, name)
  ) WITHOUT ROWID;
  CREATE INDEX past_place_node ON past_place(node, until);
  CREATE TABLE content (              -- small contents are kept here, others in the blob store
    id INTEGER PRIMARY KEY,
    blob TEXT UNIQUE,
    bytes BLOB
  );
  CREATE TABLE version (
    id TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    number INTEGER NOT NULL,
    branch TEXT NOT NULL,
    position INTEGER NOT NULL,        -- the change that made it
    content INTEGER NOT NULL,
    size INTEGER NOT NULL,
    hash TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    created_at INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX version_number ON version(node, number);
  CREATE TABLE idempotency (
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,            -- what the key was used for
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (workspace, key)
  ) WITHOUT ROWID;
  CREATE INDEX idempotency_time ON idempotency(time);
  CREATE TABLE shown (                -- how far the late readers have come
    reader TEXT PRIMARY KEY,
    position INTEGER NOT NULL
  ) WITHOUT ROWID;
  INSERT INTO shown VALUES ('path', 0), ('journal', 0);
  `,
];

/** Brings the tables to this program's version. Throws when they are from a newer one. */
export function migrate(database: Database): void {
  const version = Number(database.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new Error(
      `The store has schema ${version}, this program knows schemas up to ${MIGRATIONS.length}: a newer wsfs wrote it.`,
    );
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    database.transaction(() => {
      database.exec(sql);
      database.pragma(`user_version = ${index + 1}`);
    })();
  }
}

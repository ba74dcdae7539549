/**
 * The tables of the gateway's store, as numbered migrations. A released migration is never changed; a new one is
 * appended.
 *
 * History is kept, not overwritten. `change` has one row for every change of a node, with its state afterwards; `node`
 * names the latest one. `place` says which node has a name in a folder and since which position; `past_place` says
 * which node had it before. Together they answer a listing as of any position. So the path index (late by its lag),
 * pages of one position, and at= are served from the same rows. A position is a place in one sequence for all
 * workspaces.
 *
 * `mark` counts the places of a folder, by stretches of each order in which one can jump to a page. A large folder
 * ("big") has a mark about each thousand places, any other folder has a single mark.
 */
import type { Connection } from "../lib/sqlite/index.ts";

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
  `
  -- What a node is now lies in its own row: a page of a thousand reads a thousand rows, not four thousand.
  ALTER TABLE node ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE node ADD COLUMN head TEXT;                            -- of the branch main
  ALTER TABLE node ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE node ADD COLUMN key TEXT;
  ALTER TABLE node ADD COLUMN mime_type TEXT;
  ALTER TABLE node ADD COLUMN size INTEGER;
  ALTER TABLE node ADD COLUMN hash TEXT;
  ALTER TABLE node ADD COLUMN head_time INTEGER;
  UPDATE node SET (revision, head, attributes, key) =
    (SELECT revision, head, attributes, key FROM change WHERE change.position = node.position);
  UPDATE node SET (mime_type, size, hash, head_time) =
    (SELECT mime_type, size, hash, created_at FROM version WHERE version.id = node.head);

  ALTER TABLE place ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;   -- the node's
  ALTER TABLE place ADD COLUMN big INTEGER NOT NULL DEFAULT 0;          -- 1: in a folder with many marks
  UPDATE place SET created_at = (SELECT created_at FROM node WHERE node.id = place.node);
  CREATE INDEX place_id ON place(parent, node, since) WHERE big = 1;
  CREATE INDEX place_created ON place(parent, created_at, node, since) WHERE big = 1;
  CREATE INDEX place_since ON place(parent, since) WHERE big = 1;
  DROP INDEX past_place_node;
  CREATE TABLE mark (                 -- the places from its key up to that of the next mark
    folder TEXT NOT NULL,
    field TEXT NOT NULL,              -- name, id, createdAt; the last two of big folders only
    a NOT NULL,                       -- the key: a name, an id, or a time
    b TEXT NOT NULL,                  -- and an id; empty for names and ids
    count INTEGER NOT NULL,
    PRIMARY KEY (folder, field, a, b)
  ) WITHOUT ROWID;
  INSERT INTO mark SELECT parent, 'name', '', '', count(*) FROM place GROUP BY parent;
  UPDATE place SET big = 1 WHERE parent IN (SELECT folder FROM mark WHERE count > 2048);
  INSERT OR REPLACE INTO mark
    SELECT parent, 'name', iif(r = 0, '', name), iif(r = 0, '', ''), min(1024, total - r) FROM (
      SELECT parent, name, node, created_at, row_number() OVER (PARTITION BY parent ORDER BY name, '') - 1 AS r,
             count(*) OVER (PARTITION BY parent) AS total FROM place WHERE big = 1) WHERE r % 1024 = 0;
  INSERT OR REPLACE INTO mark
    SELECT parent, 'id', iif(r = 0, '', node), iif(r = 0, '', ''), min(1024, total - r) FROM (
      SELECT parent, name, node, created_at, row_number() OVER (PARTITION BY parent ORDER BY node, '') - 1 AS r,
             count(*) OVER (PARTITION BY parent) AS total FROM place WHERE big = 1) WHERE r % 1024 = 0;
  INSERT OR REPLACE INTO mark
    SELECT parent, 'createdAt', iif(r = 0, -1, created_at), iif(r = 0, '', node), min(1024, total - r) FROM (
      SELECT parent, name, node, created_at, row_number() OVER (PARTITION BY parent ORDER BY created_at, node) - 1 AS r,
             count(*) OVER (PARTITION BY parent) AS total FROM place WHERE big = 1) WHERE r % 1024 = 0;

  ALTER TABLE change ADD COLUMN branch TEXT;        -- whose head it moved
  ALTER TABLE change ADD COLUMN branch_head TEXT;
  ALTER TABLE version ADD COLUMN mtime TEXT;        -- of branches; that of main's head is among the attributes
  CREATE INDEX version_branch ON version(node, branch, number) WHERE branch <> 'main';
  `,
  `
  -- A new key costs one row at the end of the table and one in a small index. An answer that is a node is
  -- not kept: history has the node as it was then.
  CREATE TABLE keyed (
    id INTEGER PRIMARY KEY,           -- in the order of time, but for what the clock did
    key TEXT NOT NULL,
    workspace TEXT NOT NULL,
    request TEXT NOT NULL,            -- what the key was used for
    time INTEGER NOT NULL,
    status INTEGER NOT NULL,
    node TEXT,                        -- the answer: this node as of the position, with the content of the branch
    position INTEGER,
    branch TEXT,                      -- null: main
    answer TEXT                       -- any other answer, JSON
  );
  INSERT INTO keyed (key, workspace, request, time, status, answer)
    SELECT key, workspace, request, time, status, answer FROM idempotency ORDER BY time;
  DROP TABLE idempotency;
  ALTER TABLE keyed RENAME TO idempotency;
  CREATE INDEX idempotency_key ON idempotency(key);
  `,
  `
  -- What is used are the heads of what is there (quota.ts), no longer all versions ever written.
  UPDATE workspace SET used =
    (SELECT coalesce(sum(size), 0) FROM node WHERE node.workspace = workspace.id AND deleted = 0)
    + (SELECT coalesce(sum(v.size), 0) FROM version v JOIN node n ON n.id = v.node
       WHERE n.workspace = workspace.id AND n.deleted = 0 AND v.branch <> 'main'
         AND v.number = (SELECT max(number) FROM version WHERE node = v.node AND branch = v.branch AND branch <> 'main'));
  `,
  `
  -- Large attributes are kept as differences from now on, and thinned out (attribute-states.ts); with activities, none.
  UPDATE change SET attributes = '' WHERE activity = 1;
  -- Beside change_entry: the last change of a workspace, of either kind.
  CREATE INDEX IF NOT EXISTS change_silent ON change(workspace) WHERE entry IS NULL;
  -- Large folders that are being copied (staged-copies.ts), and those of their nodes the journal does not tell yet.
  CREATE TABLE IF NOT EXISTS copy (
    root TEXT PRIMARY KEY,            -- a node once it has its place
    placed INTEGER NOT NULL,
    journaled INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS copied (
    node TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    position INTEGER NOT NULL         -- of the change that made it
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS copied_root ON copied(root, position);
  CREATE INDEX IF NOT EXISTS change_large ON change(position) WHERE activity = 0 AND revision > 1 AND revision % 64 <> 0
    AND (length(attributes) > 1024 OR substr(attributes, 1, 1) = '+');
  `,
  `
  ALTER TABLE change ADD COLUMN by TEXT;            -- JSON of the contract's Author; null: not known
  `,
  `
  CREATE TABLE IF NOT EXISTS installation (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    engine TEXT NOT NULL,             -- id; the name is kept, as engines can be removed
    engine_name TEXT NOT NULL,
    folder TEXT NOT NULL,             -- a node
    created_at INTEGER NOT NULL,
    by TEXT                           -- JSON of the contract's Author
  );
  CREATE UNIQUE INDEX IF NOT EXISTS installation_engine ON installation(workspace, engine);
  CREATE TABLE IF NOT EXISTS execution (            -- engines/execution-rows.ts
    number INTEGER PRIMARY KEY AUTOINCREMENT,   -- in the order in which they were asked for
    id TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    engine TEXT NOT NULL,
    engine_name TEXT NOT NULL,
    installation TEXT NOT NULL,
    folder TEXT NOT NULL,
    state TEXT NOT NULL,
    position INTEGER NOT NULL,        -- of the journal entry that says it was queued
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    exit_code INTEGER,
    detail TEXT,
    log_bytes INTEGER NOT NULL DEFAULT 0,       -- once it has ended
    account TEXT,                     -- id of the account it runs for; null: of none
    by TEXT,
    trigger_id TEXT,
    trigger_key TEXT,                 -- what the trigger calls the occasion
    cause TEXT,                       -- JSON
    input TEXT NOT NULL               -- JSON
  );
  CREATE UNIQUE INDEX IF NOT EXISTS execution_key ON execution(trigger_key) WHERE trigger_key IS NOT NULL;
  CREATE INDEX IF NOT EXISTS execution_queued ON execution(workspace, number) WHERE state = 'queued';
  CREATE INDEX IF NOT EXISTS execution_running ON execution(number) WHERE state = 'running';
  CREATE INDEX IF NOT EXISTS execution_ended ON execution(workspace, number) WHERE ended_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS execution_age ON execution(ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS execution_workspace ON execution(workspace, number);
  `,
  `
  CREATE TABLE IF NOT EXISTS engine_trigger (         -- triggers/
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    engine TEXT NOT NULL,             -- id; the name is kept, as engines can be removed
    engine_name TEXT NOT NULL,
    condition TEXT NOT NULL,          -- JSON of the contract's TriggerCondition
    input TEXT NOT NULL,              -- JSON
    enabled INTEGER NOT NULL,
    created_at INTEGER NOT NULL,      -- ms
    account TEXT,                     -- id of the account its executions run for; null: of none
    by TEXT,                          -- JSON of the contract's Author
    position INTEGER NOT NULL,        -- of a journal: entries up to it have been dealt with
    due_at INTEGER,                   -- of a schedule: when it starts next, ms
    failures INTEGER NOT NULL,
    retry_at INTEGER,                 -- it starts nothing before, ms
    detail TEXT,                      -- what went wrong last
    last_execution TEXT,
    watched TEXT                      -- an execution of its whose end is to be looked at
  );
  CREATE UNIQUE INDEX IF NOT EXISTS trigger_name ON engine_trigger(workspace, name);
  `,
  `
  -- The past is asked for by folder, node, account and mount. Each index is in the order of positions.
  CREATE INDEX IF NOT EXISTS change_deleted_from ON change(parent) WHERE kind = 'deleted' AND activity = 0;
  CREATE INDEX IF NOT EXISTS change_deleted ON change(workspace) WHERE kind = 'deleted' AND activity = 0;
  -- Beside change_node.
  CREATE INDEX IF NOT EXISTS change_activity ON change(node) WHERE activity = 1;
  CREATE INDEX IF NOT EXISTS change_account ON change(workspace, by ->> 'account') WHERE entry IS NOT NULL AND by IS NOT NULL;
  CREATE INDEX IF NOT EXISTS change_mount ON change(workspace, by ->> 'mount')
    WHERE entry IS NOT NULL AND by ->> 'mount' IS NOT NULL;
  CREATE INDEX IF NOT EXISTS change_mount_account ON change(workspace, by ->> 'mount', by ->> 'account')
    WHERE entry IS NOT NULL AND by ->> 'mount' IS NOT NULL;
  `,
  `
  -- retention/: a version whose content was thinned has content 0; all else that is known of it stays.
  ALTER TABLE workspace ADD COLUMN policy TEXT;                     -- JSON of a policy; null: everything is kept
  ALTER TABLE workspace ADD COLUMN pruned_at INTEGER;               -- ms: when the policy was set or applied last
  ALTER TABLE node ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;    -- 1: deleted, and never to be restored
  CREATE INDEX node_past ON node(workspace, id) WHERE versions > 1 OR deleted = 1;
  CREATE INDEX version_content ON version(content);
  CREATE INDEX version_thinned ON version(node, branch) WHERE content = 0;
  `,
];

/** Brings the tables to the version of this program. Throws when they are from a newer one. */
export function migrate(database: Connection): void {
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

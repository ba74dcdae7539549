/**
 * The tables of the state dir, as numbered migrations. A migration that has shipped never changes; a new one is added
 * below it. Times are milliseconds of row time (engine/host/row-clock.ts), or "seconds.nnnnnnnnn" text where a file
 * system shows them.
 *
 * Names of tables and columns, and comments in old migrations, may be older than the terms of docs/dev/glossary.md. The
 * terms, where rows are read and written:
 * - lineage (table and columns): kernel node id (inodes.ts); superseded: those that their inode has left
 * - nameless: orphans (inodes.ts)
 * - live: cache file (cache-files.ts); live.missing: persisted missing ranges; live.unproven: unverified ranges;
 *   live.doubted: its clean bytes must be checked; held: the bytes of all cache files on the disk
 * - generation (table and column): snapshot (attempts.ts)
 * - gone: files to be removed (gone-files.ts); gone.kind 'live', 'generation': cache file, snapshot
 * - overtaken: detached file (detached-files.ts); overtaken.way: its former path; is_removed: its name went
 * - turn: link lease (link-leases.ts)
 * - vacated: vacated states, for echoes (vacated-states.ts); vacated.heard: it was told since
 * - done: request log (request-log.ts); done.place: the place of a request
 * - writing: inodes with an open writer (writers.ts); inode.fsynced: a program called fsync on it
 * - left_parent, left_name, left_at of node: the place that a program moved it away from
 * - past_node, past_list: the history folder (past-nodes.ts)
 *
 * Values that stand for states. They are translated where the rows are read and written:
 * - node.changed_at 0: not known (nodes.ts)
 * - node.base_revision 0: unknown since a rollback; below every revision, so that the next state is news (recount.ts)
 * - node.base_position 0: no write of ours; negative: minus the time since which a write is unconfirmed (nodes.ts)
 * - node.bulk and attempt.bulk 0, 1: the priority class (priority.ts)
 * - inode.used 0: never (inodes.ts)
 * - inode.synced 1, 0, NULL, -1: durable, formerly, never, quarantined (inodes.ts)
 * - setting.value '': absent (settings.ts)
 * - live.missing and live.unproven '[]': no ranges (cache-files.ts)
 * - done.lineage 0: the answer has no node (request-log.ts)
 */

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

  -- Attributes and content behind one or more entries. The id is st_ino and never comes back.
  CREATE TABLE inode (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('file','folder','symlink','fifo','socket','block','character')),
    lineage INTEGER NOT NULL,           -- the current one
    attributes TEXT NOT NULL,           -- JSON, contract/attributes.ts
    size INTEGER NOT NULL,
    hash TEXT,                          -- of the content; NULL while not known
    origin_node TEXT,                   -- the version the content is (clean) or grew from
    origin_version TEXT,
    content TEXT NOT NULL CHECK (content IN ('clean','open','dirty')), -- open: a writer may have changed it
    changes INTEGER NOT NULL DEFAULT 0, -- goes up whenever the content may have changed
    atime TEXT NOT NULL,
    ctime TEXT NOT NULL,
    link_group TEXT,                    -- shared by the names of a hard-linked inode
    listed INTEGER                      -- folder: complete as of this journal position; NULL: not complete
  ) STRICT;
  CREATE INDEX inode_by_group ON inode(link_group) WHERE link_group IS NOT NULL;

  CREATE INDEX inode_by_origin ON inode(origin_node) WHERE origin_node IS NOT NULL;

  -- What the kernel calls a node id. Rows other than an inode's current one are superseded.
  CREATE TABLE lineage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    inode INTEGER NOT NULL REFERENCES inode(id) ON DELETE CASCADE
  ) STRICT;
  CREATE INDEX lineage_by_inode ON lineage(inode);

  -- A name in a folder. The id never comes back and is the readdir cookie.
  CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    parent INTEGER NOT NULL REFERENCES inode(id),
    name TEXT NOT NULL,                 -- as shown
    gateway_name TEXT,                  -- where the gateway's differs from the shown one
    inode INTEGER NOT NULL REFERENCES inode(id),
    UNIQUE (parent, name)
  ) STRICT;
  CREATE INDEX entry_in_order ON entry(parent, id);
  CREATE INDEX entry_by_inode ON entry(inode);

  -- What we know of one node of the gateway. Without an entry: a deletion to send.
  CREATE TABLE node (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entry INTEGER UNIQUE REFERENCES entry(id) ON DELETE SET NULL,
    kind TEXT NOT NULL CHECK (kind IN ('file','folder')),
    node_id TEXT UNIQUE,                -- NULL: unborn
    -- base: what we and the gateway last agreed on
    base_parent TEXT,                   -- the parent's node id
    base_name TEXT,
    base_head TEXT,
    base_hash TEXT,
    base_size INTEGER,
    base_attributes TEXT,
    base_revision INTEGER,
    base_position INTEGER,              -- of our last acknowledged write to it, 0: none
    base_modified TEXT,                 -- ISO 8601
    seen TEXT,                          -- JSON of the node, or {"deleted":true,...}; NULL where it equals base
    seen_at INTEGER,
    changed_at INTEGER NOT NULL DEFAULT 0,  -- last local change
    dirty_since INTEGER,                -- first unsent local change; NULL: clean
    due INTEGER,                        -- when the plan should look again; NULL: not before something changes
    left_parent INTEGER,                -- the place a program moved it away from, and when
    left_name TEXT,
    left_at INTEGER,
    parked TEXT                         -- why the gateway refused it
  ) STRICT;
  CREATE INDEX node_due ON node(due) WHERE due IS NOT NULL;
  CREATE INDEX node_dirty ON node(dirty_since) WHERE dirty_since IS NOT NULL;
  CREATE INDEX node_place ON node(base_parent, base_name) WHERE base_parent IS NOT NULL;
  CREATE INDEX node_left ON node(left_parent, left_name) WHERE left_parent IS NOT NULL;
  CREATE INDEX node_entryless ON node(id) WHERE entry IS NULL;

  -- A request, a row before it is sent, kept until its answer is known.
  CREATE TABLE attempt (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    node INTEGER NOT NULL REFERENCES node(id),
    state TEXT NOT NULL CHECK (state IN ('open','abandoned')),
    key TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,              -- JSON, engine/core/request.ts
    generation INTEGER REFERENCES generation(id),
    tries INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    last_error TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX attempt_open ON attempt(node) WHERE state = 'open';
  CREATE INDEX attempt_by_node ON attempt(node);

  -- The local file behind a lineage.
  CREATE TABLE live (
    lineage INTEGER PRIMARY KEY REFERENCES lineage(id),
    origin_node TEXT,                   -- the version its missing ranges belong to
    origin_version TEXT,
    size INTEGER NOT NULL,              -- when last closed; while open the file's own size counts
    bytes INTEGER NOT NULL,             -- held on disk, for the cache limit
    missing TEXT NOT NULL,              -- JSON of lib/ranges.ts
    used_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX live_by_use ON live(used_at);

  -- A finished cut of a live file: what is uploaded.
  CREATE TABLE generation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    inode INTEGER NOT NULL,
    changes INTEGER NOT NULL,           -- inode.changes when it was cut
    lineage INTEGER,                    -- the live file itself is the cut; NULL: a file of its own
    size INTEGER NOT NULL,
    hash TEXT NOT NULL,
    mtime TEXT NOT NULL,
    synced INTEGER NOT NULL,
    boot TEXT NOT NULL
  ) STRICT;
  CREATE INDEX generation_by_inode ON generation(inode);

  -- Deletions the gateway acknowledged, until listing and journal have passed them.
  CREATE TABLE tombstone (
    node_id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    position INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Nodes of the gateway that cannot be placed yet, because their name is still in use here.
  CREATE TABLE arrival (
    node_id TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    node TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX arrival_place ON arrival(parent, name);

  -- Cookies 1 and 2 are "." and "..".
  INSERT INTO sqlite_sequence(name, seq) VALUES ('entry', 15);
  `,
  `
  -- After a crash the few whose content may have changed are found without a look at all others.
  CREATE INDEX inode_unfinished ON inode(id) WHERE content <> 'clean';
  `,
  `
  -- The position of a deletion, where its answer or the journal told it; NULL: the journal has yet to tell of it.
  ALTER TABLE tombstone RENAME TO tombstone_before;
  CREATE TABLE tombstone (
    node_id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    position INTEGER
  ) STRICT, WITHOUT ROWID;
  INSERT INTO tombstone SELECT node_id, revision, position FROM tombstone_before;
  DROP TABLE tombstone_before;

  -- Nodes to be read again by id. The id never comes back: one asked for again is another row.
  CREATE TABLE reread (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    node_id TEXT NOT NULL UNIQUE,
    due INTEGER NOT NULL,
    missing_since INTEGER               -- since when its id answers 404
  ) STRICT;
  CREATE INDEX reread_due ON reread(due);
  `,
  `
  -- What a node was before a write of ours, for gateways that count no changes: seen again soon, it is lag.
  CREATE TABLE vacated (
    id INTEGER PRIMARY KEY,
    node_id TEXT NOT NULL,
    state TEXT NOT NULL,                -- engine/sync/echo.ts
    at INTEGER NOT NULL,                -- when it was left
    heard INTEGER NOT NULL DEFAULT 0,   -- seen since: to be looked at when lag is over
    UNIQUE (node_id, state)
  ) STRICT;
  CREATE INDEX vacated_by_time ON vacated(at);
  -- Without a journal, folders are listed again in turn.
  CREATE INDEX inode_listed ON inode(id) WHERE listed IS NOT NULL;
  `,
  `
  -- Of dirty content: 1, all of it is safe from power loss; 0, it was, and may have changed since; NULL, never;
  -- -1: power loss came after a change, and it is not sent over a head before somebody says so.
  ALTER TABLE inode ADD COLUMN synced INTEGER;
  -- The machine went down since the file was written: clean bytes count only once they are looked at.
  ALTER TABLE live ADD COLUMN doubted INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- The queue, for any length: what the loop, listings of it and the plan ask for at each turn is found by an index.
  ALTER TABLE node ADD COLUMN bulk INTEGER NOT NULL DEFAULT 0;  -- 1: much to send, it has lanes of its own
  DROP INDEX node_due;
  CREATE INDEX node_due ON node(bulk, due) WHERE due IS NOT NULL;
  CREATE INDEX node_next ON node(due) WHERE due IS NOT NULL;
  CREATE INDEX node_parked ON node(dirty_since, id) WHERE parked IS NOT NULL;
  ALTER TABLE attempt ADD COLUMN bulk INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX attempt_due ON attempt(bulk, next_at) WHERE state = 'open';
  CREATE INDEX attempt_next ON attempt(next_at) WHERE state = 'open';
  CREATE INDEX attempt_given_up ON attempt(next_at) WHERE state = 'abandoned';
  CREATE INDEX attempt_place ON attempt(json_extract(request, '$.parent'), json_extract(request, '$.name')) WHERE state = 'open';
  CREATE INDEX attempt_copy ON attempt(json_extract(request, '$.copyOf')) WHERE state = 'open';
  CREATE INDEX attempt_generation ON attempt(generation) WHERE generation IS NOT NULL;
  -- Inodes that some program has open for writing: after a crash of the daemon these alone must be looked at.
  CREATE TABLE writing (inode INTEGER PRIMARY KEY) STRICT;
  INSERT INTO writing SELECT id FROM inode
    WHERE content <> 'clean' AND (content = 'open' OR hash IS NULL) AND kind = 'file';
  ALTER TABLE reread ADD COLUMN hidden_since INTEGER;  -- since when a folder above it is not visible
  CREATE INDEX generation_by_lineage ON generation(lineage) WHERE lineage IS NOT NULL;
  `,
  `
  -- A program asked for its bytes to be safe, so it keeps order among its files: after power loss, what it
  -- had begun to change stays where it is.
  ALTER TABLE inode ADD COLUMN fsynced INTEGER NOT NULL DEFAULT 0;
  UPDATE inode SET fsynced = 1 WHERE synced IS NOT NULL;
  `,
  `
  -- Files whose rows went, still to be removed: nobody must take them for unknown ones.
  CREATE TABLE gone (
    kind TEXT NOT NULL,                 -- live, generation
    id INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- A start looks through no table. Inodes that lost their last name, and lineages their inode has left, wait here
  -- until no kernel knows them; ids count up, so that all a mount finds at its start are below those of its own.
  CREATE TABLE nameless (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    inode INTEGER NOT NULL UNIQUE REFERENCES inode(id) ON DELETE CASCADE
  ) STRICT;
  INSERT INTO nameless (inode) SELECT id FROM inode
    WHERE id <> 1 AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.inode = inode.id);
  CREATE TABLE superseded (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lineage INTEGER NOT NULL UNIQUE REFERENCES lineage(id) ON DELETE CASCADE
  ) STRICT;
  INSERT INTO superseded (lineage) SELECT lineage.id FROM lineage JOIN inode ON inode.id = lineage.inode
    WHERE inode.lineage <> lineage.id;
  -- What all live files hold on disk.
  CREATE TABLE held (bytes INTEGER NOT NULL) STRICT;
  INSERT INTO held SELECT coalesce(sum(bytes), 0) FROM live;
  CREATE TRIGGER live_came AFTER INSERT ON live WHEN NEW.bytes <> 0 BEGIN
    UPDATE held SET bytes = bytes + NEW.bytes;
  END;
  CREATE TRIGGER live_grew AFTER UPDATE OF bytes ON live WHEN NEW.bytes <> OLD.bytes BEGIN
    UPDATE held SET bytes = bytes + NEW.bytes - OLD.bytes;
  END;
  CREATE TRIGGER live_went AFTER DELETE ON live WHEN OLD.bytes <> 0 BEGIN
    UPDATE held SET bytes = bytes - OLD.bytes;
  END;
  CREATE INDEX generation_copy ON generation(id) WHERE lineage IS NULL;
  CREATE INDEX reread_missing ON reread(missing_since) WHERE missing_since IS NOT NULL;
  CREATE INDEX node_seen ON node(seen_at) WHERE seen_at IS NOT NULL;
  CREATE INDEX node_left_at ON node(left_at) WHERE left_at IS NOT NULL;
  `,
  `
  -- Requests of this mount's programs that were carried out; see done.ts. Emptied by each new mount.
  CREATE TABLE done (
    place INTEGER PRIMARY KEY,
    request INTEGER NOT NULL,           -- the kernel's number of it, without the bit that says "again"
    lineage INTEGER NOT NULL            -- what the answer is about; 0: nothing
  ) STRICT;
  `,
  `
  ALTER TABLE reread ADD COLUMN folder TEXT;  -- node id of the folder it was heard to be in, where it has no row
  `,
  `
  -- What is looked for in the requests of attempts stands beside them: an index over parts of JSON reads all of it at
  -- each change of the row. Most requests are no copies and no exchanges, and are in none of these.
  ALTER TABLE attempt ADD COLUMN parent TEXT;   -- the place it wants
  ALTER TABLE attempt ADD COLUMN name TEXT;
  ALTER TABLE attempt ADD COLUMN copy_of TEXT;  -- the node a version of which it takes its content from
  ALTER TABLE attempt ADD COLUMN partner TEXT;  -- the node it exchanges its own with
  UPDATE attempt SET parent = json_extract(request, '$.parent'), name = json_extract(request, '$.name'),
    copy_of = json_extract(request, '$.copyOf'), partner = json_extract(request, '$.with');
  DROP INDEX attempt_place;
  DROP INDEX attempt_copy;
  CREATE INDEX attempt_place ON attempt(parent, name) WHERE state = 'open' AND parent IS NOT NULL;
  CREATE INDEX attempt_copy ON attempt(copy_of) WHERE state = 'open' AND copy_of IS NOT NULL;
  CREATE INDEX attempt_partner ON attempt(partner) WHERE state = 'open' AND partner IS NOT NULL;
  `,
  `
  -- A file that is made now is in no index that nobody would find it by: the next row that is due is the first of
  -- one of the two lanes, and what no version of the gateway is behind is not evicted.
  DROP INDEX node_next;
  DROP INDEX attempt_next;
  DROP INDEX live_by_use;
  UPDATE live SET used_at = unixepoch() * 1000 WHERE origin_version IS NULL AND used_at > unixepoch() * 1000;
  CREATE INDEX live_by_use ON live(used_at) WHERE origin_version IS NOT NULL;
  `,
  `
  -- Writes of ours that are known to be carried out, and whose position nobody told: minus the time at which that was
  -- known stands for it.
  CREATE INDEX node_untold ON node(base_position) WHERE base_position < 0;
  `,
  `
  -- Folders to be listed again though they are known. The id never comes back: one asked for again is another row.
  CREATE TABLE relist (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folder INTEGER NOT NULL UNIQUE REFERENCES inode(id) ON DELETE CASCADE,
    due INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX relist_due ON relist(due);
  INSERT INTO relist (folder, due) SELECT id, 0 FROM (
      SELECT id FROM inode WHERE listed IS NOT NULL UNION SELECT DISTINCT parent FROM entry)
    WHERE EXISTS (SELECT 1 FROM setting WHERE key = 'relist' AND value <> '');
  DELETE FROM setting WHERE key = 'relist';
  `,
  `
  -- Births that were given up are looked for by the place they wanted.
  CREATE INDEX attempt_place_given_up ON attempt(parent, name) WHERE state = 'abandoned' AND parent IS NOT NULL;
  `,
  `
  ALTER TABLE inode ADD COLUMN saves TEXT;      -- JSON: of a linked file, those that led to its content
  `,
  `
  -- Files with several names of which some may be behind; see turns.ts.
  CREATE TABLE turn (
    inode INTEGER PRIMARY KEY REFERENCES inode(id) ON DELETE CASCADE,
    ends_at INTEGER NOT NULL,
    reached INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX turn_ends ON turn(ends_at);
  `,
  `
  -- What the origin version hashes to, also once the file is no longer all that version's; NULL: not known.
  ALTER TABLE live ADD COLUMN origin_hash TEXT;
  -- How long it is, while there is something unproven.
  ALTER TABLE live ADD COLUMN origin_size INTEGER NOT NULL DEFAULT 0;
  -- JSON ranges of changed content: the origin's, here or missing, and not known to be right.
  ALTER TABLE live ADD COLUMN unproven TEXT NOT NULL DEFAULT '[]';
  UPDATE live SET origin_hash = node.base_hash, origin_size = coalesce(node.base_size, 0) FROM node
    WHERE node.node_id = live.origin_node AND node.base_head = live.origin_version AND live.missing <> '[]';
  UPDATE live SET unproven = missing WHERE origin_hash IS NOT NULL AND origin_size > 0
    AND EXISTS (SELECT 1 FROM inode WHERE inode.lineage = live.lineage AND inode.content = 'dirty');
  `,
  `
  -- How many folders are shown in a folder.
  ALTER TABLE inode ADD COLUMN folders INTEGER NOT NULL DEFAULT 0;
  UPDATE inode SET folders = counted.folders FROM (
      SELECT entry.parent, count(*) AS folders FROM entry JOIN inode ON inode.id = entry.inode
      WHERE inode.kind = 'folder' AND entry.name <> '' AND instr(entry.name, '/') = 0 GROUP BY entry.parent) AS counted
    WHERE counted.parent = inode.id;
  `,
  `
  -- Files that programs have open for writing while their names went on elsewhere; see overtaken.ts.
  CREATE TABLE overtaken (
    inode INTEGER PRIMARY KEY REFERENCES inode(id) ON DELETE CASCADE,
    way TEXT NOT NULL,                  -- JSON: where it was, from the root down
    is_removed INTEGER NOT NULL,        -- 1: the name went; 0: it is another file's
    hash TEXT,                          -- of what it was then; NULL: not known
    dirty_since INTEGER                 -- since when something else was written; NULL: nothing was
  ) STRICT;
  `,
  `
  -- Places of the history folder that the kernel has been told of, and lists of the past; see past-nodes.ts.
  CREATE TABLE past_node (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL UNIQUE          -- JSON
  ) STRICT;
  CREATE TABLE past_list (
    list TEXT PRIMARY KEY,              -- which: a folder and a moment, or a file
    items TEXT NOT NULL,                -- JSON
    read_at INTEGER NOT NULL            -- row time
  ) STRICT;
  CREATE INDEX past_list_age ON past_list(read_at);
  `,
  `
  -- Folders whose names are still to be read.
  CREATE INDEX inode_unlisted ON inode(id) WHERE kind = 'folder' AND listed IS NULL;
  `,
  `
  -- Of a folder with names in it: when a program last used them, in row time and coarsely; 0: never. NULL: no name.
  ALTER TABLE inode ADD COLUMN used INTEGER;
  UPDATE inode SET used = 0 WHERE id IN (SELECT parent FROM entry);
  CREATE INDEX inode_by_use ON inode(used, id DESC) WHERE used IS NOT NULL;
  `,
];

BEGIN TRANSACTION;
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
  , branch TEXT, branch_head TEXT);
INSERT INTO "change" VALUES(1,1795300739181,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','e24fe05b-caf1-4270-8824-000f44755207','created',0,1,1,NULL,'',NULL,'{}',0,NULL,NULL,NULL);
INSERT INTO "change" VALUES(2,1795300741127,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','390dd894-33a8-464a-b00b-d8ab3d3d6518','created',0,2,1,'e24fe05b-caf1-4270-8824-000f44755207','folder',NULL,'{}',0,'key-1',NULL,NULL);
INSERT INTO "change" VALUES(3,1795300741127,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','0a245032-0d87-4e03-a5be-9fe02a53c3b5','created',0,3,1,'390dd894-33a8-464a-b00b-d8ab3d3d6518','small.txt','8d32155c-1ad8-48f9-aaf7-7b040e92ea68','{"mode":384,"mtime":"1700000000.000000001"}',0,'key-1','main','8d32155c-1ad8-48f9-aaf7-7b040e92ea68');
INSERT INTO "change" VALUES(4,1795300741208,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','175a5a6b-cb04-4f09-be98-84c76959ec2f','created',0,4,1,'390dd894-33a8-464a-b00b-d8ab3d3d6518','large.bin','3e5bbf18-13f7-4f9b-a279-d3ae88b269e1','{}',0,'key-2','main','3e5bbf18-13f7-4f9b-a279-d3ae88b269e1');
INSERT INTO "change" VALUES(5,1795300741255,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','0a245032-0d87-4e03-a5be-9fe02a53c3b5','updated',0,5,2,'390dd894-33a8-464a-b00b-d8ab3d3d6518','small.txt','6c50fbb2-7120-4885-9e37-3381a85b069e','{"mode":384}',0,'key-3','main','6c50fbb2-7120-4885-9e37-3381a85b069e');
INSERT INTO "change" VALUES(6,1795300741304,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','0a245032-0d87-4e03-a5be-9fe02a53c3b5','updated',0,6,3,'390dd894-33a8-464a-b00b-d8ab3d3d6518','small.txt','6c50fbb2-7120-4885-9e37-3381a85b069e','{"mode":384}',0,'key-4','draft','7c49e947-349d-4426-b3e0-4293ab9cce49');
INSERT INTO "change" VALUES(7,1795300741340,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','390dd894-33a8-464a-b00b-d8ab3d3d6518','moved',0,7,2,'e24fe05b-caf1-4270-8824-000f44755207','renamed',NULL,'{}',0,'key-5',NULL,NULL);
INSERT INTO "change" VALUES(8,1795300741409,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','6456eba9-63e8-46e7-b478-bd4dab8c214f','created',0,8,1,'e24fe05b-caf1-4270-8824-000f44755207','gone.txt','595d60c1-7113-4ca7-b84f-d5e74c81d02c','{}',0,'key-6','main','595d60c1-7113-4ca7-b84f-d5e74c81d02c');
INSERT INTO "change" VALUES(9,1795300741437,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','6456eba9-63e8-46e7-b478-bd4dab8c214f','deleted',0,9,2,'e24fe05b-caf1-4270-8824-000f44755207','gone.txt','595d60c1-7113-4ca7-b84f-d5e74c81d02c','{}',1,'key-7',NULL,NULL);
INSERT INTO "change" VALUES(10,1795300741502,'712e9b8c-cc7f-4af0-8231-698af2b4af5f','175a5a6b-cb04-4f09-be98-84c76959ec2f','looked',1,10,1,'390dd894-33a8-464a-b00b-d8ab3d3d6518','large.bin','3e5bbf18-13f7-4f9b-a279-d3ae88b269e1','{}',0,'key-8',NULL,NULL);
CREATE TABLE content (              -- small contents are kept here, others in the blob store
    id INTEGER PRIMARY KEY,
    blob TEXT UNIQUE,
    bytes BLOB
  );
INSERT INTO "content" VALUES(1,NULL,X'61616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161');
INSERT INTO "content" VALUES(2,'cd253188-2ba7-4a2b-9ade-38b9279d7016',NULL);
INSERT INTO "content" VALUES(3,NULL,X'6363636363636363636363636363636363636363636363636363636363636363636363636363636363636363636363636363');
INSERT INTO "content" VALUES(4,NULL,X'646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464646464');
INSERT INTO "content" VALUES(5,NULL,X'65656565656565656565');
CREATE TABLE idempotency (
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,            -- what the key was used for
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (workspace, key)
  ) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-1','tei64id9WKxoRgsmG9smQ1vfJpQ_RNOlUGvW7zHR-0g',201,'{"id":"0a245032-0d87-4e03-a5be-9fe02a53c3b5","kind":"file","path":"/folder/small.txt","name":"small.txt","parentId":"390dd894-33a8-464a-b00b-d8ab3d3d6518","mimeType":"text/plain","size":100,"head":"8d32155c-1ad8-48f9-aaf7-7b040e92ea68","contentHash":"2816597888e4a0d3a36b82b83316ab32680eb8f00f8cd3b904d681246d285a0e","lastKey":"key-1","revision":1,"createdAt":"2026-11-21T22:39:01.127Z","modifiedAt":"2026-11-21T22:39:01.127Z","attributes":{"mode":384,"mtime":"1700000000.000000001"},"position":3}',1795300741129);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-2','IE6Yy4HddnHsDeo7plvFoFAejGWImbq3Gm73rx3Z4nE',201,'{"id":"175a5a6b-cb04-4f09-be98-84c76959ec2f","kind":"file","path":"/folder/large.bin","name":"large.bin","parentId":"390dd894-33a8-464a-b00b-d8ab3d3d6518","mimeType":"text/plain","size":40000,"head":"3e5bbf18-13f7-4f9b-a279-d3ae88b269e1","contentHash":"8d1724bdb7c95026269c36827c31b89f5d63713c14d5474a78fefd7782b28c5c","lastKey":"key-2","revision":1,"createdAt":"2026-11-21T22:39:01.208Z","modifiedAt":"2026-11-21T22:39:01.208Z","attributes":{},"position":4}',1795300741208);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-3','z04fbeSDNNbuBdCazdwXLjQ-FBY6m7cTG4AE19bjvtU',200,'{"id":"0a245032-0d87-4e03-a5be-9fe02a53c3b5","kind":"file","path":"/folder/small.txt","name":"small.txt","parentId":"390dd894-33a8-464a-b00b-d8ab3d3d6518","mimeType":"text/plain","size":50,"head":"6c50fbb2-7120-4885-9e37-3381a85b069e","contentHash":"5de6bf7f73e34ca05016906d50a4f3ced729bffd9fd1beefb0e0c6a0b5c136e4","lastKey":"key-3","revision":2,"createdAt":"2026-11-21T22:39:01.127Z","modifiedAt":"2026-11-21T22:39:01.255Z","attributes":{"mode":384},"position":5}',1795300741256);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-4','jw8vcIt3CuVHIrHlXbLqKGtrqtFw_q-vGQF9_XCbDN0',200,'{"id":"0a245032-0d87-4e03-a5be-9fe02a53c3b5","kind":"file","path":"/folder/small.txt","name":"small.txt","parentId":"390dd894-33a8-464a-b00b-d8ab3d3d6518","mimeType":"text/plain","size":60,"head":"7c49e947-349d-4426-b3e0-4293ab9cce49","contentHash":"29f662e3fded284e2695546ef01ede7d4d01f9d28b706d41b65b99ad600154d3","lastKey":"key-4","revision":3,"createdAt":"2026-11-21T22:39:01.127Z","modifiedAt":"2026-11-21T22:39:01.304Z","attributes":{"mode":384},"position":6}',1795300741304);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-5','-oZwvBDAlvmPLUYOqJef_wjQv_0c2ytsUowfDFCxPgM',200,'{"id":"390dd894-33a8-464a-b00b-d8ab3d3d6518","kind":"folder","path":"/renamed","name":"renamed","parentId":"e24fe05b-caf1-4270-8824-000f44755207","mimeType":null,"size":0,"head":null,"contentHash":null,"lastKey":"key-5","revision":2,"createdAt":"2026-11-21T22:39:01.127Z","modifiedAt":"2026-11-21T22:39:01.127Z","attributes":{},"position":7}',1795300741341);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-6','LiM0FsLdh_lg2fh6Uw3oIDnRXhQYo0a0-j6TF7Kvsbo',201,'{"id":"6456eba9-63e8-46e7-b478-bd4dab8c214f","kind":"file","path":"/gone.txt","name":"gone.txt","parentId":"e24fe05b-caf1-4270-8824-000f44755207","mimeType":"text/plain","size":10,"head":"595d60c1-7113-4ca7-b84f-d5e74c81d02c","contentHash":"0a9c93b755d7d85b3f4486c6eac2cf00e25ff5f752262be5bda2085e1840a705","lastKey":"key-6","revision":1,"createdAt":"2026-11-21T22:39:01.409Z","modifiedAt":"2026-11-21T22:39:01.409Z","attributes":{},"position":8}',1795300741409);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-7','VuqQeZUVAvM4DGMdtQfJktPv8c-wiuwJqSlNvVBGisU',200,'{"id":"6456eba9-63e8-46e7-b478-bd4dab8c214f","kind":"file","path":"/gone.txt","name":"gone.txt","parentId":"e24fe05b-caf1-4270-8824-000f44755207","mimeType":"text/plain","size":10,"head":"595d60c1-7113-4ca7-b84f-d5e74c81d02c","contentHash":"0a9c93b755d7d85b3f4486c6eac2cf00e25ff5f752262be5bda2085e1840a705","lastKey":"key-7","revision":2,"createdAt":"2026-11-21T22:39:01.409Z","modifiedAt":"2026-11-21T22:39:01.409Z","attributes":{},"position":9}',1795300741437);
INSERT INTO "idempotency" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','key-8','nUW-ih3ygKuHjhcpcBX8CHyFLWDTb9B36gwSNZYou7o',201,'{"position":10,"time":"2026-11-21T22:39:01.502Z","kind":"looked","nodeId":"175a5a6b-cb04-4f09-be98-84c76959ec2f","revision":1,"parentId":"390dd894-33a8-464a-b00b-d8ab3d3d6518","name":"large.bin","head":"3e5bbf18-13f7-4f9b-a279-d3ae88b269e1","contentHash":"8d1724bdb7c95026269c36827c31b89f5d63713c14d5474a78fefd7782b28c5c","key":"key-8","branch":null,"branchHead":null}',1795300741503);
CREATE TABLE mark (                 -- the places from its key up to that of the next mark
    folder TEXT NOT NULL,
    field TEXT NOT NULL,              -- name, id, createdAt; the last two of big folders only
    a NOT NULL,                       -- the key: a name, an id, or a time
    b TEXT NOT NULL,                  -- and an id; empty for names and ids
    count INTEGER NOT NULL,
    PRIMARY KEY (folder, field, a, b)
  ) WITHOUT ROWID;
INSERT INTO "mark" VALUES('390dd894-33a8-464a-b00b-d8ab3d3d6518','name','','',2);
INSERT INTO "mark" VALUES('e24fe05b-caf1-4270-8824-000f44755207','name','','',1);
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
  , revision INTEGER NOT NULL DEFAULT 0, head TEXT, attributes TEXT NOT NULL DEFAULT '{}', key TEXT, mime_type TEXT, size INTEGER, hash TEXT, head_time INTEGER);
INSERT INTO "node" VALUES('e24fe05b-caf1-4270-8824-000f44755207','712e9b8c-cc7f-4af0-8231-698af2b4af5f','folder',NULL,'',0,1,1,0,1795300739181,1,NULL,'{}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "node" VALUES('390dd894-33a8-464a-b00b-d8ab3d3d6518','712e9b8c-cc7f-4af0-8231-698af2b4af5f','folder','e24fe05b-caf1-4270-8824-000f44755207','renamed',0,1,7,0,1795300741127,2,NULL,'{}','key-5',NULL,NULL,NULL,NULL);
INSERT INTO "node" VALUES('0a245032-0d87-4e03-a5be-9fe02a53c3b5','712e9b8c-cc7f-4af0-8231-698af2b4af5f','file','390dd894-33a8-464a-b00b-d8ab3d3d6518','small.txt',0,1,6,3,1795300741127,3,'6c50fbb2-7120-4885-9e37-3381a85b069e','{"mode":384}','key-4','text/plain',50,'5de6bf7f73e34ca05016906d50a4f3ced729bffd9fd1beefb0e0c6a0b5c136e4',1795300741255);
INSERT INTO "node" VALUES('175a5a6b-cb04-4f09-be98-84c76959ec2f','712e9b8c-cc7f-4af0-8231-698af2b4af5f','file','390dd894-33a8-464a-b00b-d8ab3d3d6518','large.bin',0,1,4,1,1795300741208,1,'3e5bbf18-13f7-4f9b-a279-d3ae88b269e1','{}','key-2','text/plain',40000,'8d1724bdb7c95026269c36827c31b89f5d63713c14d5474a78fefd7782b28c5c',1795300741208);
INSERT INTO "node" VALUES('6456eba9-63e8-46e7-b478-bd4dab8c214f','712e9b8c-cc7f-4af0-8231-698af2b4af5f','file','e24fe05b-caf1-4270-8824-000f44755207','gone.txt',1,1,9,1,1795300741409,2,'595d60c1-7113-4ca7-b84f-d5e74c81d02c','{}','key-7','text/plain',10,'0a9c93b755d7d85b3f4486c6eac2cf00e25ff5f752262be5bda2085e1840a705',1795300741409);
CREATE TABLE past_place (           -- held for since <= position < until
    parent TEXT NOT NULL,
    until INTEGER NOT NULL,
    name TEXT NOT NULL,
    node TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (parent, until, name)
  ) WITHOUT ROWID;
INSERT INTO "past_place" VALUES('e24fe05b-caf1-4270-8824-000f44755207',7,'folder','390dd894-33a8-464a-b00b-d8ab3d3d6518',2);
INSERT INTO "past_place" VALUES('e24fe05b-caf1-4270-8824-000f44755207',9,'gone.txt','6456eba9-63e8-46e7-b478-bd4dab8c214f',8);
CREATE TABLE place (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    node TEXT NOT NULL,
    since INTEGER NOT NULL, created_at INTEGER NOT NULL DEFAULT 0, big INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (parent, name)
  ) WITHOUT ROWID;
INSERT INTO "place" VALUES('390dd894-33a8-464a-b00b-d8ab3d3d6518','large.bin','175a5a6b-cb04-4f09-be98-84c76959ec2f',4,1795300741208,0);
INSERT INTO "place" VALUES('390dd894-33a8-464a-b00b-d8ab3d3d6518','small.txt','0a245032-0d87-4e03-a5be-9fe02a53c3b5',3,1795300741127,0);
INSERT INTO "place" VALUES('e24fe05b-caf1-4270-8824-000f44755207','renamed','390dd894-33a8-464a-b00b-d8ab3d3d6518',7,1795300741127,0);
CREATE TABLE shown (                -- how far the late readers have come
    reader TEXT PRIMARY KEY,
    position INTEGER NOT NULL
  ) WITHOUT ROWID;
INSERT INTO "shown" VALUES('journal',10);
INSERT INTO "shown" VALUES('path',10);
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
  , mtime TEXT);
INSERT INTO "version" VALUES('8d32155c-1ad8-48f9-aaf7-7b040e92ea68','0a245032-0d87-4e03-a5be-9fe02a53c3b5',1,'main',3,1,100,'2816597888e4a0d3a36b82b83316ab32680eb8f00f8cd3b904d681246d285a0e','text/plain',1795300741127,NULL);
INSERT INTO "version" VALUES('3e5bbf18-13f7-4f9b-a279-d3ae88b269e1','175a5a6b-cb04-4f09-be98-84c76959ec2f',1,'main',4,2,40000,'8d1724bdb7c95026269c36827c31b89f5d63713c14d5474a78fefd7782b28c5c','text/plain',1795300741208,NULL);
INSERT INTO "version" VALUES('6c50fbb2-7120-4885-9e37-3381a85b069e','0a245032-0d87-4e03-a5be-9fe02a53c3b5',2,'main',5,3,50,'5de6bf7f73e34ca05016906d50a4f3ced729bffd9fd1beefb0e0c6a0b5c136e4','text/plain',1795300741255,NULL);
INSERT INTO "version" VALUES('7c49e947-349d-4426-b3e0-4293ab9cce49','0a245032-0d87-4e03-a5be-9fe02a53c3b5',3,'draft',6,4,60,'29f662e3fded284e2695546ef01ede7d4d01f9d28b706d41b65b99ad600154d3','text/plain',1795300741304,NULL);
INSERT INTO "version" VALUES('595d60c1-7113-4ca7-b84f-d5e74c81d02c','6456eba9-63e8-46e7-b478-bd4dab8c214f',1,'main',8,5,10,'0a9c93b755d7d85b3f4486c6eac2cf00e25ff5f752262be5bda2085e1840a705','text/plain',1795300741409,NULL);
CREATE TABLE workspace (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    entries INTEGER NOT NULL,         -- journal entries so far
    used INTEGER NOT NULL             -- bytes of all versions
  );
INSERT INTO "workspace" VALUES('712e9b8c-cc7f-4af0-8231-698af2b4af5f','workspace','e24fe05b-caf1-4270-8824-000f44755207',1795300739181,10,40220);
CREATE UNIQUE INDEX node_name ON node(parent, name) WHERE deleted = 0;
CREATE INDEX change_node ON change(node, position) WHERE activity = 0;
CREATE INDEX change_entry ON change(workspace) WHERE entry IS NOT NULL;
CREATE UNIQUE INDEX version_number ON version(node, number);
CREATE INDEX idempotency_time ON idempotency(time);
CREATE INDEX place_id ON place(parent, node, since) WHERE big = 1;
CREATE INDEX place_created ON place(parent, created_at, node, since) WHERE big = 1;
CREATE INDEX place_since ON place(parent, since) WHERE big = 1;
CREATE INDEX version_branch ON version(node, branch, number) WHERE branch <> 'main';
COMMIT;
PRAGMA user_version = 2;

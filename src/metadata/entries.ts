/** Entries: the names in folders. */
import type { ChangedRows } from "./changed.ts";
import { type Connection, prepare, remember } from "./database.ts";
import { type After, addedId, type EntryId, type InodeId, type KernelNodeId } from "./ids.ts";
import type { Inode } from "./inodes.ts";
import type { NodeRow } from "./nodes.ts";

export interface Entry {
  readonly id: EntryId;
  /** Inode of the folder. */
  readonly parent: InodeId;
  readonly name: string;
  /** The gateway's name where it differs from the shown one, else null. */
  readonly gatewayName: string | null;
  readonly inode: InodeId;
}

/** A name in a folder. The folder is an inode id, not a kernel node id. */
export interface NameInFolder {
  readonly folder: InodeId;
  readonly name: string;
}

/**
 * A reader's way through a folder (POSIX: a directory stream). It ends with the entry that was the newest when it
 * began, so it ends even while other programs make files. No name comes twice, even if another entry takes a name that
 * was passed.
 */
export interface DirectoryStream {
  readonly folder: InodeId;
  readonly until: After<EntryId>;
  /** The cookie behind which it last went on. */
  reached: number;
  /** Names that were passed and then left by their entries, each with the entry's id. */
  readonly left: Map<string, EntryId>;
  /**
   * Names that entries left since it last went on, behind that cookie. The next cookie shows whether they were passed.
   */
  readonly leftSince: Map<string, EntryId>;
}

/** The part of the node rows that entries need. */
interface NodesOfEntries {
  ofEntry(entry: EntryId): NodeRow | undefined;
  /** Tells the remembered answers that this entry is new and has no node. */
  noneOfEntry(entry: EntryId): void;
  /** Tells the remembered answers that the row's entry is gone. In the table, the row already has no entry. */
  entryGone(row: NodeRow): void;
}

/** The part of the inodes that entries need. */
interface InodesOfEntries {
  get(id: InodeId): Inode | undefined;
  update(id: InodeId, values: Partial<Pick<Inode, "folders" | "used">>): unknown;
}

const COLUMNS = "id, parent, name, gateway_name AS gatewayName, inode";

/** False for the temporary name of an entry that makes way for another: it has a "/", which no program can use. */
const isName = (name: string) => !name.includes("/");

/** Names of an inode with more than this are not remembered across changes, because each change copies them all. */
const FEW = 16;

const keyOf = (parent: InodeId, name: string) => `${parent}/${name}`;

export function createEntries(
  database: Connection,
  changed: ChangedRows,
  nodes: NodesOfEntries,
  inodes: InodesOfEntries,
) {
  const byId = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE id = ?`);
  const byName = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE parent = ? AND name = ?`);
  const after = prepare<Entry>(
    database,
    `SELECT ${COLUMNS} FROM entry WHERE parent = ? AND id > ? ORDER BY id LIMIT +?`,
  );
  const between = prepare<Entry>(
    database,
    `SELECT ${COLUMNS} FROM entry WHERE parent = ? AND id > ? AND id <= ? ORDER BY id LIMIT +?`,
  );
  const names = prepare<{ id: EntryId; parent: KernelNodeId; name: string }>(
    database,
    `SELECT entry.id, inode.lineage AS parent, entry.name FROM entry JOIN inode ON inode.id = entry.parent
     WHERE entry.id > ? AND entry.name <> '' ORDER BY entry.id LIMIT +?`,
  );
  const newest = prepare<{ id: EntryId | null }>(database, "SELECT max(id) AS id FROM entry");
  const ofInode = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE inode = ? ORDER BY id`);
  const firstOfInode = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE inode = ? ORDER BY id LIMIT 1`);
  const first = prepare<{ one: number }>(database, "SELECT 1 AS one FROM entry WHERE parent = ? LIMIT 1");
  const insert = prepare(database, "INSERT INTO entry (parent, name, gateway_name, inode) VALUES (?, ?, ?, ?)", []);
  const place = prepare(database, "UPDATE entry SET parent = ?, name = ?, gateway_name = ? WHERE id = ?", []);
  const retarget = prepare(database, "UPDATE entry SET inode = ? WHERE id = ?", []);
  const remove = prepare(database, "DELETE FROM entry WHERE id = ?", []);
  const orphans = prepare(
    database,
    "INSERT OR REPLACE INTO nameless (inode) SELECT @inode WHERE NOT EXISTS (SELECT 1 FROM entry WHERE inode = @inode)",
  );
  const links = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM entry WHERE inode = ?");
  const all = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM entry");

  const get = remember(database, ["entry"], (id: EntryId) => byId.get(id));
  const find = remember(database, ["entry"], (key: string): Entry | undefined => {
    const slash = key.indexOf("/");
    const entry = byName.get(Number(key.slice(0, slash)), key.slice(slash + 1));
    if (entry !== undefined) get.tell(entry.id, entry);
    return entry;
  });
  const namesOf = remember(database, ["entry"], (inode: InodeId) => ofInode.all(inode));
  const countAll = remember(database, ["entry"], (_: 0): number => all.get()?.count ?? 0);
  const linksOf = remember(database, ["entry"], (inode: InodeId): number => links.get(inode)?.count ?? 0);
  const streams = new Set<DirectoryStream>();

  /** The folder that counts the entry among its shown folders. */
  function countedIn(entry: Entry | undefined): InodeId | undefined {
    const isFolder = entry !== undefined && isName(entry.name) && inodes.get(entry.inode)?.kind === "folder";
    return isFolder ? entry.parent : undefined;
  }

  function count(parent: InodeId | undefined, change: 1 | -1): void {
    const folder = parent === undefined ? undefined : inodes.get(parent);
    if (folder !== undefined) inodes.update(folder.id, { folders: folder.folders + change });
  }

  /** Tells the remembered answers that the entry with this id was `current` and is now `next`. */
  function tell(id: EntryId, current: Entry | undefined, next: Entry | undefined): void {
    get.tell(id, next);
    const [left, entered] = [countedIn(current), countedIn(next)];
    if (left !== entered) {
      count(left, -1);
      count(entered, 1);
    }
    if (current !== undefined) find.tell(keyOf(current.parent, current.name), undefined);
    if (next !== undefined) find.tell(keyOf(next.parent, next.name), next);
    const isOfAnother = current?.inode !== next?.inode;
    if (current !== undefined) tellNames(current.inode, isOfAnother ? -1 : 0);
    if (next !== undefined && isOfAnother) tellNames(next.inode, 1);
  }

  /** Tells the remembered answers that the inode's names changed, and their number by `more`. */
  function tellNames(inode: InodeId, more: -1 | 0 | 1): void {
    const known = namesOf.known(inode)?.length ?? linksOf.known(inode);
    namesOf.drop(inode);
    if (known === undefined) return;
    linksOf.tell(inode, known + more);
    if (known + more === 0) namesOf.tell(inode, []);
  }

  /** Tells the remembered answer that there are more or fewer entries. */
  function tellCount(more: 1 | -1): void {
    const known = countAll.known(0);
    if (known !== undefined) countAll.tell(0, known + more);
  }

  /** A folder with a name in it has a place in the order of use. */
  function holdsName(folder: InodeId): void {
    if (inodes.get(folder)?.used === null) inodes.update(folder, { used: "never" });
  }

  /** Tells the remembered answers of a new entry. Its id is above all others, so it is the last name of its inode. */
  function tellNew(entry: Entry): void {
    const names = namesOf.known(entry.inode);
    tell(entry.id, undefined, entry);
    tellCount(1);
    if (names !== undefined && names.length < FEW) namesOf.tell(entry.inode, [...names, entry]);
    nodes.noneOfEntry(entry.id);
  }

  /** Needs no undo at a rollback: the entry then keeps the name, and a name that was passed is not listed again. */
  function leavesName(id: EntryId): void {
    if (streams.size === 0) return;
    const entry = get(id);
    if (entry === undefined) return;
    for (const { folder, reached, left, leftSince } of streams) {
      if (folder === entry.parent) noteLeft(id <= reached ? left : leftSince, entry.name, id);
    }
  }

  function noteLeft(names: Map<string, EntryId>, name: string, id: EntryId): void {
    const other = names.get(name) ?? id;
    names.set(name, other < id ? other : id);
  }

  /**
   * The listing goes on behind `cookie`. Only the names of entries up to the cookie were passed. An entry behind it
   * will be listed under the name that it has by then.
   */
  function goOn(stream: DirectoryStream, cookie: number): void {
    const { left, leftSince } = stream;
    if (cookie < stream.reached) for (const [name, id] of left) if (id > cookie) left.delete(name);
    for (const [name, id] of leftSince) if (id <= cookie) noteLeft(left, name, id);
    leftSince.clear();
    stream.reached = cookie;
  }

  return {
    get,
    find: (parent: InodeId, name: string): Entry | undefined => find(keyOf(parent, name)),
    /** Tells the remembered answers that this inode is new and has no name. */
    noneOfInode(inode: InodeId): void {
      namesOf.tell(inode, []);
    },
    /** Entries of a folder with an id above `cookie`, in order of id, temporary names included. */
    list: (parent: InodeId, cookie: number, limit: number): Entry[] => after.all(parent, cookie, limit),
    openStream(folder: InodeId): DirectoryStream {
      const until = newest.get()?.id ?? 0;
      const stream: DirectoryStream = { folder, until, reached: 0, left: new Map(), leftSince: new Map() };
      streams.add(stream);
      return stream;
    },
    /** The next entries of the stream after `cookie`. They are fewer than `limit` only at its end. */
    readStream(stream: DirectoryStream, cookie: number, limit: number): Entry[] {
      goOn(stream, cookie);
      const listed: Entry[] = [];
      for (let from = cookie; listed.length < limit; ) {
        const more = between.all(stream.folder, from, stream.until, limit - listed.length);
        const last = more.at(-1);
        if (last === undefined) break;
        from = last.id;
        listed.push(...more.filter(({ name }) => isName(name) && !stream.left.has(name)));
      }
      return listed;
    },
    /** All names with the kernel node ids of their folders, in order of the entries' ids. */
    namesAfter: (id: After<EntryId>, limit: number): { id: EntryId; parent: KernelNodeId; name: string }[] =>
      names.all(id, limit),
    closeStream(stream: DirectoryStream): void {
      streams.delete(stream);
    },
    ofInode: (inode: InodeId): readonly Entry[] => namesOf(inode),
    /** The oldest name. Cheap even if the inode has thousands. */
    firstOfInode: (inode: InodeId): Entry | undefined => namesOf.known(inode)?.[0] ?? firstOfInode.get(inode),
    /** The number of all names. The first call, and each after a rollback, reads a whole index. */
    count: (): number => countAll(0),
    links: (inode: InodeId): number => namesOf.known(inode)?.length ?? linksOf(inode),
    isEmpty: (parent: InodeId): boolean => first.get(parent) === undefined,
    create(parent: InodeId, name: string, inode: InodeId, gatewayName: string | null = null): Entry {
      const id = addedId<EntryId>(insert.run(parent, name, gatewayName, inode));
      const created = { id, parent, name, gatewayName, inode };
      holdsName(parent);
      tellNew(created);
      changed.name(parent, name, null);
      changed.inode(inode);
      return created;
    },
    move(id: EntryId, parent: InodeId, name: string, gatewayName: string | null = null): void {
      leavesName(id);
      const former = get(id);
      place.run(parent, name, gatewayName, id);
      if (former === undefined) return;
      tell(id, former, { ...former, parent, name, gatewayName });
      holdsName(parent);
      if (former.parent === parent && former.name === name) return;
      changed.name(former.parent, former.name, former.inode);
      changed.name(parent, name, null);
    },
    setInode(id: EntryId, inode: InodeId): void {
      const former = get(id);
      retarget.run(inode, id);
      if (former === undefined) return;
      tell(id, former, { ...former, inode });
      orphans.run({ inode: former.inode });
      changed.name(former.parent, former.name, former.inode);
      changed.inode(former.inode);
      changed.inode(inode);
    },
    remove(id: EntryId): void {
      leavesName(id);
      const former = get(id);
      const node = nodes.ofEntry(id);
      remove.run(id);
      if (node !== undefined) nodes.entryGone(node);
      if (former === undefined) return;
      tell(id, former, undefined);
      tellCount(-1);
      orphans.run({ inode: former.inode });
      changed.name(former.parent, former.name, former.inode);
      changed.inode(former.inode);
    },
  };
}

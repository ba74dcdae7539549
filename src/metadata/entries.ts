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
  /** Set where the gateway's name differs from the shown one. */
  readonly gatewayName: string | null;
  readonly inode: InodeId;
}

/**
 * One pass of a reader through a folder. It ends with the newest entry that was there when it began, so it ends even
 * while others make files. No name is in it twice, even if another entry takes a name that was passed.
 */
export interface Pass {
  readonly folder: InodeId;
  readonly until: After<EntryId>;
  /** The cookie from which it last went on. */
  reached: number;
  /** Names that their entries left after they were passed, with the entry's id. */
  readonly left: Map<string, EntryId>;
  /** Names that entries left since it last went on. Its next position decides whether they were passed. */
  readonly leftSince: Map<string, EntryId>;
}

/** The rows of nodes that point at entries. */
interface NodesOfEntries {
  ofEntry(entry: EntryId): NodeRow | undefined;
  /** Tells the remembered answers that this entry is new and has no node. */
  noneOfEntry(entry: EntryId): void;
  /** Tells that the row's entry is gone: in the table the row points at no entry any more. */
  entryGone(row: NodeRow): void;
}

/** The inodes behind names. */
interface InodesOfEntries {
  get(id: InodeId): Inode | undefined;
  update(id: InodeId, values: Pick<Inode, "folders">): unknown;
}

const COLUMNS = "id, parent, name, gateway_name AS gatewayName, inode";

/** An entry that makes way for a moment has a name that no program can use: one with a "/". */
const isName = (name: string) => !name.includes("/");

/** The largest number of names of an inode that are remembered across changes. Each change copies them all. */
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
  const linksOf = remember(database, ["entry"], (inode: InodeId): number => links.get(inode)?.count ?? 0);
  const passes = new Set<Pass>();

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

  /** Tells the remembered answers that the inode has `more` names more, or other names. */
  function tellNames(inode: InodeId, more: -1 | 0 | 1): void {
    const known = namesOf.known(inode)?.length ?? linksOf.known(inode);
    namesOf.drop(inode);
    if (known === undefined) return;
    linksOf.tell(inode, known + more);
    if (known + more === 0) namesOf.tell(inode, []);
  }

  /** Tells the remembered answers of the newest of all entries. */
  function tellNew(entry: Entry): void {
    const names = namesOf.known(entry.inode);
    tell(entry.id, undefined, entry);
    if (names !== undefined && names.length < FEW) namesOf.tell(entry.inode, [...names, entry]);
    nodes.noneOfEntry(entry.id);
  }

  /** This is also right after a rollback: the entry then keeps its name, which was passed. */
  function leavesName(id: EntryId): void {
    if (passes.size === 0) return;
    const entry = get(id);
    if (entry === undefined) return;
    for (const { folder, reached, left, leftSince } of passes) {
      if (folder === entry.parent) noteLeft(id <= reached ? left : leftSince, entry.name, id);
    }
  }

  function noteLeft(names: Map<string, EntryId>, name: string, id: EntryId): void {
    const other = names.get(name) ?? id;
    names.set(name, other < id ? other : id);
  }

  /**
   * The listing goes on behind the cookie. Only names before the cookie were passed on. An entry behind it is listed
   * under the name that it has by then. Each name is looked at once.
   */
  function goOn(pass: Pass, cookie: number): void {
    const { left, leftSince } = pass;
    if (cookie < pass.reached) for (const [name, id] of left) if (id > cookie) left.delete(name);
    for (const [name, id] of leftSince) if (id <= cookie) noteLeft(left, name, id);
    leftSince.clear();
    pass.reached = cookie;
  }

  return {
    get,
    find: (parent: InodeId, name: string): Entry | undefined => find(keyOf(parent, name)),
    /** Tells the remembered answers that this inode is new and has no name. */
    noneOfInode(inode: InodeId): void {
      namesOf.tell(inode, []);
    },
    /** Entries of a folder with an id above `cookie`, in order of id. */
    list: (parent: InodeId, cookie: number, limit: number): Entry[] => after.all(parent, cookie, limit),
    beginPass(folder: InodeId): Pass {
      const until = newest.get()?.id ?? 0;
      const pass: Pass = { folder, until, reached: 0, left: new Map(), leftSince: new Map() };
      passes.add(pass);
      return pass;
    },
    /** Returns the next entries of the pass after `cookie`. Fewer than `limit` entries only at its end. */
    listOn(pass: Pass, cookie: number, limit: number): Entry[] {
      goOn(pass, cookie);
      const listed: Entry[] = [];
      for (let from = cookie; listed.length < limit; ) {
        const more = between.all(pass.folder, from, pass.until, limit - listed.length);
        const last = more.at(-1);
        if (last === undefined) break;
        from = last.id;
        listed.push(...more.filter(({ name }) => isName(name) && !pass.left.has(name)));
      }
      return listed;
    },
    /** All names with the kernel node ids of their folders, in order of the entries' ids. */
    namesAfter: (id: After<EntryId>, limit: number): { id: EntryId; parent: KernelNodeId; name: string }[] =>
      names.all(id, limit),
    endPass(pass: Pass): void {
      passes.delete(pass);
    },
    ofInode: (inode: InodeId): readonly Entry[] => namesOf(inode),
    /** Returns the oldest name. There may be thousands of others. */
    firstOfInode: (inode: InodeId): Entry | undefined => namesOf.known(inode)?.[0] ?? firstOfInode.get(inode),
    /** Returns the number of all names. Reads an index. */
    count: (): number => all.get()?.count ?? 0,
    links: (inode: InodeId): number => namesOf.known(inode)?.length ?? linksOf(inode),
    isEmpty: (parent: InodeId): boolean => first.get(parent) === undefined,
    create(parent: InodeId, name: string, inode: InodeId, gatewayName: string | null = null): Entry {
      const id = addedId<EntryId>(insert.run(parent, name, gatewayName, inode));
      const created = { id, parent, name, gatewayName, inode };
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
      orphans.run({ inode: former.inode });
      changed.name(former.parent, former.name, former.inode);
      changed.inode(former.inode);
    },
  };
}

/** Inodes and their kernel node ids. */
import { type Attributes, sameValue } from "../contract/attributes.ts";
import { isSaveOf, savesOfContent } from "../contract/saves.ts";
import type { RowTime } from "../lib/clocks.ts";
import type { ChangedRows } from "./changed.ts";
import { type Connection, differences, prepare, prepareColumn, prepareUpdates, remember } from "./database.ts";
import { createFormerlyDurable } from "./formerly-durable.ts";
import { type After, addedId, type InodeId, type KernelNodeId, kernelNodeId } from "./ids.ts";

export type InodeKind = "file" | "folder" | "symlink" | "fifo" | "socket" | "block" | "character";

/**
 * Durability of dirty content. formerly: it was durable, and may have changed since. never: it never was. quarantined:
 * power loss came after a change that was not synced, and no program has saved the content since.
 */
type Synced = "durable" | "formerly" | "never" | "quarantined";

/**
 * The state of a content, tagged by `content` (docs/dev/content-states.md). clean: a version of the gateway. open: a
 * writer may have changed it, and no look has shown it yet. dirty: it has changed; with a hash, a snapshot was taken
 * since. Without one, no snapshot of it may be sent, and only such a content is quarantined. A folder's content is clean.
 */
type Content =
  /** The hash is null where the gateway has told none. */
  | { readonly content: "clean" | "open"; readonly hash: string | null; readonly synced: "never" }
  | { readonly content: "dirty"; readonly hash: null; readonly synced: Synced }
  | { readonly content: "dirty"; readonly hash: string; readonly synced: Exclude<Synced, "quarantined"> };

type ContentState = Content["content"];

/** An inode but for the state of its content. */
interface InodeBase {
  readonly id: InodeId;
  readonly kind: InodeKind;
  /** The current kernel node id. Earlier ones are superseded. */
  readonly kernelNodeId: KernelNodeId;
  readonly attributes: Attributes;
  /** In bytes. */
  readonly size: number;
  /** The version that the content is (clean) or grew from (dirty). */
  readonly originNode: string | null;
  readonly originVersion: string | null;
  /** Goes up whenever the content may have changed. */
  readonly changes: number;
  /** "seconds.nnnnnnnnn", like `ctime`. */
  readonly atime: string;
  readonly ctime: string;
  /** Shared by the names of a hard linked inode. */
  readonly linkGroup: string | null;
  /**
   * The saves that led to the content of a hard linked file (contract/saves.ts). While the content has no snapshot: those
   * that led to the content it grew from. Null: only the save of that content itself.
   */
  readonly saves: readonly string[] | null;
  /** Of a folder: completely known as of this journal position. Null: not completely known. */
  readonly listed: number | null;
  /** The number of folders that are shown in a folder. */
  readonly folders: number;
  /**
   * The row time, coarsely, at which a program last used the names of a folder. Null: no name in it is known, except that
   * a program may have looked into it in vain.
   */
  readonly used: RowTime | "never" | null;
  /** A program has called fsync on it. */
  readonly isFsynced: boolean;
}

export type Inode = InodeBase & Content;

/** The new values of a change. Content that is not dirty is never synced, whatever `synced` says. */
export type InodeChange = Partial<Omit<InodeBase, "id">> & {
  readonly content?: ContentState;
  readonly hash?: string | null;
  readonly synced?: Synced;
};

/** A place in the order of use. */
export interface UsePlace {
  readonly used: RowTime | "never";
  readonly id: InodeId;
}

/** True if the change is visible to programs. */
function isShownElse(before: Inode, after: Inode): boolean {
  if (before.kernelNodeId !== after.kernelNodeId || before.kind !== after.kind) return true;
  if (before.size !== after.size || before.ctime !== after.ctime) return true;
  if (before.folders !== after.folders || (before.listed === null) !== (after.listed === null)) return true;
  return before.attributes !== after.attributes && !sameValue(before.attributes, after.attributes);
}

export type NewInode = Omit<
  InodeBase,
  "id" | "kernelNodeId" | "changes" | "linkGroup" | "saves" | "listed" | "folders" | "used" | "isFsynced"
> &
  Partial<Pick<InodeBase, "changes" | "listed">> &
  Pick<Content, "content" | "hash">;

interface Row extends Omit<InodeBase, "attributes" | "saves" | "used" | "isFsynced"> {
  readonly content: ContentState;
  readonly hash: string | null;
  readonly used: RowTime | typeof NEVER_USED | null;
  readonly synced: number | null;
  readonly attributes: string;
  readonly saves: string | null;
  readonly isFsynced: 0 | 1;
}

const COLUMNS = `id, kind, lineage AS kernelNodeId, attributes, size, hash, origin_node AS originNode, origin_version AS originVersion,
  content, changes, atime, ctime, link_group AS linkGroup, saves, listed, folders, used, synced, fsynced AS isFsynced`;

const CHANGEABLE = {
  kind: "kind",
  kernelNodeId: "lineage",
  attributes: "attributes",
  size: "size",
  hash: "hash",
  originNode: "origin_node",
  originVersion: "origin_version",
  content: "content",
  changes: "changes",
  atime: "atime",
  ctime: "ctime",
  linkGroup: "link_group",
  saves: "saves",
  listed: "listed",
  folders: "folders",
  used: "used",
  synced: "synced",
  isFsynced: "fsynced",
};

/** The saves once the hash becomes `next`: a write here replaced the former content, of any origin. */
function savesAfter({ saves, hash }: Inode, next: string | null): readonly string[] | null {
  const before = saves ?? (hash === null ? null : savesOfContent(hash));
  // A write that leaves the bytes as they were is no new save: nothing is sent.
  if (next === null || isSaveOf(before?.[0], next)) return before;
  return savesOfContent(next, before ?? []);
}

/** SQLite takes a negative LIMIT for no limit. */
const NO_LIMIT = -1;

/** The value of the column `used` that sorts before all times. */
const NEVER_USED = 0;

/** Values of the column `synced`. */
const SYNCED = { durable: 1, formerly: 0, never: null, quarantined: -1 } as const;

function decodeSynced(column: number | null): Synced {
  if (column === null) return "never";
  if (column === SYNCED.quarantined) return "quarantined";
  return column === SYNCED.durable ? "durable" : "formerly";
}

function decode(row: Row): Inode {
  const attributes = JSON.parse(row.attributes) as Attributes;
  const saves = row.saves === null ? null : (JSON.parse(row.saves) as string[]);
  const used = row.used === NEVER_USED ? "never" : row.used;
  const content = contentOf(row.content, row.hash, decodeSynced(row.synced));
  return { ...row, attributes, saves, used, isFsynced: row.isFsynced === 1, ...content };
}

/** The state that the three make. Quarantined content stays so, and has no hash by which it could be sent. */
function contentOf(content: ContentState, hash: string | null, synced: Synced): Content {
  if (content !== "dirty") return { content, hash, synced: "never" };
  return hash === null || synced === "quarantined" ? { content, hash: null, synced } : { content, hash, synced };
}

/** `isNew` is called for each inode that is made with a new kernel node id. */
export function createInodes(database: Connection, changed: ChangedRows, isNew: (inode: Inode) => void) {
  const byId = prepare<Row>(database, `SELECT ${COLUMNS} FROM inode WHERE id = ?`);
  const byGroup = prepare<Row>(database, `SELECT ${COLUMNS} FROM inode WHERE link_group = ?`);
  const byOrigin = prepare<Row>(database, `SELECT ${COLUMNS} FROM inode WHERE origin_node = ?`);
  const insert = prepare(
    database,
    `INSERT INTO inode (kind, lineage, attributes, size, hash, origin_node, origin_version, content, changes, atime,
       ctime, listed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [],
  );
  const change = prepareUpdates(database, "inode", "id", CHANGEABLE);
  const remove = prepare(database, "DELETE FROM inode WHERE id = ?", []);
  const insertKernelNodeId = prepare(database, "INSERT INTO lineage (inode) VALUES (?)", []);
  const insertGivenKernelNodeId = prepare(database, "INSERT INTO lineage (id, inode) VALUES (?, ?)", []);
  const newestKernelNodeId = prepare<{ seq: KernelNodeId }>(
    database,
    "SELECT seq FROM sqlite_sequence WHERE name = 'lineage'",
  );
  const ofHash = prepare(database, "SELECT 1 FROM inode WHERE hash = ? AND content = 'clean' LIMIT 1");
  const kernelNodeInode = prepare<{ inode: InodeId }>(database, "SELECT inode FROM lineage WHERE id = ?");
  const removeKernelNodeId = prepare(database, "DELETE FROM lineage WHERE id = ?", []);
  const kernelNodeIdsOf = prepareColumn<KernelNodeId>(database, "SELECT id FROM lineage WHERE inode = ? ORDER BY id");
  const kernelNodeIdsAfter = prepare<{ id: KernelNodeId }>(
    database,
    "SELECT id FROM lineage WHERE id > ? ORDER BY id LIMIT +?",
  );
  const supersede = prepare(database, "INSERT OR REPLACE INTO superseded (lineage) VALUES (?)");
  const newestSuperseded = prepare<{ seq: number }>(
    database,
    "SELECT seq FROM sqlite_sequence WHERE name = 'superseded'",
  );
  const superseded = prepare<{ id: number; kernelNodeId: KernelNodeId }>(
    database,
    "SELECT id, lineage AS kernelNodeId FROM superseded WHERE id > ? AND id <= ? ORDER BY id LIMIT +?",
  );
  const newestOrphan = prepare<{ seq: number }>(database, "SELECT seq FROM sqlite_sequence WHERE name = 'nameless'");
  const orphans = prepare<{ id: number; inode: InodeId }>(
    database,
    "SELECT id, inode FROM nameless WHERE id > ? AND id <= ? ORDER BY id LIMIT +?",
  );
  const hasName = prepare(database, "DELETE FROM nameless WHERE inode = ?");
  const UNFINISHED = "content <> 'clean' AND (content = 'open' OR hash IS NULL) AND kind = 'file'";
  const unfinished = prepare<Row>(database, `SELECT ${COLUMNS} FROM inode WHERE ${UNFINISHED}`);
  const writing = prepare<Row>(
    database,
    `SELECT ${COLUMNS} FROM inode WHERE id IN (SELECT inode FROM writing) AND kind = 'file'`,
  );
  const unclean = prepare<Row>(
    database,
    `SELECT ${COLUMNS} FROM inode WHERE content <> 'clean' AND kind = 'file' AND id > ? ORDER BY id LIMIT +?`,
  );
  const unlistedFolderAfter = prepare<{ id: InodeId }>(
    database,
    "SELECT id FROM inode WHERE kind = 'folder' AND listed IS NULL AND id > ? ORDER BY id LIMIT 1",
  );
  // There are two statements, because for a comparison of pairs SQLite uses the index only for the first half.
  const leastUsed = (after: string) =>
    prepare<{ id: InodeId }>(
      database,
      `SELECT id FROM inode WHERE used IS NOT NULL AND ${after} ORDER BY used, id DESC LIMIT 1`,
    );
  const asLongUnused = leastUsed("used = @used AND id < @id");
  const usedLater = leastUsed("used > @used AND used <= @until");
  const knownFolderAfter = prepare<{ id: InodeId | null }>(
    database,
    `SELECT min(id) AS id FROM (
       SELECT * FROM (SELECT id FROM inode WHERE listed IS NOT NULL AND id > @after ORDER BY id LIMIT 1)
       UNION ALL SELECT min(parent) FROM entry WHERE parent > @after)`,
  );

  const decodeAll = (rows: Row[]): Inode[] => rows.map(decode);

  const formerlyDurable = createFormerlyDurable();
  const get = remember(database, ["inode"], (id: InodeId) => {
    const row = byId.get(id);
    return row === undefined ? undefined : decode(row);
  });

  const inodeOfKernelNodeId = remember(
    database,
    ["lineage"],
    (kernelNodeId: KernelNodeId) => kernelNodeInode.get(kernelNodeId)?.inode,
  );
  const lastKernelNodeId = remember(
    database,
    ["lineage"],
    (_: 0): After<KernelNodeId> => newestKernelNodeId.get()?.seq ?? 0,
  );
  const kernelNodeIds = remember(database, ["lineage"], (id: InodeId): readonly KernelNodeId[] => kernelNodeIdsOf(id));

  function update(id: InodeId, values: InodeChange): Inode {
    const current = get(id);
    if (current === undefined) throw new Error(`no inode ${id}`);
    const { content = current.content, hash = current.hash, synced: durability = current.synced } = values;
    const next = { ...current, ...values, ...contentOf(content, hash, durability) };
    if (current.synced !== "never" && next.synced === "never") formerlyDurable.add(id);
    if (next.linkGroup === null) next.saves = null;
    else if (values.saves === undefined && next.hash !== current.hash) next.saves = savesAfter(current, next.hash);
    const columns: Partial<Record<keyof Row, unknown>> = differences(current, next);
    if (next.saves !== current.saves) columns.saves = next.saves && JSON.stringify(next.saves);
    if (next.synced !== current.synced) columns.synced = SYNCED[next.synced];
    if (next.used !== current.used) columns.used = next.used === "never" ? NEVER_USED : next.used;
    if (next.isFsynced !== current.isFsynced) columns.isFsynced = next.isFsynced ? 1 : 0;
    if (next.attributes !== current.attributes) {
      const attributes = JSON.stringify(next.attributes);
      columns.attributes = attributes;
      next.attributes = JSON.parse(attributes) as Attributes;
    }
    change(id, columns);
    get.tell(id, next);
    if (isShownElse(current, next)) changed.inode(id, current.kernelNodeId !== next.kernelNodeId);
    return next;
  }

  /** Adds an inode with this kernel node id, which no inode has. */
  function add(inode: NewInode, kernelNodeId: KernelNodeId): Inode {
    const { kind, size, hash, originNode, originVersion, content, changes = 0, atime, ctime, listed = null } = inode;
    const attributes = JSON.stringify(inode.attributes);
    const from = [originNode, originVersion] as const;
    const values = [kind, kernelNodeId, attributes, size, hash, ...from, content, changes, atime, ctime, listed];
    const id = addedId<InodeId>(insert.run(...values));
    const last = lastKernelNodeId(0);
    insertGivenKernelNodeId.run(kernelNodeId, id);
    lastKernelNodeId.tell(0, last > kernelNodeId ? last : kernelNodeId);
    const made: Inode = {
      id,
      kind,
      kernelNodeId,
      attributes: JSON.parse(attributes) as Attributes,
      size,
      ...contentOf(content, hash, "never"),
      originNode,
      originVersion,
      changes,
      atime,
      ctime,
      linkGroup: null,
      saves: null,
      listed,
      folders: 0,
      used: null,
      isFsynced: false,
    };
    get.tell(id, made);
    inodeOfKernelNodeId.tell(kernelNodeId, id);
    kernelNodeIds.tell(id, [kernelNodeId]);
    return made;
  }

  function newKernelNodeId(id: InodeId): KernelNodeId {
    const kernelNodeId = addedId<KernelNodeId>(insertKernelNodeId.run(id));
    lastKernelNodeId.tell(0, kernelNodeId);
    inodeOfKernelNodeId.tell(kernelNodeId, id);
    kernelNodeIds.drop(id);
    return kernelNodeId;
  }

  return {
    get,
    update,
    formerlyDurable,
    /** A new inode with a new kernel node id. */
    create(inode: NewInode): Inode {
      const made = add(inode, kernelNodeId(lastKernelNodeId(0) + 1));
      isNew(made);
      changed.madeInode(made.id);
      return made;
    },
    /** Gives the inode a new kernel node id. The former one is superseded, and stays until the kernel forgets it. */
    replaceKernelNodeId(id: InodeId, change: Omit<InodeChange, "kernelNodeId">): Inode {
      supersede.run(get(id)?.kernelNodeId);
      return update(id, { ...change, kernelNodeId: newKernelNodeId(id) });
    },
    /** A new inode for a cache file whose kernel node id has no row. */
    adopt: (inode: NewInode, kernelNodeId: KernelNodeId): Inode => add(inode, kernelNodeId),
    /** True if a clean file has this content. Reads all clean files. */
    isKnownContent: (hash: string): boolean => ofHash.get(hash) !== undefined,
    /** The last kernel node id that was given out here. */
    newestKernelNodeId: (): After<KernelNodeId> => lastKernelNodeId(0),
    remove(id: InodeId): void {
      const known = kernelNodeIds(id);
      remove.run(id);
      for (const kernelNodeId of known) inodeOfKernelNodeId.tell(kernelNodeId, undefined);
      kernelNodeIds.tell(id, []);
      get.tell(id, undefined);
    },
    ofKernelNodeId(kernelNodeId: KernelNodeId): Inode | undefined {
      const inode = inodeOfKernelNodeId(kernelNodeId);
      return inode === undefined ? undefined : get(inode);
    },
    kernelNodeIds: (id: InodeId): readonly KernelNodeId[] => kernelNodeIds(id),
    kernelNodeIdsAfter: (kernelNodeId: After<KernelNodeId>, limit: number): KernelNodeId[] =>
      kernelNodeIdsAfter.all(kernelNodeId, limit).map((row) => row.id),
    removeKernelNodeId(kernelNodeId: KernelNodeId): void {
      const inode = inodeOfKernelNodeId(kernelNodeId);
      removeKernelNodeId.run(kernelNodeId);
      inodeOfKernelNodeId.tell(kernelNodeId, undefined);
      if (inode === undefined) return;
      const others = kernelNodeIds(inode).filter((other) => other !== kernelNodeId);
      kernelNodeIds.tell(inode, others);
    },
    /** The number of the newest row in the list of superseded kernel node ids. */
    newestSuperseded: (): number => newestSuperseded.get()?.seq ?? 0,
    newestOrphan: (): number => newestOrphan.get()?.seq ?? 0,
    /** Superseded kernel node ids whose row numbers are above `after` and at most `upTo`. */
    superseded: (after: number, upTo: number, limit: number): { id: number; kernelNodeId: KernelNodeId }[] =>
      superseded.all(after, upTo, limit),
    /** Inodes that lost their last name, between two row numbers as above. Some may have a name again. */
    orphans: (after: number, upTo: number, limit: number): { id: number; inode: InodeId }[] =>
      orphans.all(after, upTo, limit),
    /** Records that the inode is not an orphan any more. */
    hasName(id: InodeId): void {
      hasName.run(id);
    },
    /** Files that a program had open for writing. After a crash of the daemon each must be checked. */
    writing: (): Inode[] => decodeAll(writing.all()),
    /**
     * Files without a snapshot of their content. After power loss their rows may claim bytes that the disk does not
     * have.
     */
    unfinished: (): Inode[] => decodeAll(unfinished.all()),
    /** Files whose content is not, or may not be, a version of the gateway. Without a limit: all of them. */
    unclean: (after: After<InodeId> = 0, limit?: number): Inode[] => decodeAll(unclean.all(after, limit ?? NO_LIMIT)),
    /** Inodes whose content is, or grew from, a version of this node. */
    withOrigin: (nodeId: string): Inode[] => decodeAll(byOrigin.all(nodeId)),
    /** The next folder in order of id that is not completely known. */
    unlistedFolderAfter: (after: After<InodeId>): InodeId | undefined => unlistedFolderAfter.get(after)?.id,
    /** The next folder in order of id that is completely known or has an entry. */
    knownFolderAfter: (after: After<InodeId>): InodeId | undefined => knownFolderAfter.get({ after })?.id ?? undefined,
    /**
     * The folder after this one in the order of use, the least recently used first, and among equals the newest, so
     * that a folder comes before the folder that it is in. Undefined: none is left that was not used after `until`.
     */
    leastUsedAfter(after: UsePlace | undefined, until: RowTime): Inode | undefined {
      const used = after?.used === "never" ? NEVER_USED : after?.used;
      const same = after === undefined ? undefined : asLongUnused.get({ used, id: after.id });
      const next = same ?? usedLater.get({ used: used ?? NEVER_USED - 1, until });
      return next === undefined ? undefined : get(next.id);
    },
    ofGroup: (group: string): Inode[] => decodeAll(byGroup.all(group)),
  };
}

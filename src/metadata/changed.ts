/**
 * What a transaction changed of what programs are shown: names and inodes, for whoever has told others
 * of them. It is told of once it is committed; what was undone never was. Knows nobody who listens.
 */
import type { Connection } from "./database.ts";
import type { EntryId, InodeId } from "./ids.ts";

export interface Changed {
  /** By their folder; each with the inode it had before, null where there was no such name. */
  readonly names: ReadonlyMap<InodeId, ReadonlyMap<string, InodeId | null>>;
  /** Folders in which names changed as all who were told of them know. */
  readonly heardIn: ReadonlySet<InodeId>;
  /** New ones: nobody was told of them. */
  readonly made: ReadonlySet<InodeId>;
  /** Attributes, or the number of names. Not of new ones. */
  readonly inodes: ReadonlySet<InodeId>;
  /** Those of them whose lineage is a new one. */
  readonly switched: ReadonlySet<InodeId>;
  /** Those of them that programs on this machine have changed. */
  readonly ours: ReadonlySet<InodeId>;
  /** Entries whose node is another, or was changed by the gateway at another time. */
  readonly nodesOf: ReadonlySet<EntryId>;
}

/** Others: not on this machine. Ours: by programs here. Heard: ours, and all who were told of what was before know of it. */
type Source = "others" | "ours" | "heard";

export function createChanged(database: Connection) {
  let names = new Map<InodeId, Map<string, InodeId | null>>();
  let heardIn = new Set<InodeId>();
  let made = new Set<InodeId>();
  let inodes = new Set<InodeId>();
  let switched = new Set<InodeId>();
  let nodesOf = new Set<EntryId>();
  let ours = new Set<InodeId>();
  let by: Source = "others";
  let listener: (changed: Changed) => void = () => {};

  function drop(): void {
    names = new Map();
    heardIn = new Set();
    made = new Set();
    inodes = new Set();
    switched = new Set();
    nodesOf = new Set();
    ours = new Set();
  }

  function tell(): void {
    const changed = { names, heardIn, made, inodes, switched, ours, nodesOf };
    const isAny = names.size + heardIn.size + inodes.size + nodesOf.size > 0;
    if (isAny || made.size > 0) drop();
    if (isAny) listener(changed);
  }

  /** Outside of a transaction each change is one. */
  function noted(): void {
    if (!database.inTransaction) tell();
  }

  function as<T>(source: Source, work: () => T): T {
    const before = by;
    by = source;
    try {
      return work();
    } finally {
      by = before;
    }
  }

  return {
    name(folder: InodeId, name: string, before: InodeId | null): void {
      if (by === "heard") {
        heardIn.add(folder);
      } else {
        const known = names.get(folder) ?? new Map<string, InodeId | null>();
        names.set(folder, known);
        if (!known.has(name)) known.set(name, before);
      }
      noted();
    },
    madeInode(id: InodeId): void {
      made.add(id);
      if (!database.inTransaction) drop();
    },
    inode(id: InodeId, isSwitched = false): void {
      if (by === "heard" || made.has(id)) return;
      inodes.add(id);
      if (isSwitched) switched.add(id);
      if (by === "ours") ours.add(id);
      noted();
    },
    nodeOf(entry: EntryId | null): void {
      if (by === "heard" || entry === null) return;
      nodesOf.add(entry);
      noted();
    },
    /** What `work` changes is known to all who were told of what was before. */
    heard: <T>(work: () => T): T => as("heard", work),
    /** What `work` changes was done here, and not all of them know of it. */
    ours: <T>(work: () => T): T => as("ours", work),
    tell,
    drop,
    /** Called right after each commit that changed something. Must not fail. */
    onTell(next: (changed: Changed) => void): void {
      listener = next;
    },
  };
}

export type ChangedRows = ReturnType<typeof createChanged>;

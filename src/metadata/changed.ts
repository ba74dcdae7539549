/**
 * Collects the names and inodes that a transaction changed, for one listener, which tells the kernel. A change is
 * reported after its commit. A change that was rolled back is never reported. This file does not know the listener.
 */
import type { Connection } from "./database.ts";
import type { EntryId, InodeId } from "./ids.ts";

export interface Changed {
  /** By folder: the changed names, each with its former inode (null: none). */
  readonly names: ReadonlyMap<InodeId, ReadonlyMap<string, InodeId | null>>;
  /** Folders with changes of the source "heard". */
  readonly heardIn: ReadonlySet<InodeId>;
  /** New inodes, which the kernel does not know yet. */
  readonly made: ReadonlySet<InodeId>;
  /** Inodes whose attributes or number of names changed. New inodes are not among them. */
  readonly inodes: ReadonlySet<InodeId>;
  /** Those of `inodes` that have a new kernel node id. */
  readonly switched: ReadonlySet<InodeId>;
  /** Those of `inodes` that programs on this machine changed. */
  readonly ours: ReadonlySet<InodeId>;
  /** Entries with another node, or with a node whose `modifiedAt` changed. */
  readonly nodesOf: ReadonlySet<EntryId>;
}

/**
 * The origin of a change. "others": not this machine. "ours": programs here. "heard": programs here, in a way that the
 * kernel knows of by itself, so that nothing it remembers is wrong.
 */
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

  /** Outside of a transaction, each change is reported by itself. */
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
    /** Runs `work`. The kernel knows of its changes by itself. */
    heard: <T>(work: () => T): T => as("heard", work),
    /** Runs `work`, which changes rows for programs here. The kernel may not know of it. */
    ours: <T>(work: () => T): T => as("ours", work),
    tell,
    drop,
    /** Called right after each commit that changed something. Must not throw. */
    onTell(next: (changed: Changed) => void): void {
      listener = next;
    },
  };
}

export type ChangedRows = ReturnType<typeof createChanged>;

/**
 * The kernel's cache of a file system: names, negative entries, attributes and listings, until their validity ends or
 * they are invalidated. `stale` compares those of long validity with the rows: a change that was not invalidated shows
 * there.
 */
import type {
  Attributed,
  Caller,
  FileSystem,
  Found,
  KernelCache,
  KernelNodeId,
  NegativeEntry,
  Stat,
} from "../../../src/engine/api/index.ts";
import { type ElapsedTime, plus } from "../../../src/lib/clocks.ts";
import type { Clock } from "../../../src/lib/runtime.ts";
import type { Connection } from "../../../src/metadata/database.ts";
import { entryId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { isPastNode } from "../../../src/metadata/past-nodes.ts";

export interface Dentry {
  readonly parent: KernelNodeId;
  readonly name: string;
  readonly kernelNodeId: KernelNodeId;
  readonly kind: Stat["kind"];
  until: ElapsedTime;
  isLong: boolean;
}

interface Kept<T> {
  readonly value: T;
  readonly until: ElapsedTime;
  readonly isLong: boolean;
}

/** What the memory is compared with. */
interface Asked {
  readonly rows: Connection;
  readonly fileSystem: FileSystem;
  /** Others' changes are heard of at once: something may be kept for long. */
  readonly isLive: boolean;
}

export interface KernelMemory {
  readonly cache: KernelCache;
  readonly dentries: Map<string, Dentry>;
  /** Until it is called, nobody forgets names that are gone. */
  onGone: () => void;
  /** Whether the kernel has an inode of it; until it is set there is no kernel. */
  has: (kernelNodeId: KernelNodeId) => boolean;
  /** Forgets those of them that nothing uses; until it is set there is no kernel. */
  prune: (kernelNodeIds: readonly KernelNodeId[]) => void;
  /** Notes a name that was found; a name moved is noted by `move`. */
  name(parent: KernelNodeId, name: string, found: Found, isKept: boolean): void;
  absent(parent: KernelNodeId, name: string, answer: NegativeEntry, isKept: boolean): void;
  isAbsent(parent: KernelNodeId, name: string): boolean;
  move(from: { parent: KernelNodeId; name: string }, to: { parent: KernelNodeId; name: string }): void;
  attributes(kernelNodeId: KernelNodeId, answer: Attributed, isKept: boolean): void;
  attributesOf(kernelNodeId: KernelNodeId): Stat | undefined;
  /** A call of a program has changed it. */
  touch(...kernelNodeIds: KernelNodeId[]): void;
  /** Names of a folder: a call of a program has changed them. */
  touchFolder(...kernelNodeIds: KernelNodeId[]): void;
  listing(folder: KernelNodeId): readonly string[] | undefined;
  dropListing(folder: KernelNodeId): void;
  /** Counts what would make a listing that is being read useless. */
  version(folder: KernelNodeId): number;
  keepListing(folder: KernelNodeId, names: readonly string[]): void;
  expireNames(): void;
  /** The kernel node id is no longer known: nor is what was, of it and below it. */
  forget(kernelNodeId: KernelNodeId): void;
  clear(): void;
  /** One line for each thing it would answer wrongly. */
  stale(asked: Asked, caller: Caller): Promise<string[]>;
}

/** What may be kept for no longer than this needs no word when it changes. */
const SHORT_MS = 1_000;

export const keyOf = (parent: KernelNodeId, name: string) => `${parent}/${name}`;

export function createKernelMemory(clock: Pick<Clock, "elapsed" | "soon">): KernelMemory {
  const dentries = new Map<string, Dentry>();
  const absents = new Map<string, Kept<{ parent: KernelNodeId; name: string }>>();
  const attributes = new Map<KernelNodeId, Kept<Stat>>();
  const listings = new Map<KernelNodeId, readonly string[]>();
  const versions = new Map<KernelNodeId, number>();

  const kept = <T>(value: T, milliseconds: number): Kept<T> => ({
    value,
    until: plus(clock.elapsed(), milliseconds),
    isLong: milliseconds > SHORT_MS,
  });
  const isValid = ({ until }: { until: ElapsedTime }) => clock.elapsed() < until;

  function spoil(folder: KernelNodeId): void {
    listings.delete(folder);
    versions.set(folder, (versions.get(folder) ?? 0) + 1);
  }

  const memory: KernelMemory = {
    cache: {
      expiresNames: true,
      tell({ names, listings: folders, inodes }) {
        // By a thread: what is said now is heard a little later.
        const told = { names: [...names], folders: [...folders], inodes: [...inodes] };
        clock.soon(() => {
          for (const { parent, name, isGone } of told.names) {
            const key = keyOf(parent, name);
            absents.delete(key);
            const dentry = dentries.get(key);
            if (dentry !== undefined) dentry.until = clock.elapsed();
            if (isGone()) dentries.delete(key);
          }
          for (const folder of told.folders) spoil(folder);
          for (const kernelNodeId of told.inodes) attributes.delete(kernelNodeId);
          memory.onGone();
        });
      },
      async unknownToKernel(kernelNodeIds) {
        await new Promise<void>((resolve) => clock.soon(resolve));
        const lacking = kernelNodeIds.filter((kernelNodeId) => !memory.has(kernelNodeId));
        await new Promise<void>((resolve) => clock.soon(resolve));
        return new Set(lacking);
      },
      async prune(kernelNodeIds) {
        await new Promise<void>((resolve) => clock.soon(resolve));
        memory.prune(kernelNodeIds);
        await new Promise<void>((resolve) => clock.soon(resolve));
      },
      everything(known) {
        clock.soon(() => {
          // Only what the rows name: absent names are told by themselves.
          for (let after = entryId(0); ; ) {
            const rows = known.names(after, 7);
            for (const { parent, name } of rows) {
              const dentry = dentries.get(keyOf(parent, name));
              if (dentry !== undefined) dentry.until = clock.elapsed();
            }
            const last = rows.at(-1);
            if (last === undefined) break;
            after = last.id;
          }
          for (let after = kernelNodeId(0); ; ) {
            const kernelNodeIds = known.kernelNodeIds(after, 7);
            for (const kernelNodeId of kernelNodeIds) attributes.delete(kernelNodeId);
            const last = kernelNodeIds.at(-1);
            if (last === undefined) break;
            after = last;
          }
        });
      },
    },
    dentries,
    onGone: () => {},
    has: () => true,
    prune: () => {},
    name(parent, name, { kernelNodeId, stat, entryValidMs }, isKept) {
      absents.delete(keyOf(parent, name));
      const { until, isLong } = kept(null, isKept ? entryValidMs : 0);
      dentries.set(keyOf(parent, name), { parent, name, kernelNodeId, kind: stat.kind, until, isLong });
    },
    absent(parent, name, { entryValidMs }, isKept) {
      if (isKept) absents.set(keyOf(parent, name), kept({ parent, name }, entryValidMs));
    },
    isAbsent(parent, name) {
      const known = absents.get(keyOf(parent, name));
      return known !== undefined && isValid(known);
    },
    move(from, to) {
      absents.delete(keyOf(to.parent, to.name));
      const dentry = dentries.get(keyOf(from.parent, from.name));
      dentries.delete(keyOf(from.parent, from.name));
      if (dentry !== undefined) dentries.set(keyOf(to.parent, to.name), { ...dentry, ...to });
    },
    attributes(kernelNodeId, { stat, validMs }, isKept) {
      if (isKept) attributes.set(kernelNodeId, kept(stat, validMs));
      else attributes.delete(kernelNodeId);
    },
    attributesOf(kernelNodeId) {
      const known = attributes.get(kernelNodeId);
      return known !== undefined && isValid(known) ? known.value : undefined;
    },
    touch(...kernelNodeIds) {
      for (const kernelNodeId of kernelNodeIds) attributes.delete(kernelNodeId);
    },
    touchFolder(...kernelNodeIds) {
      for (const kernelNodeId of kernelNodeIds) {
        attributes.delete(kernelNodeId);
        spoil(kernelNodeId);
      }
    },
    listing: (folder) => listings.get(folder),
    dropListing: spoil,
    version: (folder) => versions.get(folder) ?? 0,
    keepListing(folder, names) {
      listings.set(folder, names);
    },
    expireNames() {
      for (const dentry of dentries.values()) dentry.until = clock.elapsed();
      absents.clear();
    },
    forget(kernelNodeId) {
      attributes.delete(kernelNodeId);
      listings.delete(kernelNodeId);
      for (const [key, { value }] of absents) if (value.parent === kernelNodeId) absents.delete(key);
    },
    clear() {
      for (const all of [dentries, absents, attributes, listings]) all.clear();
    },

    async stale({ rows, fileSystem, isLive }, caller) {
      const wrong: string[] = [];
      const inodeOf = (kernelNodeId: KernelNodeId) =>
        rows.prepare("SELECT inode FROM lineage WHERE id = ?").pluck().get(kernelNodeId) as number | undefined;
      /** The kernel node id a name shows. */
      const find = (parent: KernelNodeId, name: string) =>
        rows
          .prepare("SELECT lineage FROM entry JOIN inode ON inode.id = entry.inode WHERE parent = ? AND name = ?")
          .pluck()
          .get(inodeOf(parent), name) as KernelNodeId | undefined;
      // What has just been told is heard.
      await new Promise<void>((resolve) => clock.soon(resolve));
      const isKeptForLong = (one: { isLong: boolean; until: ElapsedTime }) => one.isLong && isValid(one);
      // Of the past nobody would tell: a moment stays what it is.
      const names = [...dentries.values()].filter((dentry) => !isPastNode(dentry.kernelNodeId));
      const stats = [...attributes].flatMap(([kernelNodeId, one]) => (isPastNode(kernelNodeId) ? [] : [one]));
      const all = [...names, ...absents.values(), ...stats];
      if (!isLive && all.some(isKeptForLong)) wrong.push("something is kept for long although nobody would tell");
      for (const dentry of names) {
        if (!dentry.isLong || !isValid(dentry)) continue;
        const kernelNodeId = find(dentry.parent, dentry.name);
        if (kernelNodeId !== dentry.kernelNodeId)
          wrong.push(`${dentry.name} in ${dentry.parent} is kept as ${dentry.kernelNodeId} and is ${kernelNodeId}`);
      }
      for (const absent of absents.values()) {
        const { parent, name } = absent.value;
        if (!isValid(absent) || find(parent, name) === undefined) continue;
        wrong.push(`${name} in ${parent} is kept as absent and is there`);
      }
      for (const [folder, names] of listings) {
        const id = inodeOf(folder);
        if (id === undefined) continue;
        const shown = rows.prepare("SELECT name FROM entry WHERE parent = ?").pluck().all(id) as string[];
        const there = shown.filter((name) => name !== "" && !name.includes("/")).sort();
        if (there.join("/") === names.join("/")) continue;
        // It is thrown away by who opens the folder and hears that he is not to keep it.
        const { handle, keepCache } = await fileSystem.opendir(caller, folder);
        await fileSystem.releasedir(handle);
        if (keepCache === true) wrong.push(`folder ${folder} is kept as ${names} and is ${there}`);
      }
      for (const [kernelNodeId, { value, until, isLong }] of attributes) {
        if (!isLong || clock.elapsed() >= until || inodeOf(kernelNodeId) === undefined) continue;
        const { stat } = await fileSystem.getattr(caller, kernelNodeId);
        if (attributes.get(kernelNodeId)?.value !== value) continue;
        const difference = differs(value, stat);
        if (difference !== undefined) wrong.push(`attributes of ${kernelNodeId} are kept with another ${difference}`);
      }
      return wrong;
    },
  };
  return memory;
}

function differs(a: Stat, b: Stat): string | undefined {
  const fields = ["inode", "kind", "mode", "links", "size", "mtime", "ctime"] as const;
  const differing = fields.find((field) => JSON.stringify(a[field]) !== JSON.stringify(b[field]));
  return differing === undefined
    ? undefined
    : `${differing}: ${JSON.stringify(a[differing])}, now ${JSON.stringify(b[differing])}`;
}

/**
 * The places of files in the state dir. This file does not know their meaning:
 *
 *     lock                     held by the daemon that uses the folder
 *     reserve                  space to be given up when the disk is full
 *     handles                  the handle table, by daemon/handle-file.ts
 *     staged                   the dirty-file log, see dirty-log.ts
 *     live/12/12345            cache files, by kernel node id
 *     generation/0/17          snapshots with files of their own, by snapshot id
 *     past/<hash>              contents of earlier versions that were read
 *     quarantine/NAME          quarantined files, which could not be understood; never removed by us
 *
 * A shard is the folder of a thousand ids. Ids count up and are never used again. Folders are 0700, files 0600.
 */
import { dirname, join } from "node:path";
import type { Brand } from "../lib/brand.ts";
import type { Files } from "../lib/files.ts";
import { hasCode } from "../lib/system-error.ts";

/** Ids in one folder. */
export const SHARD = 1000;

/** Ids of files. The brands are those of the row ids (metadata/ids.ts), which this folder does not import. */
type KernelNodeId = number & Brand<"KernelNodeId">;
type SnapshotId = number & Brand<"SnapshotId">;

interface FileIds {
  readonly live: KernelNodeId;
  readonly generation: SnapshotId;
}

type FileKind = keyof FileIds;

export interface Layout {
  readonly root: string;
  readonly lock: string;
  readonly reserve: string;
  readonly dirtyLog: string;
  cacheFile(kernelNodeId: KernelNodeId): string;
  snapshot(id: SnapshotId): string;
  /** The folder of contents of earlier versions. It may be missing, and any file in it may go at any time. */
  readonly past: string;
  /** Makes the folders that always exist. Resolves when they are durable. Rejects with a system error. */
  prepare(): Promise<void>;
  /** Must be awaited before a cache file or snapshot is made. Resolves when its folder exists and is durable. */
  prepareFolderOf(path: string): Promise<void>;
  /** Makes the name of a file that was made or renamed durable. */
  syncFolderOf(path: string): Promise<void>;
  /** Kernel node ids that have a file, ascending by shard. */
  cacheFiles(): AsyncIterable<KernelNodeId>;
  /** Ids of snapshots that have a file, ascending by shard. */
  snapshots(): AsyncIterable<SnapshotId>;
  /** The shards that have a folder, ascending. */
  shards(kind: FileKind): Promise<number[]>;
  /** The ids that have a file in a shard. */
  inShard<Kind extends FileKind>(kind: Kind, shard: number): Promise<FileIds[Kind][]>;
  /**
   * Moves a file to `quarantine/`, under a name that begins with `name`, durably. Resolves to its new path. Rejects
   * with a system error.
   */
  quarantine(path: string, name: string): Promise<string>;
}

export function createLayout(files: Files, root: string): Layout {
  const live = join(root, "live");
  const generation = join(root, "generation");
  const quarantineFolder = join(root, "quarantine");
  /** Shards that were made since the start, or are being made. None is ever removed. */
  const prepared = new Map<string, Promise<void>>();
  let lastQuarantine: Promise<unknown> = Promise.resolve();

  async function prepareFolder(folder: string): Promise<void> {
    await files.makeFolder(folder);
    // The folder is synced even if it exists: a crash may have come between making and syncing it.
    await files.syncFolder(dirname(folder));
  }

  async function prepareFolderOf(path: string): Promise<void> {
    const folder = dirname(path);
    let preparing = prepared.get(folder);
    if (preparing === undefined) {
      preparing = prepareFolder(folder);
      prepared.set(folder, preparing);
      preparing.catch(() => prepared.delete(folder));
    }
    await preparing;
  }

  async function quarantine(path: string, name: string): Promise<string> {
    const wanted = name.replaceAll(/[^\w.,() -]/g, "_").replace(/^\.+/, "_");
    const taken = new Set(await files.list(quarantineFolder));
    let free = wanted;
    for (let count = 1; taken.has(free); count++) free = `${wanted}.${count}`;
    const target = join(quarantineFolder, free);
    await files.rename(path, target);
    await files.syncFolder(quarantineFolder);
    await files.syncFolder(dirname(path));
    return target;
  }

  return {
    root,
    lock: join(root, "lock"),
    reserve: join(root, "reserve"),
    dirtyLog: join(root, "staged"),
    past: join(root, "past"),
    cacheFile: (kernelNodeId) => shardPath(live, kernelNodeId),
    snapshot: (id) => shardPath(generation, id),

    async prepare() {
      await files.makeFolder(root);
      for (const folder of [live, generation, quarantineFolder]) await files.makeFolder(folder);
      // If many files of a region were removed within the last minutes, ext4 looks at each of them before it makes
      // another file there (half a millisecond). So the next shard should be in another region.
      for (const folder of [live, generation]) await files.spreadFolders?.(folder);
      await files.syncFolder(root);
      await files.syncFolder(dirname(root));
    },

    prepareFolderOf,
    syncFolderOf: (path) => files.syncFolder(dirname(path)),
    cacheFiles: () => listIds<"live">(files, live),
    snapshots: () => listIds<"generation">(files, generation),
    shards: (kind) => listShards(files, kind === "live" ? live : generation),
    inShard: (kind, shard) => listShard(files, kind === "live" ? live : generation, shard),

    /** One after the other, so that no two calls find the same name free. */
    quarantine(path, name) {
      const moved = lastQuarantine.then(() => quarantine(path, name));
      lastQuarantine = moved.catch(() => {});
      return moved;
    },
  };
}

function shardPath(folder: string, id: number): string {
  if (!Number.isSafeInteger(id) || id < 0) throw new RangeError(`expected an id counting from 0, got ${id}`);
  // Each open of a file comes here. join() would normalise the path, and `folder` is normal already.
  return `${folder}/${Math.floor(id / SHARD)}/${id}`;
}

/** A file that is not at the place of its id is not ours, and is left out. */
async function* listIds<Kind extends FileKind>(files: Files, folder: string): AsyncGenerator<FileIds[Kind]> {
  for (const shard of await listShards(files, folder)) yield* await listShard<Kind>(files, folder, shard);
}

async function listShards(files: Files, folder: string): Promise<number[]> {
  const names = await files.list(folder);
  return names
    .filter(isId)
    .map(Number)
    .sort((a, b) => a - b);
}

async function listShard<Kind extends FileKind>(files: Files, folder: string, shard: number): Promise<FileIds[Kind][]> {
  const names = (await namesIn(files, join(folder, String(shard)))).filter(isId);
  const ids = names.map((name) => Number(name) as FileIds[Kind]);
  return ids.filter((id) => Math.floor(id / SHARD) === shard);
}

async function namesIn(files: Files, folder: string): Promise<string[]> {
  try {
    return await files.list(folder);
  } catch (error) {
    if (hasCode(error, "ENOTDIR", "ENOENT")) return [];
    throw error;
  }
}

function isId(name: string): boolean {
  return /^(0|[1-9]\d{0,15})$/.test(name) && Number.isSafeInteger(Number(name));
}

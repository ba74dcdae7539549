/**
 * More names are known than the mount is to keep: the names in the folders that programs did not use for longest are
 * dropped. Their rows go, and the folder is not listed any more, as if it had never been. The next program that looks
 * into it lists it again. The journal's entries about unlisted folders are passed over, so nothing has to be undone.
 *
 * - Only names that the gateway tells by itself go: none with local changes, requests, cached bytes, an open handle or a
 *   hard link.
 * - Names that the kernel has stay: it may ask for them at any time. If the kernel has the folder, all names in it stay, since
 *   a program may work in the folder or watch it, and the kernel may remember that a name is absent. The kernel is
 *   asked to forget both where it can be asked.
 * - An answer that was given a moment ago may still make an inode in the kernel. So a folder is left alone for longer
 *   than a request may take after its last use (core/folder-use.ts).
 * - Anything may happen while the kernel is asked. So everything is looked at again in the transaction that drops.
 * - Each transaction drops some names and makes the folder unlisted. After a crash in between, the folder is one that
 *   is not completely known, and the rest of its names goes later.
 * - Prefetch only fills the room below the limit, and no more than the excess is dropped, so that neither undoes the
 *   work of the other.
 */
import { minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode, UsePlace } from "../../metadata/inodes.ts";
import { FIRST_COOKIE, ROOT_INODE } from "../../metadata/metadata.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";

/** Names per transaction: programs wait while it runs. */
const BATCH = 32;
/** Kernel node ids in one message to the kernel. */
const MESSAGE_IDS = 500;
/** Dropping begins when the limit is exceeded by this share of it. */
const SLACK = 1 / 32;
/** The pause until the next look at the number of names, in request times. It doubles while nothing can be dropped. */
const REST = 0.5;
const REST_MAX = 16;
/** The pause after a batch while programs keep the thread busy. */
const MAKE_WAY_MS = 250;
/** Folders looked at in one turn of the event loop: most of them may have to stay. */
const LOOKED_AT = 64;

interface NameDropping {
  /** Resolves after `stop`. Rejects with the error of the rows. */
  run(): Promise<void>;
  stop(): void;
}

export function createNameDropping(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree): NameDropping {
  const { metadata, runtime, folderUse, kernel, log } = context;
  const { cache } = kernel;
  const { namesAhead } = context.settings;
  const limit = namesAhead ?? Number.POSITIVE_INFINITY;
  const stopped = new AbortController();

  const excess = () => metadata.entries.count() - limit;

  function mayDrop(): boolean {
    if (stopped.signal.aborted || excess() <= 0) return false;
    // While the gateway is away, a name that went could not be had again.
    return context.network.isOnline && context.disk.hasRows && !context.timeline.isRolledBack();
  }

  /** Goes once through the folders, until the limit is kept. Returns how many names it dropped. */
  async function pass(): Promise<number> {
    const until = folderUse.longAgo();
    let dropped = 0;
    let looked = 0;
    for (let at: UsePlace | undefined; mayDrop(); ) {
      if (++looked % LOOKED_AT === 0) await sleep(runtime, 1, stopped.signal);
      const folder = metadata.inodes.leastUsedAfter(at, until);
      if (folder === undefined) break;
      at = { used: folder.used ?? "never", id: folder.id };
      if (isUnused(context, folder.id)) dropped += await dropIn(folder);
    }
    return dropped;
  }

  async function dropIn(folder: Inode): Promise<number> {
    let dropped = 0;
    if (!(await isForgotten(folder))) return dropped;
    for (let after: number | undefined = FIRST_COOKIE; after !== undefined && mayDrop(); ) {
      const wanted = Math.min(BATCH, excess());
      const names = metadata.entries.list(folder.id, after, wanted);
      const kernelNodeIds = kernelNodeIdsOf(names.filter((entry) => isAsTold(context, entry)));
      const lacking = await unknownToKernel([folder.kernelNodeId, ...kernelNodeIds.keys()]);
      if (!lacking.has(folder.kernelNodeId) || !mayDrop()) break;
      const begun = runtime.elapsed();
      const going = [...kernelNodeIds].flatMap(([kernelNodeId, name]) => (lacking.has(kernelNodeId) ? [name] : []));
      const gone = drop(context, folder.id, going);
      if (gone > 0) runtime.step("names: dropped");
      dropped += gone;
      after = names.length < wanted ? undefined : names.at(-1)?.id;
      const pause = context.foregroundThrottle.isBusy() ? MAKE_WAY_MS : minus(runtime.elapsed(), begun);
      await sleep(runtime, pause, stopped.signal);
    }
    return dropped;
  }

  const unknownToKernel = async (kernelNodeIds: readonly KernelNodeId[]): Promise<ReadonlySet<KernelNodeId>> =>
    (await cache.unknownToKernel?.(kernelNodeIds)) ?? new Set();

  const kernelNodeIdsOf = (names: readonly Entry[]): Map<KernelNodeId, Entry> =>
    new Map(
      names.flatMap((name) => {
        const inode = metadata.inodes.get(name.inode);
        return inode === undefined ? [] : [[inode.kernelNodeId, name]];
      }),
    );

  /** True: the kernel does not have the folder, or has forgotten it now. It forgets the names in it first. */
  async function isForgotten({ id, kernelNodeId }: Inode): Promise<boolean> {
    if ((await unknownToKernel([kernelNodeId])).has(kernelNodeId)) return true;
    if (cache.prune === undefined) return false;
    for (let after: number | undefined = FIRST_COOKIE; after !== undefined && mayDrop(); ) {
      const names = metadata.entries.list(id, after, MESSAGE_IDS);
      await cache.prune([...kernelNodeIdsOf(names).keys()]);
      after = names.length < MESSAGE_IDS ? undefined : names.at(-1)?.id;
    }
    await cache.prune([kernelNodeId]);
    return (await unknownToKernel([kernelNodeId])).has(kernelNodeId);
  }

  return {
    async run() {
      // Where no journal tells what changes, known folders are listed again. Attributes that the gateway does not hold
      // would go with the name. And an engine that cannot ask the kernel would have to remember what it told it.
      const { isFull, attributes } = context.client.features;
      if (namesAhead === undefined || !isFull || !attributes || cache.unknownToKernel === undefined) return;
      // The latest uses of the daemon before may not have been written.
      await sleep(runtime, folderUse.requestMs, stopped.signal);
      const restMs = REST * folderUse.requestMs;
      for (let rest = restMs; !stopped.signal.aborted; ) {
        if (excess() > limit * SLACK) {
          const dropped = await pass();
          rest = dropped > 0 ? restMs : Math.min(2 * rest, REST_MAX * folderUse.requestMs);
          log.debug({ dropped, known: metadata.entries.count() }, "names that were not used for long were dropped");
        }
        await sleep(runtime, rest, stopped.signal);
      }
    },
    stop: () => stopped.abort(),
  };
}

/** Drops these names of the folder, if they may go. Returns how many went. */
function drop(context: Rows & LocalFiles & Kernel & Remote & Tree, id: InodeId, names: readonly Entry[]): number {
  const { metadata } = context;
  // The kernel has nothing of it, and to programs that watch nothing has changed.
  return metadata.changed.heard(() =>
    metadata.transaction(() => {
      if (!isUnused(context, id)) return 0;
      const going = names.filter((name) => metadata.entries.get(name.id)?.parent === id && isAsTold(context, name));
      for (const name of going) dropName(context, name);
      if (going.length > 0) metadata.inodes.update(id, { listed: null });
      if (metadata.entries.isEmpty(id)) metadata.inodes.update(id, { used: null });
      return going.length;
    }),
  );
}

function dropName({ metadata, orphans }: Rows & LocalFiles, { id, inode }: Entry): void {
  const row = metadata.nodes.ofEntry(id);
  // Before the entry: a row that lost its entry is a deletion to send.
  if (row !== undefined) metadata.nodes.remove(row.id);
  metadata.entries.remove(id);
  const orphan = metadata.inodes.get(inode);
  if (orphan !== undefined) orphans.removeInode(orphan);
}

/** True: no program used the folder for long, and nothing is under way that needs to know what is in it. */
function isUnused(context: Rows & Kernel & Remote & Tree, id: InodeId): boolean {
  const { metadata, folderUse, listings, handles } = context;
  const folder = metadata.inodes.get(id);
  const row = context.nodeRows.ofFolder(id);
  if (folder?.used == null || id === ROOT_INODE || row === undefined || !isAgreed(context, row)) return false;
  if (folderUse.isNoted(id) || (folder.used !== "never" && folder.used > folderUse.longAgo())) return false;
  if (listings.isRunning(id) || metadata.relists.has(id)) return false;
  for (const handle of handles.values()) if (handle.kind === "folder" && handle.inode === id) return false;
  return true;
}

/** True: the gateway would tell the same of the node in a list, and nothing waits to be sent or heard of it. */
function isAgreed({ metadata }: Rows, { id, nodeId, base, seen, dirtySince, due, parked }: NodeRow): boolean {
  if (nodeId === null || base === null || seen !== null) return false;
  if (dirtySince !== null || due !== null || parked !== null) return false;
  const { settings, attempts, rereads, arrivals } = metadata;
  const shown = Math.min(settings.getNumber("cursor"), settings.getNumber("indexed"));
  const { position } = base;
  if (position !== undefined && (typeof position !== "number" || position > shown)) return false;
  return !attempts.isAnyConcerning(id, nodeId) && !rereads.has(nodeId) && !arrivals.isAnyIn(nodeId);
}

/** True: the name is where the gateway has it, and no other node waits for that place. */
function isInPlace(context: Rows & Tree, { parent, name, gatewayName }: Entry, { base }: NodeRow): boolean {
  if (base?.parent == null || base.name !== (gatewayName ?? name)) return false;
  if (base.parent !== context.nodeRows.nodeIdOfFolder(parent)) return false;
  return context.metadata.nodes.atPlace(base.parent, base.name).length === 1;
}

/** True: the name has nothing that a new list of its folder would not bring back. */
function isAsTold(context: Rows & LocalFiles & Remote & Tree, entry: Entry): boolean {
  const { metadata, cacheFiles } = context;
  const { inode: number } = entry;
  const row = metadata.nodes.ofEntry(entry.id);
  const inode = metadata.inodes.get(number);
  if (row?.nodeId == null || inode === undefined) return false;
  if (!isAgreed(context, row) || !isInPlace(context, entry, row)) return false;
  const { kernelNodeId, linkGroup, content, kind } = inode;
  if (linkGroup !== null || metadata.entries.links(number) !== 1 || metadata.inodes.kernelNodeIds(number).length !== 1)
    return false;
  if (kind === "folder") {
    // Nodes whose names programs moved out of the folder, or removed, are in it at the gateway.
    return inode.used === null && metadata.nodes.countBelow(row.nodeId) === 0 && !context.listings.isRunning(number);
  }
  if (content !== "clean" || cacheFiles.has(kernelNodeId) || (metadata.cacheFiles.get(kernelNodeId)?.bytes ?? 0) > 0)
    return false;
  // Content that grew from a version of the node may have to be compared with the node.
  const isOnlyOrigin = metadata.inodes.withOrigin(row.nodeId).every((other) => other.id === number);
  return isOnlyOrigin && metadata.snapshots.newestOf(number) === undefined;
}

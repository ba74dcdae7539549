/**
 * Prefetch of the whole tree: the names of the workspace are read in the background, folder by folder, so that find, git
 * status and new files find every folder known, also while the gateway does not answer. The subfolders of what programs
 * looked into last come first. The journal keeps known folders true, so each folder is listed once.
 *
 * It only lists, by the flow that programs wait for, so what a program looks into joins the list that is under way. A crash
 * loses nothing: a folder whose list did not end is still unknown.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { After, InodeId } from "../../metadata/ids.ts";
import type { EngineStatus } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import { listAhead, mayList } from "./prefetch-folders.ts";

/** Folders listed at a time. */
const AT_ONCE = 3;
/** Names are counted again after so many folders: a count reads an index. */
const COUNT_EVERY = 50;
/** A visited folder is looked through for unknown subfolders as far as this. */
const LOOKED_AT = 200;
/** Folders that could not be listed, or are new, are looked for again after this. */
const REST_MS = 30_000;
/** After a list that failed: what is wrong with one folder is often wrong with all, such as a login that has ended. */
const FAILED_MS = 5_000;

export interface TreePrefetch {
  /** Ends once it is stopped. */
  run(): Promise<void>;
  stop(): void;
  /** Of folders that are not known yet: whether there are none, or they are read ahead. */
  rest(): EngineStatus["names"]["rest"];
}

export function createTreePrefetch(context: Rows & LocalFiles & Remote & Host & Tree & Incoming): TreePrefetch {
  const { metadata, client, runtime, settings, polled } = context;
  const stopped = new AbortController();
  /** The scan by inode has come to this folder. */
  let upTo: After<InodeId> = 0;
  /** Visits until then were looked at. Undefined: none was. */
  let visitsUpTo: ElapsedTime | undefined;
  /** Subfolders of visited folders, the next one last. */
  const preferred: InodeId[] = [];
  /** The lists that are under way. */
  const lists = new Map<InodeId, Promise<void>>();
  let tries = 0;
  let isAtLimit = false;

  function hasRoom(): boolean {
    isAtLimit = metadata.entries.count() >= (settings.namesAhead ?? 0);
    return !isAtLimit && !stopped.signal.aborted;
  }

  function isUnknown(folder: InodeId): boolean {
    if (lists.has(folder)) return false;
    const inode = metadata.inodes.get(folder);
    return inode?.kind === "folder" && inode.listed === null && context.nodeRows.ofFolder(folder)?.nodeId != null;
  }

  function next(): InodeId | undefined {
    if (!mayList(context)) return undefined;
    if (tries++ % COUNT_EVERY === 0) hasRoom();
    if (isAtLimit) return undefined;
    preferVisited();
    for (let folder = preferred.pop(); folder !== undefined; folder = preferred.pop()) {
      if (isUnknown(folder)) return folder;
    }
    const after = () => metadata.inodes.unlistedFolderAfter(upTo);
    for (let folder = after(); folder !== undefined; folder = after()) {
      upTo = folder;
      if (isUnknown(folder)) return folder;
    }
    return undefined;
  }

  function preferVisited(): void {
    const before = visitsUpTo;
    const visits = [...polled.visits].filter(([, { at }]) => before === undefined || at > before);
    visitsUpTo = runtime.elapsed();
    for (const [folder] of visits) {
      const below = metadata.entries.list(folder, 0, LOOKED_AT).map(({ inode }) => inode);
      preferred.push(...below.filter(isUnknown).reverse());
    }
  }

  /** The pause after a list is as long as the list took, so that a slow gateway is asked less. */
  async function list(folder: InodeId): Promise<void> {
    const begun = runtime.elapsed();
    await listAhead(context, folder, hasRoom);
    const hasFailed = metadata.inodes.get(folder)?.listed === null;
    await sleep(runtime, hasFailed ? FAILED_MS : minus(runtime.elapsed(), begun), stopped.signal);
    lists.delete(folder);
  }

  return {
    async run() {
      if (settings.namesAhead === undefined || settings.namesAhead === 0) return;
      while (!stopped.signal.aborted) {
        const folder = lists.size < AT_ONCE ? next() : undefined;
        if (folder !== undefined) lists.set(folder, list(folder));
        else if (lists.size > 0) await Promise.race(lists.values());
        else {
          upTo = 0;
          await sleep(runtime, REST_MS, stopped.signal);
        }
      }
      await Promise.all(lists.values());
    },
    stop: () => stopped.abort(),
    rest() {
      if (metadata.inodes.unlistedFolderAfter(0) === undefined) return "all";
      return (settings.namesAhead ?? 0) === 0 || isAtLimit || !client.features.isFull ? "visited" : "ahead";
    },
  };
}

/**
 * Prefetch of the whole tree: the names of the workspace are read in the background. So every folder is known to find,
 * git status and the creation of files, also while the gateway does not answer. Whole subtrees are read from one stream
 * each. Where the gateway has no streams, a few folders are listed at a time. The subfolders of folders that programs
 * looked into last come first, one by one. The journal keeps known folders up to date, so each folder is listed once.
 *
 * The lists are made by the flow that programs wait for, so a program that looks into a folder joins the list that is
 * under way. A crash loses nothing: a folder whose list did not end is still unknown.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { After, InodeId } from "../../metadata/ids.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { EngineStatus } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import { listAhead, mayList } from "./prefetch-folders.ts";

/** How many folders are listed at a time. */
const AT_ONCE = 3;
/** After this many folders of a stream, visits are looked at again. */
const LOOK_EVERY = 50;
/** After this many refusals in a row, the gateway counts as one without streams. */
const REFUSALS_MAX = 2;
/** After this time a stream rests, for at least as long. */
const STRETCH_MS = 50;
/** Content comes before names: while content is downloaded, a stream rests at least this long. */
const REST_WHILE_READING_MS = 950;
/** A program counts as reading for this long after a download: it may read small files one after another. */
const READING_MS = 100;
/** How many names of a visited folder are looked through for unknown subfolders. */
const LOOKED_AT = 200;
/** The pause until the next scan for folders that are new or could not be listed. */
const REST_MS = 30_000;
/** The pause after a list that failed: often the cause concerns all folders, such as a login that has ended. */
const FAILED_MS = 5_000;

interface TreePrefetch {
  /** Resolves after `stop`, when all lists have ended. Rejects when the rows cannot be read. */
  run(): Promise<void>;
  stop(): void;
  /** What happens to the names that are not known yet; see EngineStatus.names. */
  rest(): EngineStatus["names"]["rest"];
}

export function createTreePrefetch(context: Rows & LocalFiles & Remote & Host & Tree & Incoming): TreePrefetch {
  const { metadata, client, runtime, polled } = context;
  const { namesAhead } = context.settings;
  const stopped = new AbortController();
  /** The folder at which the scan by inode id has arrived. */
  let upTo: After<InodeId> = 0;
  /** Visits up to this time were looked at. Undefined: none was. */
  let visitsUpTo: ElapsedTime | undefined;
  /** Subfolders of visited folders, the next one last. */
  const preferred: InodeId[] = [];
  /** The lists that are under way. */
  const lists = new Map<InodeId, Promise<void>>();
  let isAtLimit = false;
  /** How many streams in a row the gateway refused. A single refusal may be for a folder that is gone there. */
  let refusals = 0;

  function hasRoom(): boolean {
    isAtLimit = namesAhead === undefined || metadata.entries.count() >= namesAhead;
    return !isAtLimit && !stopped.signal.aborted;
  }

  function isUnknown(folder: InodeId): boolean {
    if (lists.has(folder)) return false;
    const inode = metadata.inodes.get(folder);
    return inode?.kind === "folder" && inode.listed === null && context.nodeRows.ofFolder(folder)?.nodeId != null;
  }

  function isAllowed(): boolean {
    if (stopped.signal.aborted || !mayList(context)) return false;
    return hasRoom();
  }

  /** An unknown subfolder of a folder that was visited. */
  function nextPreferred(): InodeId | undefined {
    preferVisited();
    for (let folder = preferred.pop(); folder !== undefined; folder = preferred.pop()) {
      if (!isUnknown(folder)) continue;
      // A program is about to come to it, so it is not dropped before those that were never used.
      context.folderUse.note(folder);
      return folder;
    }
    return undefined;
  }

  /** Any other unknown folder. */
  function nextOfAll(): InodeId | undefined {
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

  /**
   * The topmost folder from which a stream would read nothing that is known already: `folder` or one above it. The
   * search goes up while all folders beside the one that it has reached are unknown too.
   */
  function topOf(folder: InodeId): InodeId {
    for (let top = folder; ; ) {
      const [entry] = metadata.entries.ofInode(top);
      if (entry === undefined || top === ROOT_INODE) return top;
      const beside = metadata.entries.list(entry.parent, 0, LOOKED_AT).map(({ inode }) => inode);
      const folders = beside.filter((inode) => metadata.inodes.get(inode)?.kind === "folder");
      if (!folders.every(isUnknown)) return top;
      top = entry.parent;
    }
  }

  /** The length of a stream's rest after a stretch of so many milliseconds. */
  function restAfter(took: number): number {
    const { downloads, downloadedAt } = context.fileState;
    const isJustOver = downloadedAt !== undefined && minus(runtime.elapsed(), downloadedAt) < READING_MS;
    return downloads > 0 || isJustOver ? Math.max(took, REST_WHILE_READING_MS) : took;
  }

  /**
   * Reads everything below `top`, and `folder`, which is in it, if there are no streams. Subfolders of folders that
   * programs look into meanwhile come in between.
   */
  async function stream(top: InodeId, folder: InodeId): Promise<void> {
    let begun = runtime.elapsed();
    let folders = 0;
    const mayGoOn = async (): Promise<boolean> => {
      if (!isAllowed()) return false;
      folders += 1;
      const took = minus(runtime.elapsed(), begun);
      if (took >= STRETCH_MS) await sleep(runtime, restAfter(took), stopped.signal);
      else if (folders % LOOK_EVERY !== 0) return true;
      while (isAllowed()) {
        const next = nextPreferred();
        if (next === undefined) break;
        await list(next);
      }
      begun = runtime.elapsed();
      return isAllowed();
    };
    const listing = await context.folders.prefetchTree(top, hasRoom, mayGoOn);
    refusals = listing.end === "refused" ? refusals + 1 : 0;
    if (listing.end === "refused") await list(folder);
    else if (listing.end === "broken") {
      const { at, error } = listing;
      context.log.debug({ err: error, folder: at }, "the stream of a tree ended early");
      await sleep(runtime, FAILED_MS, stopped.signal);
      // The next stream may break at the same place again. So each time one more folder becomes known.
      const next = [at, folder].find((one) => metadata.inodes.get(one)?.listed === null);
      if (next !== undefined && isAllowed()) await list(next);
    }
    lists.delete(top);
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
      if (namesAhead === undefined) return;
      while (!stopped.signal.aborted) {
        const mayStream = refusals < REFUSALS_MAX;
        const isFree = lists.size < (mayStream ? 1 : AT_ONCE) && isAllowed();
        const preferred = isFree ? nextPreferred() : undefined;
        const folder = isFree ? (preferred ?? nextOfAll()) : undefined;
        if (folder !== undefined && mayStream && preferred === undefined) {
          const top = topOf(folder);
          lists.set(top, stream(top, folder));
        } else if (folder !== undefined) lists.set(folder, list(folder));
        else if (lists.size > 0) await Promise.race(lists.values());
        else {
          upTo = 0;
          refusals = 0;
          await sleep(runtime, REST_MS, stopped.signal);
        }
      }
      await Promise.all(lists.values());
    },
    stop: () => stopped.abort(),
    rest() {
      if (metadata.inodes.unlistedFolderAfter(0) === undefined) return "all";
      return namesAhead === undefined || isAtLimit || !client.features.isFull ? "visited" : "ahead";
    },
  };
}

/**
 * Tells the kernel what it must no longer believe: names and inodes on a way each, for a name may wait
 * until a folder's requests are answered. What is told meanwhile gathers here, each thing once. Knows
 * messages and what they cost, not why anything changed.
 */
import type { Logger } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import type { ChangedName, KernelCache, KnownRows } from "../vfs/kernel-cache.ts";
import { CONNECTION_ERRNO, ERRNO } from "./errno.ts";
import { notifyExpireInodes, notifyIncEpoch, notifyInvalEntry, notifyInvalInode } from "./notifications.ts";

/** Sends messages, one after the other, from a thread of its own. Resolves to 0 or an errno. */
export type Notify = (way: "entry" | "inode", messages: Uint8Array) => Promise<number>;

export interface KernelCacheOfDevice extends KernelCache {
  /** There is a kernel, which speaks this minor version. Until then there is nobody to tell. */
  use(notify: Notify, kernelMinor: number): void;
  close(): void;
}

/** Messages in one go. */
const BATCH = 500;
/** Names that wait; when there are more, the kernel is to look all up again. */
const NAMES_MAX = 10_000;
/**
 * What changes at about the same moment goes together. It also lets callers run that were answered just
 * before: an answer the kernel has but not yet looked at would undo what it is told here.
 */
const GATHER_MS = 3;
/** Linux 6.16. */
const MINOR_OF_EPOCHS = 44;
/** Nothing is wrong: it does not know it, the connection is over, we are. */
const USUAL: ReadonlySet<number> = new Set([
  ERRNO.ENOENT,
  ERRNO.EBADF,
  CONNECTION_ERRNO.ENODEV,
  CONNECTION_ERRNO.ENOTCONN,
  CONNECTION_ERRNO.ECONNABORTED,
  CONNECTION_ERRNO.ECANCELED,
]);

/** What goes one way: asked for more as soon as the thread has done what it was given. */
interface Way {
  wake(): void;
}

export function createKernelCache(clock: Pick<Clock, "setTimer">, log: Logger): KernelCacheOfDevice {
  let notify: Notify | undefined;
  let hasEpochs = false;
  const names = new Map<string, ChangedName>();
  const inodes = new Set<number>();
  const listings = new Set<number>();
  let isEpochOver = false;
  /** Where the ways through everything that is known have come to; undefined: not on one. */
  let known: KnownRows | undefined;
  let nameAt: number | undefined;
  let lineageAt: number | undefined;

  function takeNames(): Uint8Array | undefined {
    if (isEpochOver) {
      isEpochOver = false;
      return joined(notifyIncEpoch());
    }
    const parts: Uint8Array[] = [];
    for (const [key, { parent, name, isGone }] of names) {
      if (parts.length >= 2 * BATCH) break;
      names.delete(key);
      parts.push(...notifyInvalEntry(parent, name, !isGone));
    }
    if (parts.length === 0 && nameAt !== undefined) {
      const rows = known?.names(nameAt, BATCH) ?? [];
      nameAt = rows.at(-1)?.id;
      for (const { parent, name } of rows) parts.push(...notifyInvalEntry(parent, name, true));
    }
    return parts.length === 0 ? undefined : joined(parts);
  }

  function takeInodes(): Uint8Array | undefined {
    const lineages: number[] = [];
    const parts: Uint8Array[] = [];
    for (const lineage of listings) {
      if (parts.length >= BATCH) break;
      listings.delete(lineage);
      inodes.delete(lineage);
      parts.push(...notifyInvalInode(lineage, 0, 0));
    }
    for (const lineage of inodes) {
      if (lineages.length >= BATCH) break;
      inodes.delete(lineage);
      lineages.push(lineage);
    }
    if (parts.length + lineages.length === 0 && lineageAt !== undefined) {
      lineages.push(...(known?.lineages(lineageAt, BATCH) ?? []));
      lineageAt = lineages.at(-1);
    }
    if (parts.length + lineages.length === 0) return undefined;
    return joined([...parts, notifyExpireInodes(lineages)]);
  }

  function createWay(way: "entry" | "inode", take: () => Uint8Array | undefined): Way {
    let isGoing = false;

    async function go(): Promise<void> {
      try {
        for (;;) {
          const messages = notify === undefined ? undefined : take();
          if (notify === undefined || messages === undefined) return;
          const errno = await notify(way, messages);
          if (errno !== 0 && !USUAL.has(errno)) log.warn({ way, errno }, "the kernel was not told of a change");
        }
      } catch (error) {
        log.error({ err: error, way }, "the kernel could not be told of changes");
      } finally {
        isGoing = false;
      }
    }

    return {
      wake() {
        if (isGoing || notify === undefined) return;
        isGoing = true;
        clock.setTimer(GATHER_MS, () => void go());
      },
    };
  }

  const nameWay = createWay("entry", takeNames);
  const inodeWay = createWay("inode", takeInodes);

  function everyName(rows: KnownRows): void {
    names.clear();
    if (hasEpochs) isEpochOver = true;
    else [known, nameAt] = [rows, 0];
    nameWay.wake();
  }

  return {
    get forgetsAbsent() {
      return hasEpochs;
    },
    tell(news) {
      if (notify === undefined) return;
      for (const one of news.names) names.set(`${one.parent}/${one.name}`, one);
      for (const lineage of news.listings) listings.add(lineage);
      for (const lineage of news.inodes) inodes.add(lineage);
      if (names.size > NAMES_MAX && hasEpochs) {
        names.clear();
        isEpochOver = true;
      }
      nameWay.wake();
      inodeWay.wake();
    },
    everything(rows) {
      if (notify === undefined) return;
      known = rows;
      lineageAt = 0;
      everyName(rows);
      inodeWay.wake();
    },
    use(send, kernelMinor) {
      notify = send;
      hasEpochs = kernelMinor >= MINOR_OF_EPOCHS;
    },
    close() {
      notify = undefined;
      hasEpochs = false;
      known = undefined;
      for (const kept of [names, listings, inodes]) kept.clear();
    },
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

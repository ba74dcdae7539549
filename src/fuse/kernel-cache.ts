/**
 * Sends invalidations to the kernel. Names and inodes have a queue each, because the invalidation of a name may have to
 * wait until the requests of its folder are answered. Changes that come meanwhile gather here, each once. This file
 * knows the messages and their cost, not the reason of a change.
 */

import type { After, ChangedName, EntryId, KernelCache, KernelNodeId, KnownRows } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep, type Timer } from "../lib/runtime.ts";
import { CONNECTION_ERRNO, ERRNO } from "./errno.ts";
import { ROOT_NODE } from "./flags.ts";
import { notifyExpireInodes, notifyInvalEntry, notifyInvalInode, notifyPrune } from "./notifications.ts";

/** Sends messages one after the other from a thread of its own. Resolves to 0 or an errno. */
export type Notify = (way: "entry" | "inode", messages: Uint8Array) => Promise<number>;

interface KernelCacheOfDevice extends KernelCache {
  /**
   * Sets the connection to the kernel and its minor version. Earlier invalidations are sent now: the kernel may know
   * names and attributes from an earlier daemon.
   */
  use(notify: Notify, kernelMinor: number): void;
  /** Must be called when the kernel has the root's attributes. Its invalidations wait for it: see session.ts. */
  rootKnown(): void;
  /** Stops sending until `use` is called again. Meanwhile invalidations wait, and the validity of names is short. */
  hush(): void;
  close(): void;
}

/** The largest number of messages that are sent together. */
const BATCH = 500;
/**
 * The largest number of names and inodes that wait for an invalidation, or for their second one. With more (a program
 * holds a folder while a tree is rewritten elsewhere), everything in the rows is invalidated instead. A removed name is
 * in no row: the kernel asks for it again when its validity ends (LIVE_NAME_MS), as after the death of a daemon.
 * Negative entries are in no row either and are valid for longer, so none of them is left out, nor counted here
 * (engine/core/invalidate.ts limits their number).
 */
const WAITING_MAX = 50_000;
/**
 * Changes gather this long before they are sent, in milliseconds. The wait has a second purpose: a caller that was
 * answered just before must run first. If it took in its answer after the invalidation, the old answer would be kept.
 */
const GATHER_MS = 3;
/**
 * A caller may be kept from running for longer than GATHER_MS. A thread that checks a name has no lock on its folder,
 * and may trust an old answer after the name was invalidated. So such names are invalidated once more, after this time
 * or up to twice as long.
 */
const AGAIN_MS = 1_000;
/** Linux 6.2, the first that can expire a name. Earlier kernels also drop all below it, and unmount mounts there. */
const MINOR_OF_EXPIRY = 38;
/** Linux 6.18, the first that forgets unused inodes when it is asked to. */
const MINOR_OF_PRUNE = 45;
/** Errors that are normal: the kernel does not know the name or inode, the connection is over, or this is closed. */
const USUAL: ReadonlySet<number> = new Set([
  ERRNO.ENOENT,
  ERRNO.EBADF,
  CONNECTION_ERRNO.ENODEV,
  CONNECTION_ERRNO.ENOTCONN,
  CONNECTION_ERRNO.ECONNABORTED,
  CONNECTION_ERRNO.ECANCELED,
]);

/** A queue. It asks for more messages as soon as its thread has sent the last ones. */
interface Way {
  wake(): void;
}

export function createKernelCache(clock: Pick<Clock, "setTimer">, log: Logger): KernelCacheOfDevice {
  let notify: Notify | undefined;
  let isClosed = false;
  let expiresNames = false;
  let prunes = false;
  let rootIsKnown = false;
  const names = new Map<string, ChangedName>();
  const negative = new Map<string, ChangedName>();
  const inodes = new Set<KernelNodeId>();
  const listings = new Set<KernelNodeId>();
  /**
   * `lately`: names invalidated since the last look, which get a second invalidation. `ripe`: those whose second one is
   * due.
   */
  const lately = new Map<string, ChangedName>();
  let ripe: ChangedName[] = [];
  let againTimer: Timer | undefined;
  /** The progress of the passes through all known rows. Undefined: there is no pass. */
  let known: KnownRows | undefined;
  let nameAt: After<EntryId> | undefined;
  let kernelNodeIdAt: After<KernelNodeId> | undefined;
  /** The number of passes through all names that follow this one. */
  let ways = 0;

  function takeNames(): Uint8Array | undefined {
    const parts: Uint8Array[] = [];
    for (const [key, one] of names) {
      if (parts.length >= 2 * BATCH) break;
      names.delete(key);
      // Asked now, because a program may have made the name again since the change was told. An invalidation of a name
      // as gone would disturb programs that work in it.
      const isGone = one.isGone();
      parts.push(...entry(one, isGone));
      if (!isGone && expiresNames) lately.set(key, one);
    }
    for (const [key, one] of negative) {
      if (parts.length >= 2 * BATCH) break;
      negative.delete(key);
      parts.push(...entry(one, one.isGone()));
    }
    for (const one of ripe.splice(0, parts.length === 0 ? BATCH : 0)) parts.push(...entry(one, false));
    if (parts.length === 0 && nameAt !== undefined && expiresNames) {
      const rows = known?.names(nameAt, BATCH) ?? [];
      nameAt = rows.at(-1)?.id;
      for (const row of rows) parts.push(...entry(row, false));
    }
    if (lately.size > 0 || (ways > 0 && nameAt === undefined)) againTimer ??= clock.setTimer(AGAIN_MS, again);
    return parts.length === 0 ? undefined : joined(parts);
  }

  function entry({ parent, name }: Pick<ChangedName, "parent" | "name">, isGone: boolean): readonly Uint8Array[] {
    // If names cannot be expired, the kernel is told to keep none for long.
    return isGone || expiresNames ? notifyInvalEntry(parent, name, !isGone) : [];
  }

  function again(): void {
    againTimer = undefined;
    ripe = [...ripe, ...lately.values()];
    lately.clear();
    if (ways > 0 && nameAt === undefined) {
      ways -= 1;
      nameAt = 0;
    }
    nameWay.wake();
  }

  function takeInodes(): Uint8Array | undefined {
    const kernelNodeIds: KernelNodeId[] = [];
    const parts: Uint8Array[] = [];
    for (const kernelNodeId of listings) {
      if (parts.length >= BATCH) break;
      if (mustWait(kernelNodeId)) continue;
      listings.delete(kernelNodeId);
      inodes.delete(kernelNodeId);
      parts.push(...notifyInvalInode(kernelNodeId, 0, 0));
    }
    for (const kernelNodeId of inodes) {
      if (kernelNodeIds.length >= BATCH) break;
      if (mustWait(kernelNodeId)) continue;
      inodes.delete(kernelNodeId);
      kernelNodeIds.push(kernelNodeId);
    }
    if (parts.length + kernelNodeIds.length === 0 && kernelNodeIdAt !== undefined) {
      kernelNodeIds.push(...(known?.kernelNodeIds(kernelNodeIdAt, BATCH) ?? []));
      kernelNodeIdAt = kernelNodeIds.at(-1);
    }
    if (parts.length + kernelNodeIds.length === 0) return undefined;
    return joined([...parts, notifyExpireInodes(kernelNodeIds)]);
  }

  function mustWait(kernelNodeId: KernelNodeId): boolean {
    return kernelNodeId === ROOT_NODE && !rootIsKnown;
  }

  function createWay(way: "entry" | "inode", take: () => Uint8Array | undefined): Way {
    let isGoing = false;

    async function go(): Promise<void> {
      try {
        const messages = notify === undefined ? undefined : take();
        if (notify === undefined || messages === undefined) {
          isGoing = false;
          return;
        }
        const errno = await notify(way, messages);
        if (errno !== 0 && !USUAL.has(errno)) log.warn({ way, errno }, "the kernel was not told of a change");
      } catch (error) {
        log.error({ err: error, way }, "the kernel could not be told of changes");
        isGoing = false;
        return;
      }
      // Changes that come meanwhile gather too.
      clock.setTimer(GATHER_MS, () => void go());
    }

    return {
      wake() {
        if (isGoing || notify === undefined) return;
        isGoing = true;
        clock.setTimer(GATHER_MS, () => void go());
      },
    };
  }

  function tellAll(rows: KnownRows): void {
    // The root may have to wait (see mustWait), so it is queued by itself and the pass begins behind it.
    inodes.add(ROOT_NODE);
    [known, nameAt, ways, kernelNodeIdAt] = [rows, 0, 1, ROOT_NODE];
  }

  function hush(): void {
    notify = undefined;
    expiresNames = false;
    prunes = false;
  }

  const nameWay = createWay("entry", takeNames);
  const inodeWay = createWay("inode", takeInodes);

  return {
    get expiresNames() {
      return expiresNames;
    },
    tell(news, rows) {
      if (isClosed) return;
      for (const one of news.names) {
        (one.wasThere ? names : negative).set(`${one.parent}/${one.name}`, one);
      }
      for (const kernelNodeId of news.listings) listings.add(kernelNodeId);
      for (const kernelNodeId of news.inodes) inodes.add(kernelNodeId);
      if (names.size + lately.size + ripe.length + inodes.size > WAITING_MAX) {
        for (const waiting of [names, lately, inodes]) waiting.clear();
        ripe = [];
        tellAll(rows);
      }
      nameWay.wake();
      inodeWay.wake();
    },
    everything(rows) {
      if (isClosed) return;
      tellAll(rows);
      nameWay.wake();
      inodeWay.wake();
    },
    async unknownToKernel(kernelNodeIds) {
      const send = notify;
      if (send === undefined) return new Set();
      // A needless invalidation of attributes does no harm. It fails for an inode that the kernel does not know. One
      // message for each, because several messages together get only one answer. If this is closed or the connection is
      // gone meanwhile, the errno is another one.
      const answers = await Promise.all(
        kernelNodeIds.map((kernelNodeId) => send("inode", notifyExpireInodes([kernelNodeId]))),
      );
      return new Set(kernelNodeIds.filter((_, index) => answers[index] === ERRNO.ENOENT));
    },
    async prune(kernelNodeIds) {
      if (prunes && kernelNodeIds.length > 0) await notify?.("inode", joined(notifyPrune(kernelNodeIds)));
    },
    async expireNow(parent, name) {
      // Every invalidation waits this long: callers that were answered before have run by then.
      await sleep(clock, GATHER_MS);
      if (expiresNames) await notify?.("entry", joined(entry({ parent, name }, false)));
    },
    use(send, kernelMinor) {
      notify = send;
      expiresNames = kernelMinor >= MINOR_OF_EXPIRY;
      prunes = kernelMinor >= MINOR_OF_PRUNE;
      nameWay.wake();
      inodeWay.wake();
    },
    rootKnown() {
      rootIsKnown = true;
      inodeWay.wake();
    },
    hush,
    close() {
      isClosed = true;
      hush();
      known = undefined;
      againTimer?.cancel();
      ripe = [];
      for (const kept of [names, negative, lately, listings, inodes]) kept.clear();
    },
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

/**
 * Tells the kernel what it must no longer believe: names and inodes on a way each, for a name may wait
 * until a folder's requests are answered. What is told meanwhile gathers here, each thing once. Knows
 * messages and what they cost, not why anything changed.
 */

import type { After, ChangedName, EntryId, KernelCache, KernelNodeId, KnownRows } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep, type Timer } from "../lib/runtime.ts";
import { CONNECTION_ERRNO, ERRNO } from "./errno.ts";
import { notifyExpireInodes, notifyInvalEntry, notifyInvalInode } from "./notifications.ts";

/** Sends messages, one after the other, from a thread of its own. Resolves to 0 or an errno. */
export type Notify = (way: "entry" | "inode", messages: Uint8Array) => Promise<number>;

export interface KernelCacheOfDevice extends KernelCache {
  /**
   * There is a kernel, which speaks this minor version. What was told before is told to it now: it may be one
   * that knows of us by a daemon before this one.
   */
  use(notify: Notify, kernelMinor: number): void;
  /** Until it is used again nothing is told: what is to be told waits, and the kernel is to keep no name for long. */
  hush(): void;
  close(): void;
}

/** Messages in one go. */
const BATCH = 500;
/**
 * Names and inodes that wait, to be told or to be told once more. When there are more (somebody holds a folder, and
 * far away a tree is rewritten), the kernel is told of all there is, by the rows. A name that went is none of that:
 * the kernel asks for it again when its time is over, as after the death of a daemon (LIVE_NAME_MS). Names it holds
 * to be absent are in no row and held for longer: none of them is left out, nor counted (engine/core/invalidate.ts has a bound).
 */
const WAITING_MAX = 50_000;
/**
 * What changes at about the same moment goes together. It also lets callers run that were answered just
 * before: an answer the kernel has but not yet looked at would undo what it is told here.
 */
const GATHER_MS = 3;
/**
 * A caller may not be run for longer than that: who asks whether a name still holds has no lock on its folder,
 * and may trust an old answer after the name was made to be asked for again. So such names are told once more,
 * after this or up to twice as long.
 */
const AGAIN_MS = 1_000;
/** Linux 6.2. Before, all that is below a name is taken down with it, other mounts too. */
const MINOR_OF_EXPIRY = 38;
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
  let isClosed = false;
  let expiresNames = false;
  const names = new Map<string, ChangedName>();
  const absent = new Map<string, ChangedName>();
  const inodes = new Set<KernelNodeId>();
  const listings = new Set<KernelNodeId>();
  /** Told, to be told once more: since the last look, and those whose turn is at the next one. */
  const lately = new Map<string, ChangedName>();
  let ripe: ChangedName[] = [];
  let againTimer: Timer | undefined;
  /** Where the ways through everything that is known have come to; undefined: not on one. */
  let known: KnownRows | undefined;
  let nameAt: After<EntryId> | undefined;
  let kernelNodeIdAt: After<KernelNodeId> | undefined;
  /** Ways through all names still to go after this one. */
  let ways = 0;

  function takeNames(): Uint8Array | undefined {
    const parts: Uint8Array[] = [];
    for (const [key, one] of names) {
      if (parts.length >= 2 * BATCH) break;
      names.delete(key);
      // Gone when it was told, and meanwhile somebody's again: who works in it is not to be disturbed.
      const isGone = one.isGone();
      parts.push(...entry(one, isGone));
      if (!isGone && expiresNames) lately.set(key, one);
    }
    for (const [key, one] of absent) {
      if (parts.length >= 2 * BATCH) break;
      absent.delete(key);
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
    // Where names cannot be expired the kernel keeps none for long.
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
    const lineages: KernelNodeId[] = [];
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
    if (parts.length + lineages.length === 0 && kernelNodeIdAt !== undefined) {
      lineages.push(...(known?.lineages(kernelNodeIdAt, BATCH) ?? []));
      kernelNodeIdAt = lineages.at(-1);
    }
    if (parts.length + lineages.length === 0) return undefined;
    return joined([...parts, notifyExpireInodes(lineages)]);
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
      // What came meanwhile gathers too.
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
    [known, nameAt, ways, kernelNodeIdAt] = [rows, 0, 1, 0];
  }

  function hush(): void {
    notify = undefined;
    expiresNames = false;
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
        (one.wasThere ? names : absent).set(`${one.parent}/${one.name}`, one);
      }
      for (const lineage of news.listings) listings.add(lineage);
      for (const lineage of news.inodes) inodes.add(lineage);
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
    async unknownToKernel(lineages) {
      const send = notify;
      if (send === undefined) return new Set();
      // To ask for attributes again harms nobody, and fails for what is not there. One word each: of several that go
      // together only one answer comes. Closed meanwhile, or with the connection gone, the answer is another one.
      const answers = await Promise.all(lineages.map((lineage) => send("inode", notifyExpireInodes([lineage]))));
      return new Set(lineages.filter((_, index) => answers[index] === ERRNO.ENOENT));
    },
    async expireNow(parent, name) {
      // As of all that is told: who was answered before has run by then.
      await sleep(clock, GATHER_MS);
      if (expiresNames) await notify?.("entry", joined(entry({ parent, name }, false)));
    },
    use(send, kernelMinor) {
      notify = send;
      expiresNames = kernelMinor >= MINOR_OF_EXPIRY;
      nameWay.wake();
      inodeWay.wake();
    },
    hush,
    close() {
      isClosed = true;
      hush();
      known = undefined;
      againTimer?.cancel();
      ripe = [];
      for (const kept of [names, absent, lately, listings, inodes]) kept.clear();
    },
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

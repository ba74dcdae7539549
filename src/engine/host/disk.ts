/**
 * What the disk of the state dir is like right now, for those who are about to change something:
 * full (the reserve is given up, so that rows still work), read-only, or gone. Learns by looking, and
 * by commits that fail. It must not know who writes what; space.ts makes room and waits.
 */
import type { DiskLook, StateDisk } from "../../content/state-disk.ts";
import type { Logger } from "../../lib/log.ts";
import { hasCode } from "../../lib/system-error.ts";
import { FsError, type FsErrorCode } from "../api/index.ts";

/** damaged: the database is not what was written to it. */
export type DiskTrouble = "full" | "readOnly" | "gone" | "damaged";

export interface DiskLimits {
  /** So much of the disk is left free by the cache. */
  readonly keepFree: number;
  /** So many bytes may wait to be sent; absent: as many as the disk takes. */
  readonly unsentLimit?: number;
}

export interface Disk extends DiskLimits {
  readonly trouble: DiskTrouble | undefined;
  /** What the trouble is, in one line; undefined when there is none. */
  readonly reason: string | undefined;
  readonly total: number;
  readonly available: number;
  /** Bytes the cache has to set free, for what it leaves free and, on a full disk, for the reserve to be taken again. */
  readonly lacking: number;
  /** Bytes kept back now. */
  readonly reserve: number;
  /** Rows can be committed, as far as is known: without that nothing may be sent. */
  readonly hasRows: boolean;
  /** Bytes that came from the gateway may stay here. */
  readonly mayKeep: boolean;
  /** Looks at the disk. */
  look(): void;
  /** Only whether it is still the one that was locked: what each close asks. */
  lookForFolder(): void;
  /** Takes the reserve again, if there is room for it. */
  restore(): Promise<void>;
  /** A commit failed. Undefined: space was set free, it may be tried again. Else what a program gets to hear. */
  commitFailed(error: unknown): FsError | undefined;
  commitWorked(): void;
  /** The database said so: nothing is changed or sent any more, until the next start has repaired it. */
  isDamaged(error: unknown): void;
  /** So many bytes from the gateway were put on it since the last look. */
  took(bytes: number): void;
  /** The disk refused something else than a commit: what does that say of it? */
  refused(error: unknown): void;
  /** Throws when nothing at all may be changed. */
  requireChangeable(): void;
}

/** Who looks again, and makes room: space.ts. */
export interface Space {
  start(): void;
  stop(): void;
  /** Looks, and does what can be done about what is found. */
  look(): Promise<void>;
}

const CODES: Readonly<Record<DiskTrouble, FsErrorCode>> = {
  full: "ENOSPC",
  readOnly: "EROFS",
  gone: "EIO",
  damaged: "EIO",
};

export function createDisk(needs: {
  /** Absent: nobody looks, and it is always well. */
  readonly stateDisk: StateDisk | undefined;
  readonly limits: DiskLimits | undefined;
  readonly folder: string;
  readonly log: Logger;
  readonly onChange: () => void;
}): Disk {
  const { stateDisk, limits = { keepFree: 0 }, folder, log, onChange } = needs;
  let seen: DiskLook = { problem: undefined, total: 0, available: Number.POSITIVE_INFINITY };
  let trouble: DiskTrouble | undefined;
  let hasRows = true;
  let mayKeep = true;
  /** What is kept back is being taken again: it may be gone from the disk, and not be held yet. */
  let isTaking = false;
  /** It was refused though the disk said that there is room, as by a quota of the user: how much has to go only trying tells. */
  let isRefused = false;

  const reasons: Readonly<Record<DiskTrouble, string>> = {
    full: `the disk of the state dir ${folder} is full: nothing new is taken, what is here is uploaded`,
    readOnly: `the disk of the state dir ${folder} is read-only: nothing can be changed or sent`,
    gone: `the state dir ${folder} was removed or moved away: nothing can be kept; unmount, and mount again`,
    damaged: `the database in the state dir ${folder} is damaged: nothing can be changed or sent; unmount, and mount again, which repairs it`,
  };

  function judge(): void {
    // Nothing comes back under a database that has lost its name, or is no longer one.
    const isForGood = trouble === "gone" || trouble === "damaged";
    const found = isForGood ? trouble : (seen.problem ?? (isFull() ? "full" : undefined));
    mayKeep = found === undefined && hasRoomToKeep();
    if (found === trouble) return;
    trouble = found;
    if (trouble === undefined) log.info({ available: seen.available }, "the disk of the state dir can be used again");
    else log.error({ available: seen.available }, reasons[trouble]);
    onChange();
  }

  /** Half: between the two the cache makes room, instead of coming and going. */
  function hasRoomToKeep(): boolean {
    return seen.available >= limits.keepFree / 2;
  }

  function isFull(): boolean {
    return stateDisk !== undefined && stateDisk.reserve.held() < stateDisk.reserve.size;
  }

  function look(): void {
    if (stateDisk === undefined) return;
    try {
      seen = stateDisk.look();
    } catch (error) {
      // What cannot even be looked at says nothing of itself; commits and calls on files will.
      log.warn({ err: error }, "the disk of the state dir cannot be looked at");
      return;
    }
    judge();
  }

  function isThere(): boolean {
    try {
      return stateDisk === undefined || stateDisk.isThere();
    } catch {
      return false;
    }
  }

  return {
    ...limits,
    get trouble() {
      return trouble;
    },
    get reason() {
      if (trouble !== undefined) return reasons[trouble];
      return hasRows ? undefined : `the database in the state dir ${folder} takes no changes`;
    },
    get total() {
      return seen.total;
    },
    get available() {
      return seen.available;
    },
    get lacking() {
      const { available } = seen;
      const leftFree = Math.max(0, limits.keepFree - available);
      if (trouble !== "full" || stateDisk === undefined || isTaking) return leftFree;
      const { room } = stateDisk.reserve;
      return Math.max(leftFree, isRefused ? room : room - available);
    },
    get reserve() {
      return stateDisk?.reserve.held() ?? 0;
    },
    get hasRows() {
      return hasRows;
    },
    get mayKeep() {
      return mayKeep;
    },
    look,
    lookForFolder() {
      // What is the matter with it, a whole look tells.
      if (!isThere()) look();
    },
    async restore() {
      if (stateDisk === undefined || trouble === "gone") return;
      isTaking = true;
      try {
        const isHeld = await stateDisk.reserve.restore();
        isRefused = !isHeld && seen.available >= stateDisk.reserve.room;
      } finally {
        isTaking = false;
      }
      look();
    },
    commitFailed(error) {
      const isFreed = stateDisk?.reserve.giveUpNow() ?? false;
      look();
      if (isFreed) return undefined;
      if (hasRows) log.error({ err: error }, "the database takes no changes: nothing is sent until it does");
      hasRows = false;
      const isFullNow = error instanceof Error && "code" in error && error.code === "SQLITE_FULL";
      const code = trouble !== undefined ? CODES[trouble] : isFullNow ? "ENOSPC" : "EIO";
      return new FsError(code, "the database takes no changes", { cause: error });
    },
    commitWorked() {
      if (hasRows || trouble === "damaged") return;
      hasRows = true;
      log.info({}, "the database takes changes again");
      onChange();
    },
    isDamaged(error) {
      if (trouble === "damaged") return;
      trouble = "damaged";
      hasRows = false;
      mayKeep = false;
      log.error({ err: error }, reasons.damaged);
      onChange();
    },
    took(bytes) {
      if (stateDisk === undefined) return;
      seen = { ...seen, available: seen.available - bytes };
      mayKeep = mayKeep && hasRoomToKeep();
    },
    refused(error) {
      if (hasCode(error, "EROFS", "ENOENT")) look();
      if (hasCode(error, "ENOSPC", "EDQUOT")) mayKeep = false;
    },
    requireChangeable() {
      if (trouble !== undefined && trouble !== "full") throw new FsError(CODES[trouble], reasons[trouble]);
    },
  };
}

/**
 * State of the disk of the state dir, for flows that are about to change something: full (the reserve is given up, so
 * that rows still work), read-only, gone, or with a damaged database. Looks at the disk and commits that fail find it
 * out. Must not know of the flows that write; files/space.ts makes room and waits.
 */
import type { DiskLook, StateDisk } from "../../content/state-disk.ts";
import type { Logger } from "../../lib/log.ts";
import { hasCode } from "../../lib/system-error.ts";
import { FsError, type FsErrorCode } from "../api/index.ts";

/** damaged: the database does not hold the rows that were written to it. */
type DiskTrouble = "full" | "readOnly" | "gone" | "damaged";

/** Limits in bytes. */
export interface DiskLimits {
  /** Bytes of the disk that the cache leaves free. */
  readonly keepFree: number;
  /** Bytes that may wait to be sent; absent: no limit. */
  readonly unsentLimit?: number;
}

/** Sizes in bytes. */
export interface Disk extends DiskLimits {
  readonly trouble: DiskTrouble | undefined;
  /** The trouble in one line; undefined when there is none. */
  readonly reason: string | undefined;
  readonly total: number;
  readonly available: number;
  /** Bytes that the cache has to give back: up to `keepFree`, and on a full disk enough to take the reserve again. */
  readonly lacking: number;
  /** Size of the reserve as it is now. */
  readonly reserve: number;
  /** Rows can be committed, as far as is known. If not, nothing may be sent. */
  readonly hasRows: boolean;
  /** Bytes fetched from the gateway may be kept on the disk. */
  readonly mayKeep: boolean;
  /** Looks at the disk. */
  look(): void;
  /** Checks only that the state dir is still the one that was locked. Each close asks this. */
  lookForFolder(): void;
  /** Takes the reserve again, if there is room for it. Rejects with a system error, not for a full disk. */
  restore(): Promise<void>;
  /** A commit failed. Undefined: space was freed, try again. Else the error for the program: ENOSPC, EROFS or EIO. */
  commitFailed(error: unknown): FsError | undefined;
  /** A commit worked again. */
  commitWorked(): void;
  /** The database reported damage: nothing is changed or sent any more, until the next start has repaired it. */
  isDamaged(error: unknown): void;
  /** Bytes from the gateway were written to the disk since the last look: `available` falls by so many. */
  took(bytes: number): void;
  /** The disk refused something other than a commit. The error may tell the state of the disk. */
  refused(error: unknown): void;
  /** Throws EROFS or EIO when nothing may be changed. A full disk does not count: removals are still possible. */
  requireChangeable(): void;
}

/** Looks at the disk from time to time and makes room; files/space.ts implements it. */
export interface Space {
  start(): void;
  stop(): void;
  /**
   * Looks at the disk. Makes room if it lacks some, and tries a commit if the rows took no changes. Rejects with the
   * error of the disk or the rows when cached files or the reserve cannot be changed.
   */
  look(): Promise<void>;
  /** True: `require` has to be asked before something is added. Nearly never so. */
  isTight(): boolean;
  /**
   * Call it before bytes or a name are added. Rejects with ENOSPC or EDQUOT when there is no room even after another
   * look, with EROFS or EIO when the disk takes no changes. `growth`: bytes by which the files of the workspace grow,
   * as an upper bound and exactly.
   */
  require(bytes?: number, growth?: { readonly most: number; readonly exactly: () => Promise<number> }): Promise<void>;
  /** Runs `work`, again and again while the disk refuses it as full and room can be made. Rejects as `work` does. */
  despiteFull<T>(bytes: number, work: () => Promise<T>): Promise<T>;
}

const CODES: Readonly<Record<DiskTrouble, FsErrorCode>> = {
  full: "ENOSPC",
  readOnly: "EROFS",
  gone: "EIO",
  damaged: "EIO",
};

export function createDisk(needs: {
  /** Undefined: the disk is not watched and counts as usable. */
  readonly stateDisk: StateDisk | undefined;
  readonly limits: DiskLimits | undefined;
  readonly folder: string;
  readonly log: Logger;
  readonly onChange: () => void;
}): Disk {
  const { stateDisk, limits = { keepFree: 0 }, folder, log, onChange } = needs;
  let lastLook: DiskLook = { problem: undefined, total: 0, available: Number.POSITIVE_INFINITY };
  let trouble: DiskTrouble | undefined;
  let hasRows = true;
  let mayKeep = true;
  /**
   * The reserve is being taken again: the disk may lack its room already while `reservedBytes` does not count it yet.
   */
  let isTaking = false;
  /**
   * The reserve was refused although the disk reported enough room. A quota of the user does that. Only further tries
   * show how much must be freed.
   */
  let isRefused = false;

  const reasons: Readonly<Record<DiskTrouble, string>> = {
    full: `the disk of the state dir ${folder} is full: nothing new is taken, unsent changes are uploaded`,
    readOnly: `the disk of the state dir ${folder} is read-only: nothing can be changed or sent`,
    gone: `the state dir ${folder} was removed or moved away: nothing can be kept; unmount, and mount again`,
    damaged: `the database in the state dir ${folder} is damaged: nothing can be changed or sent; unmount, and mount again, which repairs it`,
  };

  function judge(): void {
    // These two states do not end while the daemon runs: the database has lost its name, or is damaged.
    const isForGood = trouble === "gone" || trouble === "damaged";
    const found = isForGood ? trouble : (lastLook.problem ?? (isFull() ? "full" : undefined));
    mayKeep = found === undefined && hasRoomToKeep();
    if (found === trouble) return;
    trouble = found;
    if (trouble === undefined)
      log.info({ available: lastLook.available }, "the disk of the state dir can be used again");
    else log.error({ available: lastLook.available }, reasons[trouble]);
    onChange();
  }

  /**
   * Keeping ends at half of `keepFree`. Between the half and the whole, the cache makes room, so that keeping does not
   * begin and end all the time.
   */
  function hasRoomToKeep(): boolean {
    return lastLook.available >= limits.keepFree / 2;
  }

  function isFull(): boolean {
    return stateDisk !== undefined && stateDisk.reserve.reservedBytes() < stateDisk.reserve.size;
  }

  function look(): void {
    if (stateDisk === undefined) return;
    try {
      lastLook = stateDisk.look();
    } catch (error) {
      // A failed look says nothing about the disk's state. Commits and calls on files will tell it.
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
      return lastLook.total;
    },
    get available() {
      return lastLook.available;
    },
    get lacking() {
      const { available } = lastLook;
      const leftFree = Math.max(0, limits.keepFree - available);
      if (trouble !== "full" || stateDisk === undefined || isTaking) return leftFree;
      const { room } = stateDisk.reserve;
      return Math.max(leftFree, isRefused ? room : room - available);
    },
    get reserve() {
      return stateDisk?.reserve.reservedBytes() ?? 0;
    },
    get hasRows() {
      return hasRows;
    },
    get mayKeep() {
      return mayKeep;
    },
    look,
    lookForFolder() {
      // A full look finds out the trouble.
      if (!isThere()) look();
    },
    async restore() {
      if (stateDisk === undefined || trouble === "gone") return;
      isTaking = true;
      try {
        const isWhole = await stateDisk.reserve.restore();
        isRefused = !isWhole && lastLook.available >= stateDisk.reserve.room;
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
      lastLook = { ...lastLook, available: lastLook.available - bytes };
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

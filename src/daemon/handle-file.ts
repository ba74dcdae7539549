/**
 * The handle table and the other state of a mount that outlives its daemon, beside the rows: one plain file in the
 * state dir, written in place. A write that returned survives kill -9. The file is never synced, because a mount does
 * not survive power loss. It records which mount it belongs to, what INIT agreed on, which requests were in flight, and
 * the open handles: a slot of fixed size for each. It stores numbers and does not know what they mean.
 *
 * Programs get no error when the file cannot be written: handles that are missing in it are just not taken over.
 */
import fs from "node:fs";
import { z } from "zod";
import { backingId, type HandleTable, handleId, type KeptHandle } from "../engine/api/index.ts";
import type { Connection } from "../fuse/init.ts";
import type { RequestsInHand } from "../fuse/requests-in-hand.ts";
import { type WallTime, wallTime } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { hasCode } from "../lib/system-error.ts";
import { kernelNodeId } from "../metadata/ids.ts";
import { type ProcessIdentity, processIdentity } from "./processes.ts";

const HEAD_SIZE = 4096;
/** Two lists of numbers. The length stands before each list. */
const LIST_SIZE = 64 * 1024;
const LISTS = { inFlight: HEAD_SIZE, suspects: HEAD_SIZE + LIST_SIZE } as const;
const SLOTS_AT = HEAD_SIZE + 2 * LIST_SIZE;
const SLOT_SIZE = 64;
/** More handles than programs can have open. A handle's number is (the count of handles so far) * SLOTS_MAX + slot. */
const SLOTS_MAX = 2 ** 20;
/** The number of slots that are allocated at once, so that writing into them needs no more room on the disk. */
const SLOTS_AT_FIRST = 1024;

const UNWRITTEN = "open files cannot be recorded; a crash of the daemon would close them";

const USED = 1;
const FOLDER = 2;
const WRITE = 4;
const APPEND = 8;

const head = z.object({
  mount: z.string(),
  connection: z
    .object({
      minor: z.number(),
      kernelMinor: z.number(),
      flags: z.number(),
      flags2: z.number(),
      maxWrite: z.number(),
      passthrough: z.boolean(),
      setxattrExtended: z.boolean(),
      resend: z.boolean(),
    })
    .optional(),
  /** The kernel has the root's attributes (fuse/session.ts). */
  rootIsKnown: z.boolean().optional(),
  /** The processes that replay remote changes (replayer.ts). */
  replayers: z.array(processIdentity).optional(),
});

export interface KeptState {
  readonly handleTable: HandleTable;
  readonly inHand: RequestsInHand;
  /** The handles that the daemon before left; empty in a new mount. */
  readonly handles: readonly KeptHandle[];
  readonly connection: Connection | undefined;
  /** When the mount was made, by the wall clock. */
  readonly since: WallTime;
  agreed(connection: Connection): void;
  /** The daemon before saw that the kernel has the root's attributes. */
  readonly rootIsKnown: boolean;
  keepRootKnown(): void;
  /** The replayers that the daemon before knew; see replayer.ts. */
  readonly replayers: readonly ProcessIdentity[];
  keepReplayers(processes: readonly ProcessIdentity[]): void;
  /** True if a successor would find everything in the file. */
  isWritten(): boolean;
  close(): void;
}

/** The end of the daemon before. */
type Before = Pick<RequestsInHand, "wasOwnFault">;

const NOBODY: Before = { wasOwnFault: false };

/**
 * `before` undefined: begins an empty file for a new mount. Undefined as result: the file holds nothing of this mount
 * that could be taken over.
 */
export function openHandleFile(
  path: string,
  mount: string,
  before: Before | undefined,
  log: Logger,
): KeptState | undefined {
  if (before === undefined) {
    const empty = Buffer.alloc(SLOTS_AT + SLOTS_AT_FIRST * SLOT_SIZE);
    writeHead(empty, { mount });
    const fd = makeFile(path, empty.length, log);
    const file = fd === undefined ? NO_FILE : keptFile(fd, log);
    file.write(empty, HEAD_SIZE, 0);
    return keptState(fd, file, empty, NOBODY);
  }
  let fd: number;
  try {
    fd = fs.openSync(path, "r+");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    return undefined;
  }
  const bytes = fs.readFileSync(fd);
  const found = head.safeParse(parse(bytes));
  // Before INIT no program uses the mount, so that there is nothing to take over.
  const isOurs = found.success && found.data.mount === mount && found.data.connection !== undefined;
  if (isOurs && bytes.length >= SLOTS_AT) return keptState(fd, keptFile(fd, log), bytes, before);
  fs.closeSync(fd);
  return undefined;
}

/** Returns undefined on failure: the mount goes on without the file when the disk has no room. */
function makeFile(path: string, size: number, log: Logger): number | undefined {
  let fd: number | undefined;
  try {
    // The file's birth time is the time the mount was made, so it must be a new file.
    fs.rmSync(path, { force: true });
    fd = fs.openSync(path, "wx+", 0o600);
    fs.ftruncateSync(fd, size);
  } catch (error) {
    log.warn({ err: error }, UNWRITTEN);
    if (fd !== undefined) fs.closeSync(fd);
    return undefined;
  }
  try {
    fs.writeSync(fd, Buffer.alloc(size), 0, size, 0);
  } catch {
    // The file has its size, and holes read as zeros. Room is asked for again at each write.
  }
  return fd;
}

interface KeptFile {
  /** Writes the first `length` bytes. When it returns, the bytes survive this process, or `isWhole` is false. */
  write(bytes: Uint8Array, length: number, at: number): void;
  /** True if everything is written. Tries again to write bytes that the disk did not take before. */
  isWhole(): boolean;
}

/** There is no file. */
const NO_FILE: KeptFile = { write() {}, isWhole: () => false };

function keptFile(fd: number, log: Logger): KeptFile {
  /**
   * Bytes that the disk did not take, by offset. They are always the head, a slot or a list; only the last version
   * counts.
   */
  const untaken = new Map<number, Uint8Array>();

  function take(bytes: Uint8Array, length: number, at: number): unknown {
    try {
      const written = fs.writeSync(fd, bytes, 0, length, at);
      return written === length ? undefined : new Error(`${written} of ${length} bytes written`);
    } catch (error) {
      return error;
    }
  }

  /** Stops at the first failure: a full disk is not asked for each of them. */
  function takeUntaken(): void {
    for (const [at, bytes] of untaken) {
      if (take(bytes, bytes.length, at) !== undefined) return;
      untaken.delete(at);
    }
  }

  return {
    write(bytes, length, at) {
      const error = take(bytes, length, at);
      if (error === undefined) {
        untaken.delete(at);
        takeUntaken();
        return;
      }
      if (untaken.size === 0) log.warn({ err: error }, UNWRITTEN);
      untaken.set(at, Uint8Array.from(bytes.subarray(0, length)));
    },
    isWhole() {
      takeUntaken();
      return untaken.size === 0;
    },
  };
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8", 0, HEAD_SIZE).replace(/\0.*/s, ""));
  } catch {
    return undefined;
  }
}

function writeHead(bytes: Buffer, values: z.infer<typeof head>): void {
  bytes.fill(0, 0, HEAD_SIZE);
  bytes.write(JSON.stringify(values));
}

function keptState(fd: number | undefined, file: KeptFile, left: Buffer, { wasOwnFault }: Before): KeptState {
  const { free, kept, given } = readSlots(left);
  const byRequest = new Map(kept.map((handle) => [handle.request, handle]));
  let end = Math.max(Math.floor((left.length - SLOTS_AT) / SLOT_SIZE), 0);
  let last = given;
  const record = Buffer.alloc(SLOT_SIZE);
  const list = Buffer.alloc(LIST_SIZE);
  const listed = { inFlight: readList(left, LISTS.inFlight), suspects: readList(left, LISTS.suspects) };

  let said = head.parse(parse(left));

  function keepHead(): void {
    const bytes = Buffer.alloc(HEAD_SIZE);
    writeHead(bytes, said);
    file.write(bytes, bytes.length, 0);
  }

  function writeList(at: number, ids: readonly number[]): void {
    const count = Math.min(ids.length, LIST_SIZE / 8 - 1);
    list.writeDoubleLE(count, 0);
    for (let i = 0; i < count; i += 1) list.writeDoubleLE(ids[i] ?? 0, 8 * (i + 1));
    file.write(list, 8 * (count + 1), at);
  }

  return {
    handles: kept,
    since: fd === undefined ? systemClock.wallClock() : wallTime(fs.fstatSync(fd).birthtimeMs),
    connection: said.connection,
    isWritten: () => file.isWhole(),
    agreed(connection) {
      said = { ...said, connection };
      keepHead();
    },
    rootIsKnown: said.rootIsKnown ?? false,
    keepRootKnown() {
      said = { ...said, rootIsKnown: true };
      keepHead();
    },
    replayers: said.replayers ?? [],
    keepReplayers(processes) {
      said = { ...said, replayers: [...processes] };
      keepHead();
    },
    handleTable: {
      add(handle) {
        const slot = free.pop() ?? end++;
        if (slot >= SLOTS_MAX) throw new Error(`more than ${SLOTS_MAX} open files`);
        last += 1;
        const id = handleId(last * SLOTS_MAX + slot);
        writeSlot(record, { ...handle, id });
        file.write(record, SLOT_SIZE, SLOTS_AT + slot * SLOT_SIZE);
        return id;
      },
      remove(id) {
        const slot = id % SLOTS_MAX;
        // The slot keeps the handle's number, so that the number is never given out again.
        record.fill(0);
        record.writeDoubleLE(id, 0);
        file.write(record, SLOT_SIZE, SLOTS_AT + slot * SLOT_SIZE);
        free.push(slot);
      },
      openedBy: (request) => byRequest.get(request),
    },
    inHand: {
      left: listed.inFlight,
      wasOwnFault,
      suspects: new Set(listed.suspects),
      inFlight: (ids) => writeList(LISTS.inFlight, ids),
      suspected: (ids) => writeList(LISTS.suspects, ids),
    },
    close() {
      if (fd !== undefined) fs.closeSync(fd);
    },
  };
}

function readList(bytes: Buffer, at: number): number[] {
  const count = Math.min(bytes.readDoubleLE(at), LIST_SIZE / 8 - 1);
  return Array.from({ length: count }, (_, index) => bytes.readDoubleLE(at + 8 * (index + 1)));
}

/** In a slot, 0 stands for a number that is absent. */
function writeSlot(record: Buffer, handle: KeptHandle): void {
  const flags =
    USED | (handle.kind === "folder" ? FOLDER : 0) | (handle.write ? WRITE : 0) | (handle.append ? APPEND : 0);
  record.fill(0);
  record.writeDoubleLE(handle.id, 0);
  record.writeDoubleLE(handle.request ?? 0, 8);
  record.writeDoubleLE(handle.kernelNodeId, 16);
  record.writeUInt32LE(handle.backing ?? 0, 24);
  record.writeUInt32LE(flags, 28);
}

function readSlots(bytes: Buffer): { free: number[]; kept: KeptHandle[]; given: number } {
  const free: number[] = [];
  const kept: KeptHandle[] = [];
  let given = 0;
  for (let slot = 0; SLOTS_AT + (slot + 1) * SLOT_SIZE <= bytes.length; slot += 1) {
    const at = SLOTS_AT + slot * SLOT_SIZE;
    const id = bytes.readDoubleLE(at);
    const flags = bytes.readUInt32LE(at + 28);
    given = Math.max(given, Math.floor(id / SLOTS_MAX));
    if ((flags & USED) === 0) {
      free.push(slot);
      continue;
    }
    const backing = bytes.readUInt32LE(at + 24);
    kept.push({
      id: handleId(id),
      request: bytes.readDoubleLE(at + 8) || undefined,
      kernelNodeId: kernelNodeId(bytes.readDoubleLE(at + 16)),
      kind: (flags & FOLDER) === 0 ? "file" : "folder",
      write: (flags & WRITE) !== 0,
      append: (flags & APPEND) !== 0,
      backing: backing === 0 ? undefined : backingId(backing),
    });
  }
  // The lowest slot is used first.
  return { free: free.reverse(), kept, given };
}

/** The file that outlives a daemon: handles, what INIT agreed on, what was at hand. */
import fs, { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openHandleFile } from "../../src/daemon/handle-file.ts";
import { backingId, type HandleId, handleId } from "../../src/engine/api/index.ts";
import type { Logger } from "../../src/lib/log.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { CONNECTION } from "../support/connection.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const warnings: string[] = [];
const LOG: Logger = {
  isLevelEnabled: () => true,
  debug: () => {},
  info: () => {},
  warn: (_, message) => void warnings.push(message),
  error: () => {},
};
const FILE = {
  request: 40,
  kernelNodeId: kernelNodeId(7),
  kind: "file",
  write: true,
  append: false,
  backing: backingId(3),
} as const;
const FOLDER = {
  request: undefined,
  kernelNodeId: kernelNodeId(2 ** 40),
  kind: "folder",
  write: false,
  append: false,
  backing: undefined,
} as const;

afterEach(() => {
  vi.restoreAllMocks();
  warnings.length = 0;
});

/** The disk takes this many bytes, and nothing from there on. */
function fullAt(bytes: number): { hasRoom: boolean } {
  const disk = { hasRoom: false };
  const write = fs.writeSync as (fd: number, buffer: Uint8Array, offset: number, length: number, at: number) => number;
  const limited: typeof write = (fd, buffer, offset, length, at) => {
    if (disk.hasRoom || at + length <= bytes) return write(fd, buffer, offset, length, at);
    if (at >= bytes) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
    return write(fd, buffer, offset, bytes - at, at);
  };
  vi.spyOn(fs, "writeSync").mockImplementation(limited as typeof fs.writeSync);
  return disk;
}

const pathIn = async () => join(await temporaryFolder(), "handles");
const begin = (path: string, mount = "m") => {
  const kept = openHandleFile(path, mount, undefined, LOG);
  if (kept === undefined) throw new Error("not opened");
  return kept;
};
/** … and the kernel has agreed. */
const beginAgreed = (path: string) => {
  const kept = begin(path);
  kept.agreed(CONNECTION);
  return kept;
};
const resume = (path: string, mount = "m", wasOwnFault = false) => openHandleFile(path, mount, { wasOwnFault }, LOG);

test("what is open, agreed and at hand is there for a successor, which ends as kill -9 does", async () => {
  const path = await pathIn();
  const first = begin(path);
  expect([first.handles, first.connection]).toEqual([[], undefined]);
  first.agreed(CONNECTION);
  const [a, b, c] = [FILE, FOLDER, FILE].map((handle) => first.handleTable.add(handle));
  first.handleTable.remove(c ?? handleId(0));
  first.inHand.inFlight([2, 4]);
  first.inHand.suspected([2 ** 41]);
  const second = resume(path);
  expect(second?.connection).toEqual(CONNECTION);
  expect(second?.handles).toEqual([
    { ...FILE, id: a },
    { ...FOLDER, id: b },
  ]);
  expect(second?.handleTable.openedBy(40)).toMatchObject({ id: a });
  expect(second?.handleTable.openedBy(0)).toBe(undefined);
  expect(second?.inHand.left).toEqual([2, 4]);
  expect([...(second?.inHand.suspects ?? [])]).toEqual([2 ** 41]);
  expect([false, true].map((isOwn) => resume(path, "m", isOwn)?.inHand.wasOwnFault)).toEqual([false, true]);
});

test("no number comes back, whichever daemon gives it out", async () => {
  const path = await pathIn();
  const given = new Set<HandleId>();
  const first = beginAgreed(path);
  for (let i = 0; i < 3000; i += 1) given.add(first.handleTable.add(FILE));
  for (const id of given) if (id % 3 !== 0) first.handleTable.remove(id);
  const second = resume(path);
  expect(second?.handles).toHaveLength([...given].filter((id) => id % 3 === 0).length);
  for (let i = 0; i < 3000; i += 1) given.add(second?.handleTable.add(FOLDER) ?? handleId(0));
  expect(given.size).toBe(6000);
  expect(Math.max(...given)).toBeLessThan(2 ** 53);
});

test("what is of another mount, or is no such file, is not taken over; a new mount begins empty", async () => {
  const path = await pathIn();
  beginAgreed(path).handleTable.add(FILE);
  expect(resume(path, "other")).toBe(undefined);
  expect(begin(path, "other").handles).toEqual([]);
  expect(resume(path)).toBe(undefined);
  writeFileSync(path, "{");
  expect(resume(path)).toBe(undefined);
  beginAgreed(path);
  truncateSync(path, 5000);
  expect(resume(path)).toBe(undefined);
});

test("lists longer than there is room for are cut short", async () => {
  const path = await pathIn();
  const first = beginAgreed(path);
  const many = Array.from({ length: 20_000 }, (_, index) => 2 * index);
  first.inHand.inFlight(many);
  const left = resume(path)?.inHand.left ?? [];
  expect(left.length).toBeGreaterThan(8000);
  expect(left).toEqual(many.slice(0, left.length));
  expect(resume(path)?.handles).toEqual([]);
});

test("without a place for the file all goes on, but for what a successor would find", async () => {
  const path = join(await pathIn(), "nowhere");
  const first = begin(path);
  expect(first.handleTable.add(FILE)).toBeGreaterThan(0);
  first.inHand.suspected([2]);
  first.close();
  expect(warnings.splice(0)).toEqual(["open files cannot be recorded; a crash of the daemon would close them"]);
});

test("a disk that takes nothing costs no program its file; the log says so once", async () => {
  const path = await pathIn();
  const first = begin(path);
  first.close();
  const ids = [first.handleTable.add(FILE), first.handleTable.add(FILE)];
  expect(new Set(ids).size).toBe(2);
  expect(warnings).toEqual(["open files cannot be recorded; a crash of the daemon would close them"]);
  expect(readFileSync(path).length).toBeGreaterThan(0);
});

test("a handle that found no room counts as not written down, whatever is written after it, until there is room", async () => {
  const path = await pathIn();
  const first = beginAgreed(path);
  const disk = fullAt(readFileSync(path).length);
  const ids = Array.from({ length: 1100 }, () => first.handleTable.add(FILE));
  expect(first.isWritten()).toBe(false);
  // Those before it have their place in the file.
  first.handleTable.remove(ids[0] ?? handleId(0));
  first.inHand.suspected([2]);
  expect(first.isWritten()).toBe(false);
  disk.hasRoom = true;
  first.handleTable.remove(ids[1] ?? handleId(0));
  expect(first.isWritten()).toBe(true);
  expect(resume(path)?.handles.map(({ id }) => id)).toEqual(ids.slice(2));
  expect(warnings).toEqual(["open files cannot be recorded; a crash of the daemon would close them"]);
});

test("a mount begun on a full disk can be taken over once there is room, and says so no sooner", async () => {
  for (const bytes of [0, 100, 5000, 150_000]) {
    const path = await pathIn();
    const disk = fullAt(bytes);
    const first = beginAgreed(path);
    const id = first.handleTable.add(FILE);
    if (first.isWritten()) expect(resume(path)?.handles).toHaveLength(1);
    disk.hasRoom = true;
    expect(first.isWritten()).toBe(true);
    expect(resume(path)?.handles.map((handle) => handle.id)).toEqual([id]);
    vi.restoreAllMocks();
  }
});

test("whether the kernel has the root's attributes is known to a successor, and begins anew with a mount", async () => {
  const path = await pathIn();
  const first = beginAgreed(path);
  expect([first.rootIsKnown, resume(path)?.rootIsKnown]).toEqual([false, false]);
  first.keepRootKnown();
  first.keepReplayers([]);
  expect(resume(path)?.rootIsKnown).toBe(true);
  expect(beginAgreed(path).rootIsKnown).toBe(false);
});

test("who replays for others is there for a successor, with what was agreed", async () => {
  const path = await pathIn();
  const first = beginAgreed(path);
  expect(first.replayers).toEqual([]);
  const processes = [{ pid: 4711, startTime: "12" }];
  first.keepReplayers(processes);
  const second = resume(path);
  expect([second?.replayers, second?.connection]).toEqual([processes, CONNECTION]);
});

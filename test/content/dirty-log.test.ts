/**
 * The list of changed files: what was flushed is read again, whoever died in between, and a list that
 * may lack something says so.
 */
import { beforeEach, expect, test } from "vitest";
import { type DirtyLog, openDirtyLog, type Written } from "../../src/content/dirty-log.ts";
import { SILENT } from "../../src/lib/log.ts";
import { timeFromMilliseconds } from "../../src/lib/time.ts";
import { inodeId, kernelNodeId } from "../../src/metadata/ids.ts";
import { createMemoryFiles, type MemoryFiles } from "../support/memory-files.ts";

const PATH = "/state/staged";
let files: MemoryFiles;
let dirtyLog: DirtyLog;
beforeEach(async () => {
  files = createMemoryFiles({ now: () => timeFromMilliseconds(0) });
  await files.makeFolder("/state");
  dirtyLog = await openDirtyLog(files, PATH, SILENT);
  expect(dirtyLog.isNew).toBe(true);
  await dirtyLog.replace(noLines);
});

async function* noLines(): AsyncGenerator<Written> {}

const word = (id: number, changes = 1): Written => ({
  kernelNodeId: kernelNodeId(id),
  changes,
  path: [`file ${id}`],
  folder: inodeId(1),
});

/** What another process finds. */
async function found() {
  const { written, isWhole } = await (await openDirtyLog(files, PATH, SILENT)).read();
  return { kernelNodeIds: [...written.keys()], isWhole };
}

test("what was added last is there when it is closed", async () => {
  dirtyLog.add(word(1));
  await dirtyLog.flush();
  dirtyLog.add({ kernelNodeId: kernelNodeId(1), done: true });
  await dirtyLog.close();
  expect(await found()).toEqual({ kernelNodeIds: [], isWhole: true });
});

test("a line on the disk calls the kernel node id `lineage`, for lists that another release reads", async () => {
  dirtyLog.add(word(7, 2));
  await dirtyLog.flush();
  const file = await files.open(PATH, "r");
  const { size } = await file.stat();
  const buffer = Buffer.alloc(size);
  await file.read(buffer, 0, size, 0);
  const last = buffer.toString("utf8").trimEnd().split("\n").at(-1) ?? "";
  const inFile = { lineage: 7, changes: 2, path: ["file 7"], folder: 1 };
  expect(JSON.parse(last.slice(last.indexOf(" ")))).toEqual(inFile);
  expect(await found()).toEqual({ kernelNodeIds: [7], isWhole: true });
});

test("the last word of each file counts", async () => {
  for (const one of [word(1), word(2), word(1, 5), word(3)]) dirtyLog.add(one);
  dirtyLog.add({ kernelNodeId: kernelNodeId(2), done: true });
  await dirtyLog.flush();
  const { written, isWhole } = await (await openDirtyLog(files, PATH, SILENT)).read();
  expect([...written.values()]).toEqual([word(1, 5), word(3)]);
  expect(isWhole).toBe(true);
});

test("a line that is on its way is waited for, whoever added it", async () => {
  let isThere = false;
  dirtyLog.add(word(1));
  const first = dirtyLog.flush().then(() => {
    isThere = true;
  });
  await dirtyLog.flush();
  expect(isThere).toBe(true);
  await first;
});

test("a line that was broken off is no line, and those before it are", async () => {
  dirtyLog.add(word(1));
  await dirtyLog.flush();
  const { size } = await files.stat(PATH);
  dirtyLog.add(word(2));
  await dirtyLog.flush();
  const file = await files.open(PATH, "r+");
  await file.truncate(size + 20);
  expect(await found()).toEqual({ kernelNodeIds: [1], isWhole: true });
});

test("a damaged line leaves the list not whole", async () => {
  const { size } = await files.stat(PATH);
  for (const one of [word(1), word(2)]) dirtyLog.add(one);
  await dirtyLog.flush();
  await (await files.open(PATH, "r+")).write(Buffer.from("?"), size + 20);
  expect(await found()).toEqual({ kernelNodeIds: [2], isWhole: false });
});

test("a list that cannot be kept is not whole until it has what it lacks", async () => {
  const end = files.fail({ path: /staged/, code: "ENOSPC", on: ["write"], after: 0, times: 1 });
  dirtyLog.add(word(1));
  await dirtyLog.flush();
  expect(await found()).toEqual({ kernelNodeIds: [], isWhole: false });
  end();
  dirtyLog.add(word(2));
  await dirtyLog.flush();
  expect(await found()).toEqual({ kernelNodeIds: [1, 2], isWhole: true });
});

test("what is said while it is written anew is in the new one", async () => {
  dirtyLog.add(word(1));
  await dirtyLog.flush();
  await dirtyLog.replace(async function* () {
    dirtyLog.add(word(3));
    void dirtyLog.flush();
    yield word(2);
  });
  await dirtyLog.flush();
  expect(await found()).toEqual({ kernelNodeIds: [2, 3], isWhole: true });
});

test("a sync that failed is made again", async () => {
  dirtyLog.add(word(1));
  files.fail({ path: /staged/, code: "ENOSPC", on: ["sync"], times: 2 });
  const outcomes: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    outcomes.push(
      await dirtyLog.sync().then(
        () => "synced",
        (error: Error) => error.message.slice(0, 3),
      ),
    );
  }
  expect(outcomes).toEqual(["ENO", "ENO", "synced"]);
});

test("it is long when much was said since it was written anew", async () => {
  expect(dirtyLog.isLong()).toBe(false);
  const path = ["x".repeat(200_000)];
  for (let count = 0; count < 25; count += 1) dirtyLog.add({ ...word(count), path });
  await dirtyLog.flush();
  expect(dirtyLog.isLong()).toBe(true);
  await dirtyLog.replace(noLines);
  expect(dirtyLog.isLong()).toBe(false);
});

/** A list whose syncs are counted. */
async function counted() {
  let syncs = 0;
  const { open } = files;
  Object.assign(files, {
    open: async (...args: Parameters<typeof open>) => {
      const file = await open(...args);
      const { sync } = file;
      return Object.assign(file, {
        sync: () => {
          syncs += 1;
          return sync.call(file);
        },
      });
    },
  });
  const list = await openDirtyLog(files, PATH, SILENT);
  /** How many syncs it takes to say this. */
  const synced = async (...told: Parameters<DirtyLog["add"]>[0][]) => {
    for (const one of told) list.add(one);
    const before = syncs;
    await list.sync();
    return syncs - before;
  };
  return { list, synced };
}

test("that a file is done need not survive power loss: a sync is for those that are named", async () => {
  const { list, synced } = await counted();
  expect(await synced(word(1))).toBe(1);
  expect(await synced()).toBe(0);
  expect(await synced({ kernelNodeId: kernelNodeId(1), done: true })).toBe(0);
  expect(await synced({ kernelNodeId: kernelNodeId(1), done: true }, word(2))).toBe(1);
  list.add(word(3));
  await list.flush();
  expect(await synced({ kernelNodeId: kernelNodeId(2), done: true })).toBe(1);
  await list.close();
});

test("what could not be written while it was written anew is synced once it is", async () => {
  const { list, synced } = await counted();
  await list.replace(async function* () {
    list.add(word(2));
    files.fail({ path: /staged$/, code: "ENOSPC", on: ["write"], times: 1 });
    yield word(1);
  });
  expect(await synced()).toBe(1);
  expect(await found()).toEqual({ kernelNodeIds: [1, 2], isWhole: true });
});

test("a list written anew while the old one took no line is whole only with that line", async () => {
  const list = await openDirtyLog(files, PATH, SILENT);
  await list.replace(async function* () {
    list.add(word(2));
    files.fail({ path: /staged$/, code: "ENOSPC", on: ["write"], times: 1 });
    yield word(1);
  });
  expect(await found()).toEqual({ kernelNodeIds: [1, 2], isWhole: true });
});

/**
 * The dirty-file log: a list of the cache files that programs wrote to, with their names. It lies beside the database,
 * and is needed when the database is damaged or older than the files. A line is written before the first byte of its
 * file changes. So the gateway has the content of every file without a line. This file knows no rows.
 *
 * Each line is a checksum and JSON. Unreadable lines are left out. The list is then not whole, and the absence of a
 * line means nothing.
 */
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { z } from "zod";
import type { Brand } from "../lib/brand.ts";
import type { Files, OpenFile } from "../lib/files.ts";
import type { Logger } from "../lib/log.ts";

const kernelNodeId = z
  .number()
  .int()
  .transform((id) => id as number & Brand<"KernelNodeId">);
const folder = z
  .number()
  .int()
  .transform((id) => id as number & Brand<"InodeId">);

/** On the disk, a line calls the kernel node id `lineage`. */
const writtenJson = z.object({
  lineage: kernelNodeId,
  /** The inode's counter of changes, once the file was marked dirty. */
  changes: z.number().int(),
  /** The file's path, as names from the root down. Empty: it has no name. */
  path: z.array(z.string()),
  /** Inode of the folder. */
  folder: folder.optional(),
  mode: z.number().int().optional(),
  /** The node of that name, as of base. */
  node: z.string().optional(),
  head: z.string().optional(),
  hash: z.string().optional(),
  size: z.number().optional(),
  revision: z.number().optional(),
  /** The version to which missing parts of the file belong. */
  missingFrom: z.object({ node: z.string(), version: z.string() }).optional(),
});
const doneJson = z.object({ lineage: kernelNodeId, done: z.literal(true) });
const named = <T>({ lineage, ...rest }: T & { lineage: z.infer<typeof kernelNodeId> }) => ({
  kernelNodeId: lineage,
  ...rest,
});
const written = writtenJson.transform(named);
/** A line for a file to which a program is about to write, or which has another name since a program wrote to it. */
export type Written = z.infer<typeof written>;

/** A line for a file whose content the gateway has, or whose content is not needed any more. */
const done = doneJson.transform(named);
const line = z.union([done, written]);
type Line = z.infer<typeof line>;

export interface DirtyLogContent {
  /** The last line of each kernel node id, unless that line says "done". */
  readonly written: ReadonlyMap<Written["kernelNodeId"], Written>;
  /** True if no line is missing. Otherwise a file without a line may have been written to. */
  readonly isWhole: boolean;
}

export interface DirtyLog {
  /** True if there was no list before. Earlier writes are then missing until the list is written anew. */
  readonly isNew: boolean;
  add(line: Line): void;
  /**
   * Resolves when the added lines survive a crash of the daemon. Never rejects: if they cannot be written, the list is
   * marked as not whole, and they are written later.
   */
  flush(): Promise<void>;
  /**
   * Resolves when the added lines survive power loss, or, like `flush`, when the list cannot be kept. Rejects when the
   * sync fails.
   */
  sync(): Promise<void>;
  /** Reads the last `bytes` bytes of the list, or all of it. */
  read(bytes?: number): Promise<DirtyLogContent>;
  /** Writes the list anew, with these lines and nothing else. Rejects with a system error. */
  replace(lines: () => AsyncIterable<Written>): Promise<void>;
  /** True if the list is so long that it should be written anew: many of its lines are probably out of date. */
  isLong(): boolean;
  close(): Promise<void>;
}

/** The first line of a list that had a line for each changed file when it began. */
const FIRST = '{"staged":1}';
const TAIL = 64 * 1024;
const LONG = 4 * 1024 * 1024;

export async function openDirtyLog(files: Files, path: string, log: Logger): Promise<DirtyLog> {
  let { file, size } = await openList(files, path);
  const isNew = !(await hasFirst(file));
  let hasBegun = !isNew;
  let waiting: string[] = [];
  let isSynced = true;
  /**
   * True if a waiting line names a changed file. "done" lines need not be durable: without one, its file is only
   * checked once more.
   */
  let isNaming = false;
  let hasFailed = false;
  let last: Promise<unknown> = Promise.resolve();
  let turns = 0;
  let syncing: Promise<unknown> = Promise.resolve();
  let replacing: Promise<void> = Promise.resolve();
  /** Lines that went to the old list since the new one was begun. Undefined: no new list is being written. */
  let since: string[] | undefined;
  let limit = LONG;

  /** Runs `work` after all earlier work. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    turns += 1;
    const result = last.then(work).finally(() => {
      turns -= 1;
    });
    last = result.catch(() => {});
    return result;
  }

  /** Overwrites the first byte, which needs no room. A list with another first byte is not whole. */
  async function markWhole(isWhole: boolean): Promise<void> {
    if (hasBegun) await file.write(Buffer.from(isWhole ? encode(FIRST).slice(0, 1) : "?"), 0);
  }

  async function write(): Promise<void> {
    if (waiting.length === 0) return;
    const lines = waiting;
    const isNamed = isNaming;
    waiting = [];
    isNaming = false;
    const bytes = Buffer.from(lines.join(""));
    try {
      if (isNamed) isSynced = false;
      await file.write(bytes, size);
      size += bytes.length;
      since?.push(...lines);
      if (hasFailed) await markWhole(true);
      hasFailed = false;
    } catch (error) {
      // Some of these lines may be written twice. That does no harm, because the last line of a file counts.
      waiting = [...lines, ...waiting];
      isNaming ||= isNamed;
      if (!hasFailed) log.warn({ err: error }, "the list of changed files cannot be kept");
      hasFailed = true;
      await markWhole(false).catch(() => {});
    }
  }

  async function readAll(bytes = size): Promise<DirtyLogContent> {
    await write();
    const from = Math.max(0, size - bytes);
    const buffer = Buffer.allocUnsafe(size - from);
    const length = await file.read(buffer, 0, buffer.length, from);
    return parse(buffer.toString("utf8", 0, length), from === 0);
  }

  /** Lines that are added meanwhile go to the old list, so that callers need not wait. */
  async function replaceWith(lines: () => AsyncIterable<Written>): Promise<void> {
    const other = `${path}.new`;
    await files.remove(other);
    const next = await files.open(other, "wx+");
    let length = 0;
    const put = async (text: string) => {
      const bytes = Buffer.from(text);
      await next.write(bytes, length);
      length += bytes.length;
    };
    try {
      let text = encode(FIRST);
      for await (const one of lines()) {
        text += encode(jsonOf(one));
        if (text.length <= TAIL) continue;
        await put(text);
        text = "";
      }
      await put(text);
      await next.sync();
      await inTurn(async () => {
        await write();
        await put((since ?? []).join(""));
        await next.sync();
        await files.rename(other, path);
        const before = file;
        [file, size] = [next, length];
        [hasBegun, hasFailed, isSynced] = [true, false, true];
        // The new list counts as whole. So the lines that the old one did not take must be written to it at once.
        await write();
        await syncing;
        await before.close();
      });
    } catch (error) {
      if (file !== next) {
        await next.close();
        await files.remove(other);
      }
      throw error;
    }
    await files.syncFolder(dirname(path));
  }

  // Without waiting lines, earlier ones may still be being written.
  const flush = () => (waiting.length === 0 && turns === 0 ? Promise.resolve() : inTurn(write));

  return {
    isNew,
    add(added) {
      isNaming ||= !("done" in added);
      waiting.push(encode(jsonOf(added)));
    },
    flush,
    async sync() {
      await flush();
      if (isSynced || hasFailed) return;
      isSynced = true;
      // The sync is not in turn, so that no writer waits for the disk.
      const synced = file.sync();
      syncing = synced.catch(() => {
        isSynced = false;
      });
      await synced;
    },
    read: (bytes) => inTurn(() => readAll(bytes)),
    async replace(lines) {
      if (since !== undefined) return;
      since = [];
      try {
        replacing = replaceWith(lines);
        await replacing;
      } finally {
        since = undefined;
        limit = Math.max(LONG, 2 * size);
      }
    },
    isLong: () => since === undefined && size > limit,
    close: async () => {
      await replacing.catch(() => {});
      await inTurn(async () => {
        await write();
        await syncing;
        await file.close();
      });
    },
  };
}

/** Opens the list. Removes a last line that a crash cut off: it was never reported as written. */
async function openList(files: Files, path: string): Promise<{ file: OpenFile; size: number }> {
  const file = await files.open(path, "w+");
  const found = (await file.stat()).size;
  if (found === 0) await files.syncFolder(dirname(path));
  const tail = Buffer.alloc(Math.min(found, TAIL));
  await file.read(tail, 0, tail.length, found - tail.length);
  const size = found - tail.length + tail.lastIndexOf("\n") + 1;
  if (size < found) await file.truncate(size);
  return { file, size };
}

async function hasFirst(file: OpenFile): Promise<boolean> {
  const first = encode(FIRST);
  const buffer = Buffer.alloc(first.length);
  await file.read(buffer, 0, buffer.length, 0);
  return buffer.toString("utf8") === first;
}

function jsonOf({ kernelNodeId, ...rest }: Line): string {
  return JSON.stringify({ lineage: kernelNodeId, ...rest });
}

function encode(json: string): string {
  return `${checksum(json)} ${json}\n`;
}

function checksum(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

function parse(text: string, isFromStart: boolean): DirtyLogContent {
  const lines = text.split("\n");
  let isWhole = isFromStart && lines[0] === encode(FIRST).trimEnd() && lines.at(-1) === "";
  const found = new Map<Written["kernelNodeId"], Written>();
  for (const [index, one] of lines.entries()) {
    if (one === "" || (index === 0 && isWhole)) continue;
    const parsed = parseLine(one);
    if (parsed === undefined) isWhole = false;
    else if ("done" in parsed) found.delete(parsed.kernelNodeId);
    else found.set(parsed.kernelNodeId, parsed);
  }
  return { written: found, isWhole };
}

function parseLine(text: string): Line | undefined {
  const json = text.slice(9);
  if (text.slice(0, 9) !== `${checksum(json)} `) return undefined;
  try {
    return line.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}

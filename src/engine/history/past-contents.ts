/**
 * Bytes of earlier versions. A small content is fetched whole, checked, and kept as a file in the state dir. Of a large
 * content, only the parts that are read are fetched, and they are kept in memory. A version never changes, so nothing
 * here is ever out of date. The kept files have a small share of the cache, and all of them are removed when the disk
 * has little room.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { RemoteError } from "../../client/errors.ts";
import { FsError } from "../api/index.ts";
import type { Host, LocalFiles } from "../core/index.ts";
import type { Content } from "./place.ts";
import { createSharedAnswers } from "./shared-answer.ts";

/** Bytes. Contents up to this size are fetched whole. */
const WHOLE_MAX = 8 * 1024 * 1024;
/** Bytes. The parts of larger contents. */
const WINDOW = 1024 * 1024;
/** Bytes in memory, of all contents together. */
const WINDOWS_BYTES = 32 * WINDOW;
/** The share of the mount's cache that the kept files may take. */
const SHARE = 1 / 8;

type Needs = LocalFiles & Host;

interface PastContents {
  /**
   * Returns `size` bytes from `offset` on, and fewer only at the end. Rejects with ENODATA when the gateway has given
   * the version up (410), EINTR when `signal` aborts, else as toFsError says (EIO when the gateway cannot be reached).
   */
  read(content: Content, offset: number, size: number, signal: AbortSignal): Promise<Uint8Array>;
}

export function createPastContents(context: Needs): PastContents {
  const { log, paths, runtime, settings } = context;
  const { files } = runtime;
  const windows = new LRUCache<string, Uint8Array>({
    maxSize: WINDOWS_BYTES,
    sizeCalculation: (bytes) => bytes.length + 1,
  });
  const answers = createSharedAnswers();
  /** Sizes of the kept files by name, the longest unread first. Undefined: the folder was not looked at yet. */
  let kept: Promise<Map<string, number>> | undefined;

  const nameOf = ({ node, version }: Content) => createHash("sha256").update(`${node}\n${version}`).digest("hex");
  const pathOf = (name: string) => join(paths.past, name);

  /**
   * Every read checks the hash: kept files are not synced, and power loss may have left other bytes. Undefined: there
   * is no such file, or it is not whole.
   */
  async function readKept(name: string, { size, hash }: Content): Promise<Uint8Array | undefined> {
    const known = await keptFiles();
    if (known.get(name) !== size) return undefined;
    known.delete(name);
    known.set(name, size);
    try {
      const file = await files.open(pathOf(name), "r");
      try {
        const bytes = Buffer.alloc(size);
        const isWhole = (await file.read(bytes, 0, size, 0)) === size;
        if (isWhole && createHash("sha256").update(bytes).digest("hex") === hash) return bytes;
      } finally {
        await file.close();
      }
    } catch {
      // It was removed to make room.
    }
    known.delete(name);
    return undefined;
  }

  /** A failure is only logged: the reader has its bytes. */
  async function keep(name: string, bytes: Uint8Array): Promise<void> {
    try {
      const known = await keptFiles();
      if (context.space.isTight()) return await thin(known, 0);
      const part = pathOf(`${name}.part`);
      await files.remove(part);
      const file = await files.open(part, "wx+");
      try {
        await file.write(bytes, 0);
      } finally {
        await file.close();
      }
      await files.rename(part, pathOf(name));
      known.set(name, bytes.length);
      await thin(known, settings.cacheLimit * SHARE);
    } catch (error) {
      log.info({ err: error }, "a content of the past is not kept");
    }
  }

  async function thin(known: Map<string, number>, limit: number): Promise<void> {
    let total = [...known.values()].reduce((sum, size) => sum + size, 0);
    for (const [name, size] of known) {
      if (total <= limit) return;
      known.delete(name);
      total -= size;
      await files.remove(pathOf(name));
    }
  }

  function keptFiles(): Promise<Map<string, number>> {
    kept ??= (async () => {
      await files.makeFolder(paths.past);
      const known = new Map<string, number>();
      for (const name of await files.list(paths.past)) {
        if (/^[0-9a-f]{64}$/.test(name)) known.set(name, (await files.stat(pathOf(name))).size);
        else await files.remove(pathOf(name));
      }
      return known;
    })();
    kept.catch(() => {
      kept = undefined;
    });
    return kept;
  }

  async function window(content: Content, index: number): Promise<Uint8Array> {
    const isWhole = content.size <= WHOLE_MAX;
    const name = nameOf(content);
    const key = `${name} ${isWhole ? "whole" : index}`;
    const inMemory = windows.get(key);
    if (inMemory !== undefined) return inMemory;
    const onDisk = isWhole ? await readKept(name, content) : undefined;
    const part = isWhole
      ? { start: 0, end: content.size }
      : { start: index * WINDOW, end: Math.min(content.size, (index + 1) * WINDOW) };
    // The signal of one program must not end the fetch: others may wait for the same.
    const { signal } = new AbortController();
    const bytes = onDisk ?? (await context.cacheFiles.fetchVersion(content, part, signal).catch(rejectThinned));
    windows.set(key, bytes);
    if (isWhole && onDisk === undefined && content.hash !== null) await keep(name, bytes);
    return bytes;
  }

  function shared(content: Content, index: number, signal: AbortSignal): Promise<Uint8Array> {
    return answers.get(`${nameOf(content)} ${index}`, () => window(content, index), signal);
  }

  return {
    async read(content, offset, size, signal) {
      const end = Math.min(content.size, offset + size);
      if (offset >= end) return new Uint8Array();
      if (content.size <= WHOLE_MAX) return (await shared(content, 0, signal)).subarray(offset, end);
      const parts: Uint8Array[] = [];
      for (let at = offset; at < end; ) {
        const index = Math.floor(at / WINDOW);
        const start = index * WINDOW;
        parts.push((await shared(content, index, signal)).subarray(at - start, end - start));
        at = start + WINDOW;
      }
      return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
    },
  };
}

function rejectThinned(error: unknown): never {
  const cause = error instanceof FsError ? error.cause : undefined;
  if (!(cause instanceof RemoteError) || cause.status !== 410) throw error;
  throw new FsError("ENODATA", "the gateway no longer keeps the content of this version", { cause });
}

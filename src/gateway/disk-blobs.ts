/**
 * Blobs as files below one folder, spread over 256 subfolders. They are written beside their place and renamed when
 * whole. They are not synced. An answer promises only that the blob survives the death of this process; power loss may
 * take the last seconds.
 */
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { systemClock } from "../lib/system-clock.ts";
import type { Blobs } from "./blobs.ts";

const WRITE_BYTES = 512 * 1024;
/** Each reader has two of these while it reads, 256 KiB, and any number may read at once. */
const READ_BYTES = 128 * 1024;

export const blobPath = (folder: string, blob: string) => path.join(folder, blob.slice(0, 2), blob);

/**
 * `isHeld`: true while nothing may be removed. It is asked after the commit that released a blob, so that a later
 * backup does not name the blob.
 */
export async function openDiskBlobs(folder: string, isHeld: () => boolean = () => false): Promise<Blobs> {
  const unfinished = path.join(folder, "unfinished");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // A killed gateway left these files. No request that made one was answered.
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  const shards = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));
  for (const shard of shards) await mkdir(path.join(folder, shard), { recursive: true, mode: 0o700 });
  const place = (blob: string) => blobPath(folder, blob);

  return {
    async write(blob, data) {
      const temporary = path.join(unfinished, blob);
      const file = await open(temporary, "wx", 0o600);
      try {
        let pending: Uint8Array[] = [];
        let size = 0;
        for await (const chunk of data) {
          pending.push(chunk);
          size += chunk.length;
          if (size < WRITE_BYTES) continue;
          await writeAll(file, pending);
          pending = [];
          size = 0;
        }
        await writeAll(file, pending);
        await file.close();
        systemClock.step("gateway: blob whole");
        await rename(temporary, place(blob));
      } catch (error) {
        await file.close().catch(() => {});
        await rm(temporary, { force: true });
        throw error;
      }
    },

    async *read(blob, start, end) {
      const file = await open(place(blob), "r");
      // Two buffers take turns: one is filled while the other is sent. New memory for each read would cost more than
      // the read, because the system must clear it first.
      const buffers: Buffer[] = [];
      const readInto = async (index: number, position: number): Promise<Buffer> => {
        buffers[index] ??= Buffer.allocUnsafeSlow(Math.min(READ_BYTES, end - start));
        const buffer = buffers[index];
        const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - position), position);
        if (bytesRead === 0) throw new Error(`Blob ${blob} ends at ${position}, expected ${end} bytes.`);
        return buffer.subarray(0, bytesRead);
      };
      let next: Promise<Buffer> | undefined;
      try {
        // Checked before the first byte is sent.
        const { size } = await file.stat();
        if (size < end) throw new Error(`Blob ${blob} has ${size} bytes, expected at least ${end}.`);
        next = start < end ? readInto(0, start) : undefined;
        for (let [position, turn] = [start, 0]; next !== undefined; turn = 1 - turn) {
          const chunk = await next;
          position += chunk.length;
          next = position < end ? readInto(1 - turn, position) : undefined;
          // If the reader asks for no more, the failure is of no interest.
          next?.catch(() => {});
          yield chunk;
        }
      } finally {
        await next?.catch(() => {});
        await file.close();
      }
    },

    async remove(blob) {
      if (isHeld()) return false;
      await rm(place(blob), { force: true });
      return true;
    },

    async *list() {
      for (const shard of shards) yield* await readdir(path.join(folder, shard));
    },
  };
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunks: Uint8Array[]): Promise<void> {
  let rest = chunks;
  while (rest.length > 0) {
    let { bytesWritten } = await file.writev(rest);
    const after: Uint8Array[] = [];
    for (const chunk of rest) {
      if (bytesWritten >= chunk.length) bytesWritten -= chunk.length;
      else {
        after.push(bytesWritten === 0 ? chunk : chunk.subarray(bytesWritten));
        bytesWritten = 0;
      }
    }
    rest = after;
  }
}

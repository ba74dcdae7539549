/**
 * Part files: the received bytes of a download, beside its target. The name identifies the download, the version and
 * the process that writes. A part file is taken over and continued when its process is gone or gave the download up.
 * The part file of another living process is left alone. This file knows no gateway.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";

interface PartFile {
  readonly handle: FileHandle;
  /** Syncs it and gives it the target's name. */
  finish(): Promise<void>;
  /** Closes it. `keep`: the next attempt may continue with it. */
  leave(keep: boolean): Promise<void>;
}

/** Part files in use by this process. */
const active = new Set<string>();
let made = 0;

export async function openPartFile(path: string, nodeId: string, version: string): Promise<PartFile> {
  const folder = dirname(path);
  // A process id identifies a process only on its own machine, so the machine's name is part of the file's.
  const target = digest(hostname(), nodeId, basename(path));
  const content = digest(version);
  made += 1;
  const own = join(folder, `.wsfs-${target}-${content}.${process.pid}-${made}.part`);
  active.add(own);
  try {
    await takeOver(folder, target, content, own);
    const handle = await open(own, constants.O_RDWR | constants.O_CREAT, 0o666);
    return {
      handle,
      async finish() {
        await handle.sync();
        await rename(own, path);
      },
      async leave(keep) {
        await handle.close();
        if (!keep) await rm(own, { force: true });
        active.delete(own);
      },
    };
  } catch (error) {
    active.delete(own);
    throw error;
  }
}

/** Renames the part file of an earlier attempt to `own`, and removes part files of other versions. */
async function takeOver(folder: string, target: string, content: string, own: string): Promise<void> {
  let isTaken = false;
  for (const name of await readdir(folder)) {
    const match = /^\.wsfs-(\w+)-(\w+)\.(\d+)-\d+\.part$/.exec(name);
    if (match === null || match[1] !== target) continue;
    const found = join(folder, name);
    if (active.has(found) || isOthers(Number(match[3]))) continue;
    // Two attempts may find the same file: only one rename succeeds.
    if (match[2] === content && !isTaken)
      isTaken = await rename(found, own).then(
        () => true,
        () => false,
      );
    else await rm(found, { force: true });
  }
}

/** True if the process is another one and is alive. */
function isOthers(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is alive and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function digest(...texts: string[]): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 24);
}

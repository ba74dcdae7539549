/**
 * The file a download grows in, beside the one it becomes. Its name says what it is for, of which
 * version, and which process writes it: what a process left that is gone, or that gave up, is
 * taken over and gone on with; what somebody writes is left alone. Knows no gateway.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";

export interface PartFile {
  readonly handle: FileHandle;
  /** Gives it the name it was made for, whole and synced. */
  finish(): Promise<void>;
  /** Closes it. `keep`: the next attempt may go on with it. */
  leave(keep: boolean): Promise<void>;
}

/** Names in use by this process. */
const active = new Set<string>();
let made = 0;

export async function openPartFile(path: string, nodeId: string, version: string): Promise<PartFile> {
  const folder = dirname(path);
  // Processes are known by their ids on their own machine only.
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

/** Renames to `own` what is left of the same download; removes what is left of other versions of it. */
async function takeOver(folder: string, target: string, content: string, own: string): Promise<void> {
  let isTaken = false;
  for (const name of await readdir(folder)) {
    const match = /^\.wsfs-(\w+)-(\w+)\.(\d+)-\d+\.part$/.exec(name);
    if (match === null || match[1] !== target) continue;
    const found = join(folder, name);
    if (active.has(found) || isOthers(Number(match[3]))) continue;
    // Two that find the same: one rename goes well.
    if (match[2] === content && !isTaken)
      isTaken = await rename(found, own).then(
        () => true,
        () => false,
      );
    else await rm(found, { force: true });
  }
}

/** Another process that is alive. */
function isOthers(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: alive, and somebody else's.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function digest(...texts: string[]): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 24);
}

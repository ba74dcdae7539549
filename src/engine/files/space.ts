/**
 * Room on the disk of the state dir and in the workspace. A flow asks here before it adds something. A full disk is
 * looked at again, and cached files are evicted, before a program gets ENOSPC. There is one look at a time, and also a
 * regular one, because room comes back and folders vanish without a message.
 */
import { inStep, type Timer } from "../../lib/runtime.ts";
import { shareRuns } from "../../lib/shared-run.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import type { Space } from "../host/index.ts";
import { addUp } from "./backlog.ts";
import { despiteFullDisk, requireDisk } from "./disk-room.ts";
import { evict } from "./evict.ts";
import { removeLeft } from "./file-removal.ts";
import { repeatForgets } from "./on-forget.ts";
import type { LocalFiles, Parts } from "./room.ts";

const LOOK_MS = 2_000;

export function createSpace(room: () => Parts): Space {
  let timer: Timer | undefined;
  let isStopped = false;

  async function lookOnce(): Promise<void> {
    const context = room();
    const { disk } = context;
    disk.look();
    if (disk.trouble !== undefined && disk.trouble !== "full") return;
    if (!disk.hasRows) tryCommit();
    if (disk.lacking > 0) await evict(context);
    await disk.restore();
    if (context.fileState.isLeft && disk.hasRows) context.background("removing files", () => removeLeft(context));
  }

  function tryCommit(): void {
    const context = room();
    const { disk, metadata, settings } = context;
    try {
      metadata.transaction(() => metadata.settings.set("boot", settings.boot));
      disk.commitWorked();
      repeatForgets(context);
    } catch {
      // `disk` has logged the error, and the next look tries again.
    }
  }

  const look = shareRuns(lookOnce);

  function lookLater(): void {
    if (isStopped) return;
    const context = room();
    const { runtime } = context;
    timer = runtime.setTimer(inStep(runtime, LOOK_MS), () => {
      context.background("looking at the disk", () => look().finally(lookLater));
    });
  }

  return {
    start: lookLater,
    stop() {
      // A look may be under way.
      isStopped = true;
      timer?.cancel();
    },
    look,
    isTight: () => isTight(room()),
    require: (bytes, growth) => requireRoom(room(), bytes, growth),
    despiteFull: (bytes, work) => despiteFullDisk(room(), bytes, work),
  };
}

/** True: requireRoom has to be called before something is added. That is rare. */
export function isTight({ disk, quota }: Pick<LocalFiles & Remote, "disk" | "quota">): boolean {
  return disk.trouble !== undefined || !disk.hasRows || disk.unsentLimit !== undefined || quota.limit !== undefined;
}

/**
 * Call it before bytes or a name are added. `bytes`: added on this disk. `growth`: bytes that the workspace grows by,
 * at most and exactly. Rejects with ENOSPC (disk, unsent bytes) or EDQUOT (workspace) when there is no room even after
 * another look, and with EROFS or EIO when the disk takes no changes.
 */
export async function requireRoom(
  context: Rows & LocalFiles & Remote & Host,
  bytes = 0,
  growth: { readonly most: number; readonly exactly: () => Promise<number> } | undefined = undefined,
): Promise<void> {
  const { disk, quota } = context;
  await requireDisk(context);
  if (disk.unsentLimit !== undefined) await requireUnsent(context, disk.unsentLimit, bytes);
  if (growth !== undefined) await quota.require(growth.most, growth.exactly);
}

/** Summing costs something, so it is done only when the upper bound of unsent bytes exceeds the limit. */
async function requireUnsent(context: Rows & LocalFiles & Host, limit: number, added: number): Promise<void> {
  const { metadata, cacheFiles, unsent } = context;
  const mostly = unsent.mostly === undefined ? undefined : unsent.mostly + added;
  unsent.mostly = mostly;
  if (mostly !== undefined && mostly <= limit) return;
  let total = await addUp(context, metadata.nodes.pendingBytes);
  for (const cacheFile of cacheFiles.values()) {
    // The size in the row is that of the last flush.
    if (cacheFile.mayHaveUnpersistedStat)
      total += (await cacheFile.disk.file.stat()).size - (metadata.inodes.get(cacheFile.inode)?.size ?? 0);
  }
  unsent.mostly = total + added;
  if (unsent.mostly <= limit) return;
  unsent.mostly = total;
  throw new FsError("ENOSPC", `${total} bytes wait to be sent, which is the limit`);
}

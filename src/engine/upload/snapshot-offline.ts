/**
 * While nothing can be sent (the gateway is away, there is no login, no room, no scope), snapshots of waiting content
 * are taken all the same, once it was not changed for a while. Such a snapshot is synced and hashed, so the program's
 * last state survives even if the machine goes down hours later. The same snapshot is sent afterwards. Files that are
 * open for writing have their own times (snapshot-times.ts).
 */
import { plus } from "../../lib/clocks.ts";
import { inStep, sleep, type Timer } from "../../lib/runtime.ts";
import { isVerified, isWhole } from "../../metadata/cache-files.ts";
import type { After, InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Rows, Uploads } from "../core/index.ts";

const LOOK_MS = 10_000;
/** The content must not have changed for this long. Where it can be sent, its snapshot is taken long before. */
const REST_MS = 30_000;
/** Inodes looked at in one go, and snapshots taken at a time. */
const SLICE = 100;
const TOGETHER = 8;
/** The pause between two such groups: much waiting content must not keep the disk busy. */
const PAUSE_MS = 500;

interface OfflineSnapshots {
  start(): void;
  stop(): void;
}

/** `snapshot`: takes a snapshot as the write-back loop does, unless the loop is at work on the row. Never rejects. */
export function createOfflineSnapshots(
  context: Rows & LocalFiles & Uploads & Host,
  snapshot: (row: NodeRow) => Promise<void>,
): OfflineSnapshots {
  const { runtime, metadata, fileState } = context;
  let timer: Timer | undefined;
  const over = new AbortController();

  function lookLater(): void {
    if (over.signal.aborted) return;
    timer = runtime.setTimer(inStep(runtime, LOOK_MS), () => {
      context.background("taking snapshots of waiting content", () => look().finally(lookLater));
    });
  }

  async function look(): Promise<void> {
    let after: After<InodeId> = 0;
    while (!over.signal.aborted && !fileState.stopped.aborted && maySnapshot(context)) {
      const inodes = metadata.inodes.unclean(after, SLICE);
      for (let rows = atRest(context, inodes); rows.length > 0; rows = rows.slice(TOGETHER)) {
        await Promise.all(rows.slice(0, TOGETHER).map(snapshot));
        // As long as the rows on the disk do not name the snapshot, the content counts as half-written after power
        // loss.
        await context.syncRows();
        await sleep(runtime, PAUSE_MS, over.signal);
        if (over.signal.aborted || !maySnapshot(context)) return;
      }
      const last = inodes.at(-1);
      if (last === undefined || inodes.length < SLICE) return;
      after = last.id;
      await sleep(runtime, PAUSE_MS, over.signal);
    }
  }

  return {
    start: lookLater,
    stop() {
      over.abort();
      timer?.cancel();
    },
  };
}

/** False while requests are in flight, which have the disk for themselves, and while the disk is in trouble. */
function maySnapshot({ sending, disk }: LocalFiles & Uploads): boolean {
  return sending.size === 0 && disk.trouble === undefined && disk.hasRows;
}

/** For each inode that was not changed for a while and whose bytes are all here, one row that is to be sent. */
function atRest(context: Rows & LocalFiles & Host, inodes: readonly Inode[]): NodeRow[] {
  const { metadata, cacheFiles, runtime, readFailures } = context;
  const before = plus(runtime.now(), -REST_MS);
  return inodes.flatMap(({ id, kernelNodeId, content, hash, synced }) => {
    if (
      content !== "dirty" ||
      hash !== null ||
      synced === "quarantined" ||
      (cacheFiles.get(kernelNodeId)?.writers ?? 0) > 0
    )
      return [];
    const cacheFile = metadata.cacheFiles.get(kernelNodeId);
    // A file that failed once is tried again by the write-back loop. A check of unverified ranges may need the gateway.
    if (!isWhole(cacheFile) || !isVerified(cacheFile) || readFailures.get(kernelNodeId) !== undefined) return [];
    const rows = metadata.entries.ofInode(id).flatMap((entry) => metadata.nodes.ofEntry(entry.id) ?? []);
    const row = rows.find(({ dirtySince, parked }) => dirtySince !== null && parked === null);
    return row === undefined || rows.some(({ changedAt }) => changedAt !== null && changedAt > before) ? [] : [row];
  });
}

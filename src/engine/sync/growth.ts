/**
 * Counts the bytes by which the workspace will grow when all waiting content is sent. The rows are added up a slice at
 * a time, while uploads end and programs write; still each byte counts once. The bytes of an upload that ends are at
 * the gateway from then on, so they are subtracted if their row was added before. The rows of open files are as old
 * as the last flush, so open files are left out of the slices and added at the end in one go.
 */
import { sleep } from "../../lib/runtime.ts";
import type { AttemptId, InodeId, NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow, QueuePlace } from "../../metadata/nodes.ts";
import type { CacheFile, Host, LocalFiles, Rows } from "../core/index.ts";

const SLICE = 500;

/** The effect of an attempt that was answered: its node row, and the bytes by which the gateway holds more. */
export interface Grown {
  readonly node: NodeRowId;
  readonly growth: number;
}

interface Growth {
  /** Resolves to the bytes by which the workspace will grow. Rejects with the error of the disk or the database. */
  measure(): Promise<number>;
  /** Call it in the transaction that closes the attempt. If that transaction is undone, the call does not count. */
  grew(attempt: AttemptId, grown: Grown): void;
  /** True: the transaction of that call was undone. */
  isUndone(attempt: AttemptId, node: NodeRowId): boolean;
}

interface Sum {
  /** The place of the last row that was added. */
  upTo: QueuePlace | undefined;
  /** Node rows that are left out of the slices. */
  readonly apart: ReadonlySet<NodeRowId>;
  /** Attempts that ended after their rows were added. */
  readonly ended: Map<AttemptId, Grown>;
}

export function createGrowth(context: Pick<Rows & LocalFiles & Host, "metadata" | "runtime" | "cacheFiles">): Growth {
  const { metadata, runtime, cacheFiles } = context;
  const underWay = new Set<Sum>();

  const rowsOf = ({ inode }: CacheFile) =>
    metadata.entries.ofInode(inode).flatMap((entry) => metadata.nodes.ofEntry(entry.id)?.id ?? []);

  const isUndone = (attempt: AttemptId, node: NodeRowId) => metadata.attempts.openOf(node)?.id === attempt;

  async function addUp(sum: Sum): Promise<number> {
    let bytes = 0;
    for (;;) {
      const rows = metadata.nodes.pendingGrowth(SLICE, sum.upTo);
      for (const row of rows) if (!sum.apart.has(row.id)) bytes += row.bytes;
      sum.upTo = rows.at(-1) ?? sum.upTo;
      if (rows.length < SLICE) return bytes;
      await sleep(runtime, 0);
    }
  }

  /** Sizes in bytes, by inode, of the open files whose rows may be behind. */
  async function sizes(): Promise<Map<InodeId, number>> {
    const behind = [...cacheFiles.values()].filter((cacheFile) => cacheFile.mayHaveUnpersistedStat);
    const found = await Promise.all(
      behind.map(async (cacheFile) => [cacheFile, (await cacheFile.stat()).size] as const),
    );
    // If the file was flushed meanwhile, its row is newer than this size.
    return new Map(
      found.filter(([cacheFile]) => cacheFile.mayHaveUnpersistedStat).map(([{ inode }, size]) => [inode, size]),
    );
  }

  function ofRow(id: NodeRowId): number {
    const row = metadata.nodes.get(id);
    return row === undefined ? 0 : growthOf(context, row);
  }

  return {
    isUndone,
    grew(attempt, grown) {
      const row = metadata.nodes.get(grown.node);
      if (row === undefined || row.dirtySince === null) return;
      for (const { upTo, apart, ended } of underWay) {
        const isAdded =
          upTo !== undefined &&
          !apart.has(row.id) &&
          (row.dirtySince < upTo.since || (row.dirtySince === upTo.since && row.id <= upTo.id));
        if (isAdded) ended.set(attempt, grown);
      }
    },
    async measure() {
      const apart = new Set([...cacheFiles.values()].flatMap(rowsOf));
      const sum: Sum = { upTo: undefined, apart, ended: new Map() };
      underWay.add(sum);
      try {
        let bytes = await addUp(sum);
        const unrecorded = await sizes();
        for (const [attempt, { node, growth }] of sum.ended) if (!isUndone(attempt, node)) bytes -= growth;
        for (const id of apart) bytes += ofRow(id);
        for (const [inode, size] of unrecorded) {
          bytes += (size - (metadata.inodes.get(inode)?.size ?? 0)) * metadata.entries.links(inode);
        }
        return bytes;
      } finally {
        underWay.delete(sum);
      }
    },
  };
}

/** The bytes by which the workspace grows when the row's content is sent. Negative if it shrinks. */
export function growthOf(context: Pick<Rows, "metadata">, row: NodeRow): number {
  return row.kind === "file" ? (inodeOf(context, row)?.size ?? 0) - (row.base?.size ?? 0) : 0;
}

function inodeOf({ metadata }: Pick<Rows, "metadata">, row: NodeRow) {
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  return entry === undefined ? undefined : metadata.inodes.get(entry.inode);
}

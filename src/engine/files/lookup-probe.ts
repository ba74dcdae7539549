/**
 * The lookup probe finds orphans and superseded kernel node ids for which no FORGET will come, because the kernel does
 * not have them. It was never told of them (the journal made and removed them), or it had forgotten them before. Now
 * and then the kernel is asked which of these it has, and the others are forgotten here. The alternative, to remember
 * what the kernel was told, would cost something at each lookup, for each inode, and from daemon to daemon. The kernel
 * itself knows, whichever daemon told it. Only the progress of a round through the rows is kept here.
 *
 * - The kernel may not have made its inode yet for an answer that it got. No answer gives the kernel an id that has
 *   such a row (`found` in tree/stat.ts). So once a row is older than a whole round, which is longer than a request may
 *   take, the kernel has processed all earlier answers. Only such rows are asked about. A program that still comes with
 *   a forgotten id gets ESTALE and looks the name up.
 * - Anything may happen before the answer of the kernel comes. So the row is looked at again in the turn in which it is
 *   removed. A row that went and came back is another row. A FORGET that comes as well does no harm.
 * - Rows of open files and of files that are being sent stay (orphans.ts), and are asked about again.
 * - While the device changes hands or is closed, the kernel's answer names no id as unknown.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import { dropTogether, SLICE } from "./on-forget.ts";
import type { LocalFiles } from "./room.ts";

/** A round is spread over this many steps, with other work in between. */
const STEPS = 60;
/** Rows of each kind per step. */
const ROWS = 200;
/** How many times in a row a step is put off while programs keep the thread busy. */
const PUT_OFF_MAX = 10;

/** Ids of rows. */
interface Marks {
  readonly orphans: number;
  readonly superseded: number;
}
const NONE: Marks = { orphans: 0, superseded: 0 };

/** An inode that is forgotten if the kernel has none of the kernel node ids `asked`. */
interface Candidate {
  readonly asked: readonly KernelNodeId[];
  readonly kernelNodeId: KernelNodeId;
  /** True: the row is still the same, and the inode may still be forgotten. */
  isStill(): boolean;
}

interface LookupProbe {
  start(): void;
  stop(): void;
}

export function createLookupProbe(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host): LookupProbe {
  const { metadata, runtime, foregroundThrottle, disk, fileState, kernel, folderUse, log } = context;
  const { inodes, entries } = metadata;
  const roundMs = folderUse.requestMs;
  const pauseMs = roundMs / STEPS;
  let timer: ReturnType<typeof runtime.setTimer> | undefined;
  let isStopped = false;
  /**
   * `newest`: the last rows when this round began. `upTo`: the last rows when the round before began. `at`: the
   * progress of this round.
   */
  let newest = NONE;
  let upTo = NONE;
  let at = NONE;
  let putOff = 0;

  function beginRound(): void {
    [upTo, at] = [newest, NONE];
    newest = { orphans: inodes.newestOrphan(), superseded: inodes.newestSuperseded() };
  }

  function later(milliseconds: number, work: () => Promise<void> | void): void {
    if (isStopped) return;
    timer = runtime.setTimer(milliseconds, () => void work());
  }

  async function go(): Promise<void> {
    let isOver = true;
    try {
      if (foregroundThrottle.isBusy() && putOff < PUT_OFF_MAX) {
        putOff += 1;
        later(pauseMs, go);
        return;
      }
      putOff = 0;
      // While the rows take no changes, each removal would only log an error.
      if (disk.hasRows) isOver = await step();
    } catch (error) {
      if (!isStopped) log.error({ err: error }, "the lookup probe failed");
    }
    if (!isOver) later(pauseMs, go);
    else later(roundMs, startRound);
  }

  function startRound(): Promise<void> {
    beginRound();
    return go();
  }

  /** True: the round is over. */
  async function step(): Promise<boolean> {
    const orphans = inodes.orphans(at.orphans, upTo.orphans, ROWS);
    const superseded = inodes.superseded(at.superseded, upTo.superseded, ROWS);
    at = { orphans: orphans.at(-1)?.id ?? at.orphans, superseded: superseded.at(-1)?.id ?? at.superseded };
    const candidates = metadata.transaction(() => [...orphans.flatMap(ofOrphan), ...superseded.flatMap(ofSuperseded)]);
    if (candidates.length > 0) {
      const lacking = (await kernel.cache.unknownToKernel?.(candidates.flatMap(({ asked }) => asked))) ?? new Set();
      await drop(candidates.filter(({ asked }) => asked.every((kernelNodeId) => lacking.has(kernelNodeId))));
    }
    return orphans.length < ROWS && superseded.length < ROWS;
  }

  async function drop(candidates: readonly Candidate[]): Promise<void> {
    for (let from = 0; from < candidates.length && !isStopped; from += SLICE) {
      const some = candidates.slice(from, from + SLICE).filter(({ isStill }) => isStill());
      if (some.length > 0)
        dropTogether(
          context,
          some.map(({ kernelNodeId }) => kernelNodeId),
        );
      await new Promise<void>((resolve) => runtime.soon(resolve));
    }
  }

  /**
   * The orphan goes with all its kernel node ids. A program may still hold any of them, so the kernel is asked about
   * all.
   */
  function ofOrphan({ id, inode: number }: { id: number; inode: InodeId }): Candidate[] {
    if (entries.links(number) > 0) inodes.hasName(number);
    const inode = inodes.get(number);
    // A removed folder goes after the names in it, which go by themselves.
    if (inode === undefined || entries.links(number) > 0 || !entries.isEmpty(number)) return [];
    const asked = inodes.kernelNodeIds(number);
    // The file is being made, and the kernel will be told of it.
    if (asked.some((kernelNodeId) => fileState.isUnknownToKernel(kernelNodeId))) return [];
    // An inode with a new name has no such row. If it lost that name too, it has another row.
    const isStill = () => inodes.orphans(id - 1, id, 1).length > 0;
    return [{ asked, kernelNodeId: inode.kernelNodeId, isStill }];
  }

  function ofSuperseded({ kernelNodeId }: { kernelNodeId: KernelNodeId }): Candidate[] {
    // An inode without a name goes as an orphan.
    const isStill = () => {
      const inode = inodes.ofKernelNodeId(kernelNodeId);
      return inode !== undefined && inode.kernelNodeId !== kernelNodeId && entries.links(inode.id) > 0;
    };
    return isStill() ? [{ asked: [kernelNodeId], kernelNodeId, isStill }] : [];
  }

  return {
    start() {
      if (kernel.cache.unknownToKernel === undefined) return;
      beginRound();
      later(roundMs, startRound);
    },
    stop() {
      // An answer of the kernel may still be on its way.
      isStopped = true;
      timer?.cancel();
    },
  };
}

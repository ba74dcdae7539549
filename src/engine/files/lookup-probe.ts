/**
 * Inodes without a name and superseded lineages that the kernel will not forget, because it does not have them: it was
 * never told of them (they came by the journal, and went by it), or had forgotten them before. So now and then it is
 * asked which of these it has; the others are forgotten now. To remember what it was told would cost something at each
 * lookup, for each inode and from daemon to daemon; it knows itself, whichever daemon told it. Kept here is only how
 * far the way through the rows has come.
 *
 * - Who was answered may not have made his inode yet. No answer names what has such a row (stat.ts: `found`), so all
 *   there were are taken in when the row has been there for a whole round, longer than a request may take; only such
 *   rows are asked about. Should a program still come with one that is gone, it hears ESTALE, and looks the name up.
 * - Before and while the answer comes, anything may happen: the row is looked at again in the turn in which it goes,
 *   and one that went and came back is another one. A FORGET that comes too finds nothing, or leaves nothing.
 * - What is open, or being sent, stays (nameless.ts), and is asked about again.
 * - While the device changes hands or is closed, the kernel says of nothing that it lacks it.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { KernelNodeId } from "../api/index.ts";
import type { Context } from "../core/index.ts";
import { dropTogether, SLICE } from "./on-forget.ts";

/** From one way through the rows to the next, where nothing else is set. */
export const ROUND_MS = 60_000;
/** Steps of a round would be so many: between two of them others have their turn. */
const STEPS = 60;
/** Rows of each kind in one step. */
const ROWS = 200;
/** A step makes way for programs so often; then it is done all the same. */
const PUT_OFF_MAX = 10;

/** Numbers of rows. */
interface Marks {
  readonly nameless: number;
  readonly superseded: number;
}
const NONE: Marks = { nameless: 0, superseded: 0 };

/** What goes where the kernel has none of these lineages. */
interface Candidate {
  readonly asked: readonly KernelNodeId[];
  readonly lineage: KernelNodeId;
  /** Nothing has happened to it since. */
  isStill(): boolean;
}

export interface LookupProbe {
  start(): void;
  stop(): void;
}

export function createLookupProbe(context: Context): LookupProbe {
  const { metadata, runtime, foregroundThrottle, disk, fileState, kernel, settings, log } = context;
  const { inodes, entries } = metadata;
  const roundMs = settings.lookupProbeMs ?? ROUND_MS;
  const pauseMs = roundMs / STEPS;
  let timer: ReturnType<typeof runtime.setTimer> | undefined;
  let isStopped = false;
  /** What was there when this round began, and the one before; how far this one is. */
  let newest = NONE;
  let upTo = NONE;
  let at = NONE;
  let putOff = 0;

  function beginRound(): void {
    [upTo, at] = [newest, NONE];
    newest = { nameless: inodes.newestOrphan(), superseded: inodes.newestSuperseded() };
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
      // Where rows take no changes, each would be one more complaint.
      if (disk.hasRows) isOver = await step();
    } catch (error) {
      if (!isStopped) log.error({ err: error }, "what the kernel does not have could not be found out");
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
    const orphans = inodes.nameless(at.nameless, upTo.nameless, ROWS);
    const superseded = inodes.superseded(at.superseded, upTo.superseded, ROWS);
    at = { nameless: orphans.at(-1)?.id ?? at.nameless, superseded: superseded.at(-1)?.id ?? at.superseded };
    const candidates = metadata.transaction(() => [...orphans.flatMap(ofOrphan), ...superseded.flatMap(ofSuperseded)]);
    if (candidates.length > 0) {
      const lacking = (await kernel.cache.unknownToKernel?.(candidates.flatMap(({ asked }) => asked))) ?? new Set();
      await drop(candidates.filter(({ asked }) => asked.every((lineage) => lacking.has(lineage))));
    }
    return orphans.length < ROWS && superseded.length < ROWS;
  }

  async function drop(candidates: readonly Candidate[]): Promise<void> {
    for (let from = 0; from < candidates.length && !isStopped; from += SLICE) {
      const some = candidates.slice(from, from + SLICE).filter(({ isStill }) => isStill());
      if (some.length > 0)
        dropTogether(
          context,
          some.map(({ lineage }) => lineage),
        );
      await new Promise<void>((resolve) => runtime.soon(resolve));
    }
  }

  /** It goes with all its lineages: a program may hold on to one that it had before it lost its name. */
  function ofOrphan({ id, inode: number }: { id: number; inode: InodeId }): Candidate[] {
    if (entries.links(number) > 0) inodes.hasName(number);
    const inode = inodes.get(number);
    // Names in a removed folder go by themselves, and before it.
    if (inode === undefined || entries.links(number) > 0 || !entries.isEmpty(number)) return [];
    const asked = inodes.lineages(number);
    // Of one that is being made the kernel is still to hear.
    if (asked.some((lineage) => fileState.notLookedUp.has(lineage))) return [];
    // A name it got and lost again has given it another row; with a name it stays.
    const isStill = () => inodes.nameless(id - 1, id, 1).length > 0;
    return [{ asked, lineage: inode.lineage, isStill }];
  }

  function ofSuperseded({ lineage }: { lineage: KernelNodeId }): Candidate[] {
    // Without a name it is the inode that goes.
    const isStill = () => {
      const inode = inodes.ofKernelNodeId(lineage);
      return inode !== undefined && inode.lineage !== lineage && entries.links(inode.id) > 0;
    };
    return isStill() ? [{ asked: [lineage], lineage, isStill }] : [];
  }

  return {
    start() {
      if (kernel.cache.unknownToKernel === undefined) return;
      beginRound();
      later(roundMs, startRound);
    },
    stop() {
      // An answer may be on its way.
      isStopped = true;
      timer?.cancel();
    },
  };
}

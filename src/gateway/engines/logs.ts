/**
 * Logs of executions, two files each. ID.log is the output of the engine, line by line, also readable by people.
 * ID.index has a record of fixed size for each line, so that a page is found without the pages before it. Bytes are
 * written before the record that names them, and bytes without a record do not count: a gateway may die, and a disk may
 * be full, between any two writes. Nothing is synced: a power loss may take the last seconds. This module knows no SQL,
 * no HTTP and no process.
 */
import { mkdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import type { LogLine } from "../../contract/engines.ts";
import type { Clock } from "../../lib/runtime.ts";
import { createSignal, type Signal } from "../signal.ts";
import { createLineCutter } from "./lines.ts";
import { appendTo, countIn, LINE_COST_BYTES, type Line, type LogFiles, linesIn, STREAMS } from "./log-files.ts";

/** Limit of the log of one execution: its lines and its index. */
export const LOG_MAX_BYTES = 10 * 2 ** 20;
/** Part of it reserved for the lines of the gateway itself. */
const OWN_BYTES = 1024;
const FULL = `The log is full: of an execution ${LOG_MAX_BYTES / 2 ** 20} MiB are kept, and nothing of what it says from here on.`;

export interface LogWriter {
  /** Never throws. When lines could not be written, a line reports them missing as soon as there is room again. */
  write(stream: LogLine["stream"], bytes: Uint8Array): void;
  /** Ends the lines that have no end yet. */
  close(): Promise<void>;
}

export interface Logs {
  /** Appends to the existing log. An execution has at most one open log at a time. */
  open(execution: string): LogWriter;
  /** Returns lines with a number above `after`, at most `limit`, in order. */
  lines(execution: string, after: number, limit: number): Promise<LogLine[]>;
  count(execution: string): Promise<number>;
  /**
   * Returns the bytes of the engine's output, kept or not; for a log of an earlier gateway process only the kept ones.
   */
  bytes(execution: string): number;
  /** Fires with the id of the execution when lines were added or the log was closed. */
  readonly news: Signal;
  /** Must not be called for an open log. */
  remove(execution: string): Promise<void>;
}

interface LogNeeds {
  /** Created when missing, readable by its owner only. */
  readonly folder: string;
  readonly clock: Pick<Clock, "wallClock">;
}

export function openLogs({ folder, clock }: LogNeeds): Logs {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const news = createSignal();
  /** Bytes of output of open logs, and of logs that were full. */
  const said = new Map<string, number>();
  const filesOf = (execution: string): LogFiles => ({
    log: path.join(folder, `${execution}.log`),
    index: path.join(folder, `${execution}.index`),
  });
  const kept = (execution: string) => statSync(filesOf(execution).log, { throwIfNoEntry: false })?.size ?? 0;

  return {
    news,
    open(execution) {
      said.set(execution, kept(execution));
      const appender = appendTo(filesOf(execution));
      const cutters = STREAMS.map((stream) => ({ stream, cutter: createLineCutter() }));
      let isFull = false;
      let missing = 0;

      const keep = (lines: readonly Line[]) => {
        const gap = missing === 0 ? [] : [own(`The gateway had no room for ${missing} lines, which are missing here.`)];
        const all = [...gap, ...lines];
        if (isFull || all.length === 0) return;
        const fitting = all.slice(0, fittingIn(all, LOG_MAX_BYTES - OWN_BYTES - appender.bytes()));
        const isLast = fitting.length < all.length;
        const added = appender.append(isLast ? [...fitting, own(FULL)] : fitting, clock.wallClock());
        if (added > 0) news.fire([execution]);
        isFull = isLast && added > fitting.length;
        if (isFull) missing = 0;
        else missing = added < gap.length ? missing + lines.length : all.length - added;
      };

      return {
        write(stream, bytes) {
          if (stream !== "gateway") said.set(execution, (said.get(execution) ?? 0) + bytes.length);
          if (isFull) return;
          const cutter = cutters.find((one) => one.stream === stream)?.cutter;
          keep((cutter?.push(bytes) ?? []).map((line) => ({ stream, bytes: line })));
        },
        async close() {
          keep(cutters.flatMap(({ stream, cutter }) => cutter.rest().map((bytes) => ({ stream, bytes }))));
          appender.close();
          if (!isFull) said.delete(execution);
          news.fire([execution]);
        },
      };
    },
    lines: async (execution, after, limit) => linesIn(filesOf(execution), after, limit),
    count: async (execution) => countIn(filesOf(execution)),
    bytes: (execution) => said.get(execution) ?? kept(execution),
    async remove(execution) {
      said.delete(execution);
      const { log, index } = filesOf(execution);
      await rm(index, { force: true });
      await rm(log, { force: true });
    },
  };
}

const own = (text: string): Line => ({ stream: "gateway", bytes: Buffer.from(text) });

/** Returns how many of the lines, from the first on, fit in this many bytes. */
function fittingIn(lines: readonly Line[], bytes: number): number {
  let left = bytes;
  for (const [index, line] of lines.entries()) {
    left -= line.bytes.length + LINE_COST_BYTES;
    if (left < 0) return index;
  }
  return lines.length;
}

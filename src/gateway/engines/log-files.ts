/** The two files of a log, as logs.ts describes them. Lines are appended, and read from any number on. */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import type { LogLine } from "../../contract/engines.ts";
import { hasCode } from "../../lib/system-error.ts";

export const STREAMS = ["out", "err", "gateway"] as const satisfies readonly LogLine["stream"][];

/**
 * A record: the time of the line in milliseconds since the epoch (float64), the end of the line in the log (uint32),
 * its stream (uint32); little-endian.
 */
const RECORD_BYTES = 16;
const [TIME, END, STREAM] = [0, 8, 12];
/** Cost of a line besides its text: its record, and its end in the log. */
export const LINE_COST_BYTES = RECORD_BYTES + 1;

export interface LogFiles {
  readonly log: string;
  readonly index: string;
}

export interface Line {
  readonly stream: LogLine["stream"];
  readonly bytes: Uint8Array;
}

interface Appender {
  /** Size of both files. */
  bytes(): number;
  /** Returns how many of the lines, from the first on, were written. Never throws. */
  append(lines: readonly Line[], time: number): number;
  close(): void;
}

interface OpenFiles {
  readonly log: number;
  readonly index: number;
}

/** The valid part of the files: the number of whole lines named by a record, and the end of the last one. */
interface Extent {
  readonly lines: number;
  readonly end: number;
}

export function appendTo(files: LogFiles): Appender {
  let opened: OpenFiles | undefined;
  let extent: Extent = { lines: 0, end: 0 };
  const openOnce = (): OpenFiles => {
    if (opened === undefined) {
      opened = openBoth(files, constants.O_RDWR | constants.O_CREAT);
      extent = extentOf(opened);
      // Records of lines that are missing would name bytes of later lines.
      ftruncateSync(opened.index, extent.lines * RECORD_BYTES);
    }
    return opened;
  };
  const attempt = (action: () => void) => {
    try {
      action();
    } catch {
      // There is no room, or no descriptor. The extent counts the written bytes.
    }
  };
  attempt(openOnce);
  return {
    bytes: () => extent.end + extent.lines * RECORD_BYTES,
    append(lines, time) {
      const before = extent.lines;
      attempt(() => {
        const { log, index } = openOnce();
        const { lines: count, end } = extent;
        writeAll(log, textOf(lines), end);
        writeAll(index, recordsOf(lines, time, end), count * RECORD_BYTES);
      });
      if (opened !== undefined) extent = extentOf(opened);
      return extent.lines - before;
    },
    close() {
      if (opened !== undefined) closeBoth(opened);
    },
  };
}

export function countIn(files: LogFiles): number {
  return reading(files, 0, (opened) => extentOf(opened).lines);
}

/** Returns lines with a number above `after`, at most `limit`. */
export function linesIn(files: LogFiles, after: number, limit: number): LogLine[] {
  return reading<LogLine[]>(files, [], (opened) => {
    const { lines } = extentOf(opened);
    const last = Math.min(lines, after + limit);
    if (after >= last) return [];
    const records = readAll(opened.index, after * RECORD_BYTES, last * RECORD_BYTES);
    let start = after === 0 ? 0 : readRecord(opened, after - 1).end;
    const first = start;
    const text = readAll(opened.log, first, recordAt(records, last - after - 1).end);
    return Array.from({ length: last - after }, (_, at) => {
      const { time, end, stream } = recordAt(records, at);
      const line = text.toString("utf8", start - first, end - 1 - first);
      start = end;
      return { number: after + at + 1, time: new Date(time).toISOString(), stream, text: line };
    });
  });
}

function reading<T>(files: LogFiles, absent: T, read: (opened: OpenFiles) => T): T {
  let opened: OpenFiles;
  try {
    opened = openBoth(files, constants.O_RDONLY);
  } catch (error) {
    // The execution has printed nothing yet.
    if (hasCode(error, "ENOENT")) return absent;
    throw error;
  }
  try {
    return read(opened);
  } finally {
    closeBoth(opened);
  }
}

function openBoth(files: LogFiles, flags: number): OpenFiles {
  const log = openSync(files.log, flags, 0o600);
  try {
    return { log, index: openSync(files.index, flags, 0o600) };
  } catch (error) {
    closeSync(log);
    throw error;
  }
}

function closeBoth({ log, index }: OpenFiles): void {
  closeSync(log);
  closeSync(index);
}

function extentOf(opened: OpenFiles): Extent {
  const size = fstatSync(opened.log).size;
  for (let lines = Math.floor(fstatSync(opened.index).size / RECORD_BYTES); lines > 0; lines -= 1) {
    const { end } = readRecord(opened, lines - 1);
    if (end <= size) return { lines, end };
  }
  return { lines: 0, end: 0 };
}

function readRecord({ index }: OpenFiles, line: number) {
  return recordAt(readAll(index, line * RECORD_BYTES, (line + 1) * RECORD_BYTES), 0);
}

function recordAt(records: Buffer, at: number) {
  const from = at * RECORD_BYTES;
  return {
    time: records.readDoubleLE(from + TIME),
    end: records.readUInt32LE(from + END),
    stream: STREAMS[records.readUInt32LE(from + STREAM)] ?? "gateway",
  };
}

function recordsOf(lines: readonly Line[], time: number, start: number): Buffer {
  const records = Buffer.alloc(lines.length * RECORD_BYTES);
  let end = start;
  for (const [at, { stream, bytes }] of lines.entries()) {
    end += bytes.length + 1;
    records.writeDoubleLE(time, at * RECORD_BYTES + TIME);
    records.writeUInt32LE(end, at * RECORD_BYTES + END);
    records.writeUInt32LE(STREAMS.indexOf(stream), at * RECORD_BYTES + STREAM);
  }
  return records;
}

const NEWLINE = Buffer.from("\n");
const textOf = (lines: readonly Line[]) => Buffer.concat(lines.flatMap(({ bytes }) => [bytes, NEWLINE]));

function readAll(fd: number, start: number, end: number): Buffer {
  const buffer = Buffer.alloc(end - start);
  let length = 0;
  while (length < buffer.length) {
    const read = readSync(fd, buffer, length, buffer.length - length, start + length);
    if (read === 0) throw new Error(`A log ends at ${start + length}, expected ${end} bytes.`);
    length += read;
  }
  return buffer;
}

function writeAll(fd: number, bytes: Buffer, position: number): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
  }
}

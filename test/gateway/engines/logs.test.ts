/** Logs: lines of what comes in chunks, how much is kept, and what is there after a death or with a full disk. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { rm, statfs, writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createLineCutter, LINE_MAX_BYTES } from "../../../src/gateway/engines/lines.ts";
import { LOG_MAX_BYTES, type Logs, openLogs } from "../../../src/gateway/engines/logs.ts";
import { wallTime } from "../../../src/lib/clocks.ts";
import { SEED } from "../../support/seed.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const NOON = Date.UTC(2026, 0, 1, 12);
const FULL = "The log is full: of an execution 10 MiB are kept, and nothing of what it says from here on.";

let now: number;
let folder: string;
let logs: Logs;
const openIn = (place: string) => openLogs({ folder: place, clock: { wallClock: () => wallTime(now) } });

beforeEach(async () => {
  now = NOON;
  folder = await temporaryFolder();
  logs = openIn(folder);
});

const texts = async (after = 0, limit = 1_000_000, id = "e") =>
  (await logs.lines(id, after, limit)).map(({ text }) => text);

describe("lines", () => {
  /** All at once, by the rules alone. */
  function expected(bytes: Buffer, max: number): string[] {
    const whole = bytes.toString("latin1");
    const lines = whole.split("\n");
    const rest = lines.pop() ?? "";
    const ended = lines.map((line) => line.replace(/\r$/, ""));
    return [...ended, ...(rest === "" ? [] : [rest])].flatMap((line) => {
      const cut: string[] = [];
      let left = line;
      while (left.length > max) {
        // As many bytes as fit and are whole characters; any where it is no text.
        const ends = [0, 1, 2, 3].map((less) => max - less);
        const end = ends.find((at) => !/^[\x80-\xbf]/.test(left.slice(at))) ?? max;
        cut.push(left.slice(0, end));
        left = left.slice(end);
      }
      return [...cut, left];
    });
  }

  const inChunks = (bytes: Buffer, cuts: readonly number[], max: number) => {
    const cutter = createLineCutter(max);
    const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
    const found: string[] = [];
    const take = (lines: Uint8Array[]) => found.push(...lines.map((line) => Buffer.from(line).toString("latin1")));
    let from = 0;
    for (const to of [...places, bytes.length]) {
      const chunk = Buffer.from(bytes.subarray(from, to));
      take(cutter.push(chunk));
      // A reader's buffer may be used again.
      chunk.fill(0x21);
      from = to;
    }
    take(cutter.rest());
    return found;
  };

  const byte = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(0x0a, 0x0d, 0x61) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 255 }) },
  );
  const anything = fc.oneof(
    fc.array(byte, { maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
    fc
      .array(fc.constantFrom("a", "é", "€", "🙂", "\n", "\r\n"), { maxLength: 40 })
      .map((all) => Buffer.from(all.join(""))),
  );

  test("are the same however their bytes come in chunks", () => {
    fc.assert(
      fc.property(
        anything,
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.integer({ min: 4, max: 9 }),
        (bytes, cuts, max) => {
          expect(inChunks(bytes, cuts, max)).toEqual(expected(bytes, max));
        },
      ),
      { seed: SEED, numRuns: 3000 },
    );
  });

  test("of text are text, also where they are cut, and no piece is longer than it may be", () => {
    const characters = fc.array(fc.constantFrom("a", "é", "€", "🙂"), { minLength: 5, maxLength: 60 });
    fc.assert(
      fc.property(characters, fc.array(fc.nat(), { maxLength: 5 }), (all, cuts) => {
        const pieces = inChunks(Buffer.from(all.join("")), cuts, 8).map((piece) => Buffer.from(piece, "latin1"));
        expect(pieces.map(String).join("")).toBe(all.join(""));
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(8);
        for (const piece of pieces.slice(0, -1)) expect(piece.length).toBeGreaterThanOrEqual(5);
      }),
      { seed: SEED },
    );
  });
});

test("a log has each line with its number, its time and its stream, as soon as it has ended", async () => {
  const log = logs.open("e");
  expect([await logs.lines("e", 0, 9), await logs.count("e"), await logs.count("never")]).toEqual([[], 0, 0]);
  log.write("out", Buffer.from("one\ntw"));
  now += 1500;
  log.write("err", Buffer.from("oops\r\n\n"));
  log.write("out", Buffer.from("o\nnot UTF-8: \xff\xfe\n", "latin1"));
  expect(await logs.count("e")).toBe(5);
  log.write("out", Buffer.from("no end"));
  log.write("gateway", Buffer.from("said by the gateway\n"));
  expect(logs.bytes("e")).toBe(6 + 7 + 16 + 6);
  await log.close();
  const [early, late] = ["2026-01-01T12:00:00.000Z", "2026-01-01T12:00:01.500Z"];
  expect(await logs.lines("e", 0, 100)).toEqual([
    { number: 1, time: early, stream: "out", text: "one" },
    { number: 2, time: late, stream: "err", text: "oops" },
    { number: 3, time: late, stream: "err", text: "" },
    { number: 4, time: late, stream: "out", text: "two" },
    { number: 5, time: late, stream: "out", text: "not UTF-8: ��" },
    { number: 6, time: late, stream: "gateway", text: "said by the gateway" },
    { number: 7, time: late, stream: "out", text: "no end" },
  ]);
  expect([await texts(2, 2), await texts(7), await texts(99)]).toEqual([["", "two"], [], []]);
  expect((statSync(path.join(folder, "e.log")).mode & 0o777).toString(8)).toBe("600");
  await logs.remove("e");
  expect([await logs.count("e"), logs.bytes("e")]).toEqual([0, 0]);
});

test("a line of 10 MB is cut into pieces, of whole characters", async () => {
  const log = logs.open("e");
  const line = Buffer.from("€".repeat(Math.ceil(1e7 / 3)));
  for (let from = 0; from < line.length; from += 65_536) log.write("out", line.subarray(from, from + 65_536));
  log.write("out", Buffer.from("\nnext\n"));
  await log.close();
  const pieces = await texts();
  expect(pieces.at(-1)).toBe("next");
  expect(pieces.slice(0, -1).join("")).toBe(line.toString());
  for (const piece of pieces.slice(0, -2)) expect(Buffer.byteLength(piece)).toBe(LINE_MAX_BYTES - 1);
});

test.each([
  ["short lines", Buffer.from("y\n".repeat(32_768))],
  ["empty lines", Buffer.from("\n".repeat(65_536))],
  ["one line", Buffer.alloc(65_536, "x")],
  ["anything", randomBytes(65_536)],
])("of %s without end it keeps what it may, says so once, and drops the rest", async (_, chunk) => {
  const log = logs.open("e");
  const chunks = 1000;
  for (let index = 0; index < chunks; index += 1) log.write(index % 2 === 0 ? "out" : "err", chunk);
  log.write("gateway", Buffer.from("too late\n"));
  await log.close();
  expect(logs.bytes("e")).toBe(chunks * chunk.length);
  const count = await logs.count("e");
  const last = await logs.lines("e", count - 2, 9);
  expect(last.map(({ stream, text }) => [stream === "gateway", text === FULL])).toEqual([
    [false, false],
    [true, true],
  ]);
  const kept = ["log", "index"].reduce((sum, kind) => sum + statSync(path.join(folder, `e.${kind}`)).size, 0);
  expect(kept).toBeLessThanOrEqual(LOG_MAX_BYTES);
  expect(kept).toBeGreaterThan(LOG_MAX_BYTES - 2 * LINE_MAX_BYTES - 2048);
  await logs.remove("e");
  expect(logs.bytes("e")).toBe(0);
});

test("a page is found without what is before and behind it", async () => {
  const log = logs.open("e");
  for (let line = 1; line <= 5000; line += 1) log.write("out", Buffer.from(`line ${line}\n`));
  await log.close();
  const page = await logs.lines("e", 2000, 50);
  expect(page.map(({ text }) => text)).toEqual(Array.from({ length: 50 }, (_, index) => `line ${2001 + index}`));
  for (const kind of ["log", "index"]) {
    const file = path.join(folder, `e.${kind}`);
    const bytes = readFileSync(file);
    const each = kind === "index" ? 16 : 9;
    // But for the last record, which says how much there is.
    bytes.fill(0xff, 0, 1990 * each);
    if (kind === "index") bytes.fill(0xff, 2050 * each, 4999 * each);
    writeFileSync(file, bytes);
  }
  expect(await logs.lines("e", 2000, 50)).toEqual(page);
});

test("wherever the files of a gateway that died end, whole lines are there, the first ones, and it goes on after them", async () => {
  const all = Array.from({ length: 12 }, (_, line) => `line ${line} ${"x".repeat(line * 3)}`);
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 1000 }), fc.nat({ max: 1000 }), async (logCut, indexCut) => {
      await logs.remove("e");
      const log = logs.open("e");
      for (const line of all) log.write("out", Buffer.from(`${line}\n`));
      await log.close();
      for (const [kind, cut] of [
        ["log", logCut],
        ["index", indexCut],
      ] as const) {
        const file = path.join(folder, `e.${kind}`);
        truncateSync(file, Math.min(cut, statSync(file).size));
      }
      logs = openIn(folder);
      const left = await texts();
      expect(left).toEqual(all.slice(0, left.length));
      expect(await logs.count("e")).toBe(left.length);
      const whole = Math.floor(Math.min(indexCut, 16 * all.length) / 16);
      const bytes = all.map((_, index) => Buffer.byteLength(all.slice(0, index + 1).join("\n")) + 1);
      expect(left.length).toBe(Math.min(whole, bytes.filter((end) => end <= logCut).length));
      const next = logs.open("e");
      // Longer than all that was there.
      next.write("out", Buffer.from(`${"after".repeat(200)}\n`));
      await next.close();
      expect(await texts()).toEqual([...left, "after".repeat(200)]);
    }),
    { seed: SEED, numRuns: 200 },
  );
});

test("news come with lines and with the end, to those who wait for this execution", async () => {
  const [log, other] = [logs.open("e"), logs.open("other")];
  const heard: string[] = [];
  const timer = { setTimer: () => ({ cancel() {} }) };
  const listen = (what: string) =>
    logs.news
      .wait(timer, 1, "e", () => {})
      .then(() => {
        heard.push(what);
      });
  const lines = listen("lines");
  other.write("out", Buffer.from("elsewhere\n"));
  log.write("out", Buffer.from("no line yet"));
  await Promise.resolve();
  expect(heard).toEqual([]);
  log.write("out", Buffer.from("\n"));
  await lines;
  const end = listen("end");
  await log.close();
  await end;
  expect(heard).toEqual(["lines", "end"]);
});

test("a disk that is full stops nobody, and the log says how much is missing once there is room again", async (context) => {
  const disk = await temporaryFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], { stdio: "pipe" });
  } catch {
    return context.skip("mounting a tmpfs needs root");
  }
  onTestFinished(() => void execFileSync("umount", ["-l", disk]));
  logs = openIn(disk);
  const log = logs.open("e");
  const late = logs.open("late");
  log.write("out", Buffer.from("first\n"));
  const { bsize, bfree } = await statfs(disk);
  await writeFile(path.join(disk, "filler"), Buffer.alloc(bfree * bsize));
  for (let line = 0; line < 1000; line += 1) log.write("out", Buffer.from(`${"x".repeat(99)}\n`));
  late.write("out", Buffer.from("not kept\nnor this\n"));
  const kept = await logs.count("e");
  expect(kept).toBeLessThan(1000);
  await rm(path.join(disk, "filler"));
  log.write("err", Buffer.from("again\n"));
  await log.close();
  await late.close();
  const [gap, again, ...more] = await texts(kept);
  expect([gap, again, more]).toEqual([
    `The gateway had no room for ${1001 - kept} lines, which are missing here.`,
    "again",
    [],
  ]);
  expect(await texts(0, 9, "late")).toEqual(["The gateway had no room for 2 lines, which are missing here."]);
  expect((await texts()).slice(0, 2)).toEqual(["first", "x".repeat(99)]);
});

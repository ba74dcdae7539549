/** Who reads what is not in memory: the device itself from a quick disk, JavaScript's threads from a slow one. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { compiled } from "../../src/lib/compiled.ts";
import { compilePreload } from "../support/preload.ts";

const SMALL = 4096;
const LARGE = 128 * 1024;

let folder: string;
let preloaded: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-slow-disk-"));
  preloaded = compilePreload(join(import.meta.dirname, "slow-disk.c"), join(folder, "slow-disk.so"));
  writeFileSync(join(folder, "file"), Buffer.alloc(LARGE, "x"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Who answers a READ of so many bytes, from a disk that takes so long for it, a while after the one before. */
type Ask = (asked: { size?: number; milliseconds?: number; after?: number }) => Promise<string>;

async function withReader(run: (ask: Ask) => Promise<void>): Promise<void> {
  const time = join(folder, "milliseconds");
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "disk-reader.mjs"), compiled("wsfs.node"), join(folder, "file")],
    {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, LD_PRELOAD: preloaded, WSFS_DISK_MS_FILE: time },
    },
  );
  const ended = new Promise((resolve) => child.on("close", resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask: Ask = async ({ size = SMALL, milliseconds = 0, after = 0 }) => {
    writeFileSync(time, String(milliseconds));
    child.stdin.write(`${size} ${after}\n`);
    return (await lines.next()).value;
  };
  try {
    await run(ask);
  } finally {
    child.stdin.end();
    await ended;
  }
}

it("a slow disk is not waited for, for the longer the slower it is; then it is tried again", () =>
  withReader(async (ask) => {
    expect(await ask({ milliseconds: 15 })).toBe("device");
    expect(await ask({ milliseconds: 15 })).toBe("JavaScript");
    // A hundred times as long: 1.5 s or more.
    expect(await ask({ after: 500 })).toBe("JavaScript");
    await vi.waitFor(async () => expect(await ask({ after: 100 })).toBe("device"), { timeout: 60_000 });
    // A read that lost its processor for a millisecond counts as slow, and is over long before this one.
    expect(await ask({ after: 500 })).toBe("device");
  }));

it("nor is one for a few milliseconds that takes longer than JavaScript and its threads would", () =>
  withReader(async (ask) => {
    const who: string[] = [];
    while (who.length < 20) who.push(await ask({ milliseconds: 1.5 }));
    expect(who[0]).toBe("device");
    expect(who).toContain("JavaScript");
  }));

it("many bytes are left to JavaScript, which has several read at a time", () =>
  withReader(async (ask) => {
    expect(await ask({ size: LARGE })).toBe("JavaScript");
    expect(await ask({ size: SMALL })).toBe("device");
  }));

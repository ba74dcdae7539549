/**
 * What a behaviour case is, and what cases are made of: short ways to say what should be there, and
 * to what Node cannot call (Python does). A case knows a folder, nothing of what serves it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { type BigIntStats, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Gets a fresh empty folder; throws when something is not as on any disk. */
export type Case = (dir: string) => void | Promise<void>;
/** By what they show. */
export type Cases = Readonly<Record<string, Case>>;

/** Thrown by a case that cannot be shown here, with the reason. */
export class NotHere extends Error {}

/** The code `action` fails with; "none" when it does not fail. */
export function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
  return "none";
}

export function fails(code: string, action: () => unknown): void {
  assert.equal(codeOf(action), code);
}

/** Of the name itself, to the nanosecond. */
export function stat(...path: string[]): BigIntStats {
  return lstatSync(join(...path), { bigint: true });
}

export function text(...path: string[]): string {
  return readFileSync(join(...path), "utf8");
}

export function names(...path: string[]): string[] {
  return readdirSync(join(...path)).sort();
}

export function exists(...path: string[]): boolean {
  return lstatSync(join(...path), { throwIfNoEntry: false }) !== undefined;
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Bytes that differ from place to place. */
export function pattern(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i + 4 <= length; i += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes.writeUInt32LE(state, i);
  }
  return bytes;
}

/** The interpreter itself: a version manager's wrapper takes longer than most cases. */
const PYTHON = "/usr/bin/python3";

/** What every script may use. Folders are named by the current folder, which is the case's. */
const PREAMBLE = `
import ctypes, ctypes.util, errno, fcntl, json, mmap, os, stat, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2
def renameat2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
def code(action, *args, **named):
    try: action(*args, **named)
    except OSError as e: return errno.errorcode[e.errno]
    return "none"
def put(name, data=b""):
    with open(name, "wb") as f: f.write(data if isinstance(data, bytes) else data.encode())
def get(name):
    with open(name, "rb") as f: return f.read()
def equal(got, expected):
    if got != expected: raise AssertionError(f"expected {expected!r}, got {got!r}")
def not_here(why):
    print("not here:", why); sys.exit(77)
`;

export function withPreamble(script: string): string {
  return PREAMBLE + script;
}

/** Runs the script in `dir`; its failed assertions are ours. */
export function python(dir: string, script: string): void {
  finish(spawnSync(PYTHON, ["-c", withPreamble(script)], { cwd: dir, encoding: "utf8" }));
}

/** Runs a bash script in `dir`, which must succeed; its output. */
export function sh(dir: string, script: string): string {
  return finish(spawnSync("bash", ["-euo", "pipefail", "-c", script], { cwd: dir, encoding: "utf8" }));
}

function finish(child: { status: number | null; stdout: string; stderr: string; error?: Error }): string {
  if (child.error !== undefined) throw child.error;
  if (child.status === 77) throw new NotHere(child.stdout.trim());
  if (child.status !== 0) throw new Error(`exit code ${child.status}: ${child.stdout}${child.stderr}`);
  return child.stdout;
}

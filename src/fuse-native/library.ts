/**
 * The one door to the optional package fuse-native, and through it to libfuse 2: loaded when it is asked for, and
 * kept from what its release 2.2.6 does wrong. Knows its calls and nothing of what they are answered with.
 */
import type Fuse from "fuse-native";
import type { Done, NativeSpace, NativeStat, Operations } from "fuse-native";
import { ERRNO } from "../fuse/errno.ts";
import { describeError } from "../lib/log.ts";

export type { Done, NativeSpace, NativeStat, Operations };

/** It cannot be used here: one line that says what is missing and where it is to be had. */
export class LibraryError extends Error {}

export interface Library {
  /** Resolves when the kernel has begun to ask. One mount a process, until its end. */
  mount(mountpoint: string, options: readonly string[], operations: Operations): Promise<void>;
}

const RELEASE = "2.2.6";

/** Throws a LibraryError. */
export async function loadLibrary(): Promise<Library> {
  const Loaded = await load();
  checkRelease(Loaded);
  return {
    mount: (mountpoint, options, operations) =>
      new Promise((resolve, reject) => {
        const mount = mended(Loaded, mountpoint, options, operations);
        mount.mount((error) => (error === null || error === undefined ? resolve() : reject(error)));
      }),
  };
}

async function load(): Promise<typeof Fuse> {
  try {
    return (await import("fuse-native")).default;
  } catch (cause) {
    throw new LibraryError(`--transport fuse-native cannot be used: ${whyNotLoaded(describeError(cause))}`, { cause });
  }
}

/** Of what Node and the dynamic linker say. */
export function whyNotLoaded(said: string): string {
  if (/libfuse\.so\.2\b/.test(said)) {
    return "libfuse.so.2 is not installed (Debian 12: apt-get install libfuse2; Debian 13: libfuse2t64)";
  }
  if (/No native build/i.test(said)) {
    return `the package fuse-native has no build for this machine (${process.platform} ${process.arch})`;
  }
  if (/ERR_MODULE_NOT_FOUND/.test(said)) {
    return `the optional package fuse-native is not installed (npm install fuse-native@${RELEASE})`;
  }
  return `the package fuse-native does not load: ${said.split("\n", 1)[0]}`;
}

/** Of what the package says. */
export function whyNotMounted(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return said === "fuse failed" ? "it has said why on standard error" : said;
}

/** Another release may not have what is mended below, or have it elsewhere. */
function checkRelease({ prototype }: typeof Fuse): void {
  const needed = ["mount", "_fuseOptions", "_op_getxattr", "_op_listxattr"] as const;
  const lacks = needed.filter((name) => typeof prototype[name] !== "function");
  if (lacks.length > 0) {
    throw new LibraryError(
      `--transport fuse-native needs release ${RELEASE} of the package; this one lacks ${lacks.join(", ")}`,
    );
  }
}

function mended(Loaded: typeof Fuse, mountpoint: string, options: readonly string[], operations: Operations): Fuse {
  class Mended extends Loaded {
    /** It knows only some of libfuse's options. */
    override _fuseOptions(): string {
      return `-o${options.join(",")}`;
    }

    /** It copies a value into a buffer that is too short, and libfuse then sends what lies behind it. */
    override _op_getxattr(...[signal, path, name, into, position]: Parameters<Fuse["_op_getxattr"]>): void {
      this.ops.getxattr(path, name, position, (result, value) => {
        signal(result === 0 && value !== undefined ? fill(into, value) : result, into.buffer);
      });
    }

    /** The same; and it says that a list is longer than it is. */
    override _op_listxattr(...[signal, path, into]: Parameters<Fuse["_op_listxattr"]>): void {
      this.ops.listxattr(path, (result, names) => {
        const list = names === undefined ? undefined : Buffer.from(names.map((name) => `${name}\0`).join(""));
        signal(result === 0 && list !== undefined ? fill(into, list) : result, into.buffer);
      });
    }
  }
  const mount = new Mended(mountpoint, operations, { timeout: false });
  mendUtimens(mount);
  return mount;
}

/** Into an empty buffer goes nothing: the caller asks how long it is. */
function fill(into: Buffer, value: Buffer): number {
  if (into.length > 0 && value.length > into.length) return -ERRNO.ERANGE;
  value.copy(into);
  return value.length;
}

const UTIMENS = 12;
/** Where the thread's struct has them, on 64-bit Linux. */
const ATIME_AT = 104;
const MTIME_AT = 112;

/**
 * It hands the access time over twice, and the time of the change not at all (fuse-native.c, "utimens"). The
 * thread's struct has both: where the one is as it was handed over, the other is what lies behind it.
 */
function mendUtimens({ _handlers: handlers }: Fuse): void {
  const original = handlers[UTIMENS];
  if (original === undefined) throw new LibraryError(`fuse-native ${RELEASE} is expected to have utimens`);
  handlers[UTIMENS] = (thread, operation, path, low, high) => {
    const times = thread.length < MTIME_AT + 8 ? [] : [ATIME_AT, ATIME_AT + 4, MTIME_AT, MTIME_AT + 4];
    const [atimeLow, atimeHigh, mtimeLow, mtimeHigh] = times.map((at) => thread.readUInt32LE(at));
    const isThere = operation === UTIMENS && atimeLow === low && atimeHigh === high;
    // NaN is refused as a time: better than a wrong one.
    return original(thread, operation, path, low, high, ...(isThere ? [mtimeLow, mtimeHigh] : [Number.NaN, 0]));
  };
}

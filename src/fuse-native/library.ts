/**
 * The only door to the optional package fuse-native, and through it to libfuse 2. The package is loaded on demand, and
 * the faults of its release 2.2.6 are mended here. This file knows the package's calls, and no answers.
 */
import type Fuse from "fuse-native";
import type { Done, NativeSpace, NativeStat, Operations } from "fuse-native";
import { ERRNO } from "../fuse/errno.ts";
import { describeError } from "../lib/log.ts";

export type { Done, NativeSpace, NativeStat, Operations };

/** The package cannot be used here. The message is one line: the missing part, and how to get it. */
export class LibraryError extends Error {}

export interface Library {
  /** Resolves when the kernel has begun to send requests. A process can mount only once, until it ends. */
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

/** Turns the messages of Node and of the dynamic linker into a reason. */
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

/** Turns the messages of the package into a reason. */
export function whyNotMounted(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return said === "fuse failed" ? "libfuse printed the reason on standard error" : said;
}

/** Another release may lack the faults that are mended below, or have them elsewhere. */
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
    /** The package knows only some of libfuse's options. */
    override _fuseOptions(): string {
      return `-o${options.join(",")}`;
    }

    /** The package copies a value into a buffer that is too short, and libfuse then sends the memory behind it. */
    override _op_getxattr(...[signal, path, name, into, position]: Parameters<Fuse["_op_getxattr"]>): void {
      this.ops.getxattr(path, name, position, (result, value) => {
        signal(result === 0 && value !== undefined ? fill(into, value) : result, into.buffer);
      });
    }

    /** The package has the fault of `_op_getxattr` here too. It also reports a list as longer than it is. */
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

/** An empty buffer gets nothing: the caller asks for the length. */
function fill(into: Buffer, value: Buffer): number {
  if (into.length > 0 && value.length > into.length) return -ERRNO.ERANGE;
  value.copy(into);
  return value.length;
}

const UTIMENS = 12;
/** Offsets of the two times in the thread's struct, on 64-bit Linux. */
const ATIME_AT = 104;
const MTIME_AT = 112;

/**
 * The package passes the access time twice and the modification time not at all (fuse-native.c, "utimens"). The
 * thread's struct has both: where the access time is as it was passed, the modification time is behind it.
 */
function mendUtimens({ _handlers: handlers }: Fuse): void {
  const original = handlers[UTIMENS];
  if (original === undefined) throw new LibraryError(`fuse-native ${RELEASE} is expected to have utimens`);
  handlers[UTIMENS] = (thread, operation, path, low, high) => {
    const times = thread.length < MTIME_AT + 8 ? [] : [ATIME_AT, ATIME_AT + 4, MTIME_AT, MTIME_AT + 4];
    const [atimeLow, atimeHigh, mtimeLow, mtimeHigh] = times.map((at) => thread.readUInt32LE(at));
    const isThere = operation === UTIMENS && atimeLow === low && atimeHigh === high;
    // NaN is refused as a time. That is better than a wrong time.
    return original(thread, operation, path, low, high, ...(isThere ? [mtimeLow, mtimeHigh] : [Number.NaN, 0]));
  };
}

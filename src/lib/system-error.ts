/**
 * Errors in the form of Node's system errors (`code`, `errno`, `syscall`, `path`), for code that itself finds a failure
 * of the kind that the kernel reports.
 */
import { getSystemErrorMap } from "node:util";

/** Errors of disks that have no name in libuv, by their Linux numbers. Node's `code` is "Unknown system error -122". */
const UNNAMED: readonly [number, [string, string]][] = [
  [-122, ["EDQUOT", "disk quota exceeded"]],
  [-116, ["ESTALE", "stale file handle"]],
];
const BY_CODE = new Map(
  [...getSystemErrorMap(), ...UNNAMED].map(([errno, [code, text]]) => [code, { errno, text }] as const),
);
const UNNAMED_CODES = new Map(UNNAMED.map(([errno, [code]]) => [errno, code]));
// These errors have two names, of which libuv knows only the second.
const OTHER_NAMES: Readonly<Record<string, string>> = { EOPNOTSUPP: "ENOTSUP", EWOULDBLOCK: "EAGAIN" };

/** `code` is an errno name such as "ENOENT". Throws a RangeError for a name that the system does not know. */
export function systemError(code: string, syscall: string, path?: string): NodeJS.ErrnoException {
  const known = BY_CODE.get(OTHER_NAMES[code] ?? code);
  if (known === undefined) throw new RangeError(`expected the name of a system error such as "ENOENT", got "${code}"`);
  const where = path === undefined ? "" : ` '${path}'`;
  const error: NodeJS.ErrnoException = new Error(`${code}: ${known.text}, ${syscall}${where}`);
  error.code = code;
  error.errno = known.errno;
  error.syscall = syscall;
  if (path !== undefined) error.path = path;
  return error;
}

/** Sets the `code` of an error of node:fs whose errno has no name in libuv. */
export function withCode<E>(error: E): E {
  if (!(error instanceof Error && "errno" in error && typeof error.errno === "number")) return error;
  const code = UNNAMED_CODES.get(error.errno);
  return code === undefined ? error : Object.assign(error, { code });
}

/** True if the error has one of these errno names as its `code`. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

/** True if the disk or its file system can never do this. */
export function isUnsupported(error: unknown): boolean {
  return hasCode(error, "EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY");
}

/** Notes in the error of a write the number of bytes that were written before it failed. */
export function withBytesWritten<E>(error: E, written: number): E {
  return error instanceof Error && written > 0 ? Object.assign(error, { written }) : error;
}

/** The number that `withBytesWritten` noted, else 0. */
export function bytesWritten(error: unknown): number {
  return error instanceof Error && "written" in error && typeof error.written === "number" ? error.written : 0;
}

/**
 * Errors in the form of Node's own system errors (`code`, `errno`, `syscall`, `path`), for code that finds a failure by
 * itself that the kernel would otherwise report.
 */
import { getSystemErrorMap } from "node:util";

/** Errors of disks without a name in libuv: Node's `code` is then "Unknown system error -122". Linux numbers. */
const UNNAMED: readonly [number, [string, string]][] = [
  [-122, ["EDQUOT", "disk quota exceeded"]],
  [-116, ["ESTALE", "stale file handle"]],
];
const BY_CODE = new Map(
  [...getSystemErrorMap(), ...UNNAMED].map(([errno, [code, text]]) => [code, { errno, text }] as const),
);
const UNNAMED_CODES = new Map(UNNAMED.map(([errno, [code]]) => [errno, code]));
// The kernel has two names for these numbers; libuv knows only the other one.
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

/** Gives an error of node:fs the errno name that libuv does not know. */
export function withCode<E>(error: E): E {
  if (!(error instanceof Error && "errno" in error && typeof error.errno === "number")) return error;
  const code = UNNAMED_CODES.get(error.errno);
  return code === undefined ? error : Object.assign(error, { code });
}

/** True if an error carries one of these errno names. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

/** True if the error means that the disk or its file system cannot do this at all, now or later. */
export function isUnsupported(error: unknown): boolean {
  return hasCode(error, "EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY");
}

/** Notes in the error of a write how many bytes were written before it failed. */
export function withBytesWritten<E>(error: E, written: number): E {
  return error instanceof Error && written > 0 ? Object.assign(error, { written }) : error;
}

export function bytesWritten(error: unknown): number {
  return error instanceof Error && "written" in error && typeof error.written === "number" ? error.written : 0;
}

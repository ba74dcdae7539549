/**
 * Errors in the shape of Node's own system errors (`code`, `errno`, `syscall`, `path`), for what
 * finds out by itself what the kernel would have said.
 */
import { getSystemErrorMap } from "node:util";

const BY_CODE = new Map(Array.from(getSystemErrorMap(), ([errno, [code, text]]) => [code, { errno, text }]));
// The kernel's two names for number 95; libuv knows only the other one.
const OTHER_NAMES: Readonly<Record<string, string>> = { EOPNOTSUPP: "ENOTSUP", EWOULDBLOCK: "EAGAIN" };

/** `code` is an errno name such as "ENOENT"; one that the system does not know is a RangeError. */
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

/** Whether an error carries one of these errno names. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

/** Whether an error says that the disk or its file system cannot do this at all, now or later. */
export function isUnsupported(error: unknown): boolean {
  return hasCode(error, "EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY");
}

/**
 * The only kind of error with which a file operation ends. Its code is an errno name; `fuse/errno.ts` has the number of
 * each and does not compile while one is missing.
 */
import { hasCode, isUnsupported } from "../../lib/system-error.ts";

export const FS_ERROR_CODES = [
  "EPERM",
  "ENOENT",
  "EINTR",
  "EIO",
  "ENXIO",
  "EBADF",
  "EAGAIN",
  "ENOMEM",
  "EACCES",
  "EBUSY",
  "EEXIST",
  "EXDEV",
  "ENOTDIR",
  "EISDIR",
  "EINVAL",
  "ENFILE",
  "EFBIG",
  "ENOSPC",
  "EROFS",
  "EMLINK",
  "ERANGE",
  "ENAMETOOLONG",
  "ENOTEMPTY",
  "ELOOP",
  "ENODATA",
  "EOVERFLOW",
  "EILSEQ",
  "EOPNOTSUPP",
  "ETIMEDOUT",
  "ESTALE",
  "EDQUOT",
] as const;

export type FsErrorCode = (typeof FS_ERROR_CODES)[number];

/** Has no stack: most are no surprise (there is no such name), and a stack would cost more than the operation. */
export class FsError extends Error {
  readonly code: FsErrorCode;

  constructor(code: FsErrorCode, message: string, options?: { cause?: unknown }) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "FsError";
    this.code = code;
  }
}

/**
 * Errors of the local disk that a program hears as they are. Any other error (such as ENOENT for a cache file) says
 * nothing about the program's file, so it becomes EIO.
 */
const DISK_CODES = ["ENOSPC", "EDQUOT", "EROFS", "EFBIG", "ENOMEM", "EINVAL"] as const satisfies FsErrorCode[];

/**
 * Turns a failure of the local disk into what a program hears: a code of DISK_CODES as it is, EOPNOTSUPP, ENFILE, else
 * EIO. An FsError stays as it is.
 */
export function fromDisk(error: unknown, doing: string): FsError {
  if (error instanceof FsError) return error;
  let code: FsErrorCode = isUnsupported(error)
    ? "EOPNOTSUPP"
    : (DISK_CODES.find((each) => hasCode(error, each)) ?? "EIO");
  // The daemon's own limit is not the program's limit: the program hears that the system has no more files.
  if (hasCode(error, "EMFILE", "ENFILE")) code = "ENFILE";
  const message = error instanceof Error ? error.message : String(error);
  return new FsError(code, `${doing}: ${message}`, { cause: error });
}

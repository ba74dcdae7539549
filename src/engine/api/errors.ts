/**
 * The only kind of error with which a file operation fails. Its code is the name of an errno; `fuse/errno.ts` has the
 * number of each, and does not compile while one is missing.
 */
import { hasCode, isUnsupported } from "../../lib/system-error.ts";

const FS_ERROR_CODES = [
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

/** It has no stack: most are expected (there is no such name), and a stack would cost more than the operation. */
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
 * Errors of the local disk that a program gets unchanged. Other errors, such as ENOENT for a cache file, say nothing
 * about the program's file.
 */
const DISK_CODES = ["ENOSPC", "EDQUOT", "EROFS", "EFBIG", "ENOMEM", "EINVAL"] as const satisfies FsErrorCode[];

/**
 * Turns a failure of the local disk into the error of a program: a code of DISK_CODES, EOPNOTSUPP, ENFILE, else EIO. An
 * FsError stays as it is. `doing` begins the message.
 */
export function fromDisk(error: unknown, doing: string): FsError {
  if (error instanceof FsError) return error;
  let code: FsErrorCode = isUnsupported(error)
    ? "EOPNOTSUPP"
    : (DISK_CODES.find((each) => hasCode(error, each)) ?? "EIO");
  // EMFILE is the limit of this process, not of the program.
  if (hasCode(error, "EMFILE", "ENFILE")) code = "ENFILE";
  const message = error instanceof Error ? error.message : String(error);
  return new FsError(code, `${doing}: ${message}`, { cause: error });
}

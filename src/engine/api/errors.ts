/**
 * The one kind of error a file operation may end with. The code is an errno name; `fuse/errno.ts`
 * has its number and does not compile while one is missing.
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

/** Most are no surprise (a name that is not there), and a stack would cost more than the operation: there is none. */
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

/** What a program may hear of the local disk as it is; anything else (a file of ours is gone) is no news of its file. */
const DISK_CODES = ["ENOSPC", "EDQUOT", "EROFS", "EFBIG", "ENOMEM", "EINVAL"] as const satisfies FsErrorCode[];

/** What a program gets to hear when the local disk failed. */
export function fromDisk(error: unknown, doing: string): FsError {
  if (error instanceof FsError) return error;
  let code: FsErrorCode = isUnsupported(error)
    ? "EOPNOTSUPP"
    : (DISK_CODES.find((each) => hasCode(error, each)) ?? "EIO");
  // The daemon's own limit is not the program's: to that it is one of the system.
  if (hasCode(error, "EMFILE", "ENFILE")) code = "ENFILE";
  const message = error instanceof Error ? error.message : String(error);
  return new FsError(code, `${doing}: ${message}`, { cause: error });
}

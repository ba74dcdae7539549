/**
 * The one kind of error a file operation may end with. The code is an errno name; `fuse/errno.ts`
 * has its number and does not compile while one is missing.
 */
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

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

export class FsError extends Error {
  readonly code: FsErrorCode;

  constructor(code: FsErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "FsError";
    this.code = code;
  }
}

/**
 * The fixed parts of the kernel's messages (protocol 7.45), with the field names of linux/fuse.h. Padding and unused
 * fields are left out. This file has only offsets.
 */
import { struct } from "./layout.ts";

export const IN_HEADER = struct("fuse_in_header", 40, {
  len: [0, "u32"],
  opcode: [4, "u32"],
  unique: [8, "id"],
  nodeid: [16, "node"],
  uid: [24, "u32"],
  gid: [28, "u32"],
  pid: [32, "u32"],
  /** In units of 8 bytes. */
  total_extlen: [36, "u16"],
});

/** Sixteen bytes before 7.36. */
export const INIT_IN = struct("fuse_init_in", 64, {
  major: [0, "u32"],
  minor: [4, "u32"],
  max_readahead: [8, "u32"],
  flags: [12, "u32"],
  flags2: [16, "u32"],
});
export const INIT_IN_SIZE_BEFORE_36 = 16;

export const FORGET_IN = struct("fuse_forget_in", 8, { nlookup: [0, "u64"] });
export const BATCH_FORGET_IN = struct("fuse_batch_forget_in", 8, { count: [0, "u32"] });
export const FORGET_ONE = struct("fuse_forget_one", 16, { nodeid: [0, "node"], nlookup: [8, "u64"] });

export const GETATTR_IN = struct("fuse_getattr_in", 16, { getattr_flags: [0, "u32"], fh: [8, "handle"] });

export const SETATTR_IN = struct("fuse_setattr_in", 88, {
  valid: [0, "u32"],
  fh: [8, "handle"],
  size: [16, "u64"],
  lock_owner: [24, "u64"],
  atime: [32, "i64"],
  mtime: [40, "i64"],
  ctime: [48, "i64"],
  atimensec: [56, "u32"],
  mtimensec: [60, "u32"],
  ctimensec: [64, "u32"],
  mode: [68, "u32"],
  uid: [76, "u32"],
  gid: [80, "u32"],
});

export const STATX_IN = struct("fuse_statx_in", 24, {
  getattr_flags: [0, "u32"],
  fh: [8, "handle"],
  sx_flags: [16, "u32"],
  sx_mask: [20, "u32"],
});

export const ACCESS_IN = struct("fuse_access_in", 8, { mask: [0, "u32"] });

export const MKNOD_IN = struct("fuse_mknod_in", 16, { mode: [0, "u32"], rdev: [4, "u32"], umask: [8, "u32"] });
export const MKDIR_IN = struct("fuse_mkdir_in", 8, { mode: [0, "u32"], umask: [4, "u32"] });
export const RENAME_IN = struct("fuse_rename_in", 8, { newdir: [0, "node"] });
export const RENAME2_IN = struct("fuse_rename2_in", 16, { newdir: [0, "node"], flags: [8, "u32"] });
export const LINK_IN = struct("fuse_link_in", 8, { oldnodeid: [0, "node"] });

export const OPEN_IN = struct("fuse_open_in", 8, { flags: [0, "u32"], open_flags: [4, "u32"] });
export const CREATE_IN = struct("fuse_create_in", 16, {
  flags: [0, "u32"],
  mode: [4, "u32"],
  umask: [8, "u32"],
  open_flags: [12, "u32"],
});

export const READ_IN = struct("fuse_read_in", 40, {
  fh: [0, "handle"],
  offset: [8, "u64"],
  size: [16, "u32"],
  read_flags: [20, "u32"],
  lock_owner: [24, "u64"],
  flags: [32, "u32"],
});

export const WRITE_IN = struct("fuse_write_in", 40, {
  fh: [0, "handle"],
  offset: [8, "u64"],
  size: [16, "u32"],
  write_flags: [20, "u32"],
  lock_owner: [24, "u64"],
  flags: [32, "u32"],
});

export const RELEASE_IN = struct("fuse_release_in", 24, {
  fh: [0, "handle"],
  flags: [8, "u32"],
  release_flags: [12, "u32"],
  lock_owner: [16, "u64"],
});
export const FLUSH_IN = struct("fuse_flush_in", 24, { fh: [0, "handle"], lock_owner: [16, "u64"] });
export const FSYNC_IN = struct("fuse_fsync_in", 16, { fh: [0, "handle"], fsync_flags: [8, "u32"] });

/** Eight bytes unless SETXATTR_EXT was agreed on. */
export const SETXATTR_IN = struct("fuse_setxattr_in", 16, {
  size: [0, "u32"],
  flags: [4, "u32"],
  setxattr_flags: [8, "u32"],
});
export const SETXATTR_IN_SIZE_SHORT = 8;
/** Also the fixed part of LISTXATTR. */
export const GETXATTR_IN = struct("fuse_getxattr_in", 8, { size: [0, "u32"] });

export const FILE_LOCK = struct("fuse_file_lock", 24, {
  start: [0, "u64"],
  end: [8, "u64"],
  type: [16, "u32"],
  pid: [20, "u32"],
});
/** The lock itself (FILE_LOCK) lies at offset 16. */
export const LK_IN = struct("fuse_lk_in", 48, { fh: [0, "handle"], owner: [8, "u64"], lk_flags: [40, "u32"] });
export const LK_IN_LOCK_AT = 16;

export const INTERRUPT_IN = struct("fuse_interrupt_in", 8, { unique: [0, "id"] });
export const BMAP_IN = struct("fuse_bmap_in", 16, { block: [0, "u64"], blocksize: [8, "u32"] });

export const IOCTL_IN = struct("fuse_ioctl_in", 32, {
  fh: [0, "handle"],
  flags: [8, "u32"],
  cmd: [12, "u32"],
  arg: [16, "u64"],
  in_size: [24, "u32"],
  out_size: [28, "u32"],
});

export const POLL_IN = struct("fuse_poll_in", 24, {
  fh: [0, "handle"],
  kh: [8, "u64"],
  flags: [16, "u32"],
  events: [20, "u32"],
});

/** Body of NOTIFY_REPLY; the cached bytes follow. */
export const NOTIFY_RETRIEVE_IN = struct("fuse_notify_retrieve_in", 40, { offset: [8, "u64"], size: [16, "u32"] });

export const FALLOCATE_IN = struct("fuse_fallocate_in", 32, {
  fh: [0, "handle"],
  offset: [8, "u64"],
  length: [16, "u64"],
  mode: [24, "u32"],
});
export const LSEEK_IN = struct("fuse_lseek_in", 24, { fh: [0, "handle"], offset: [8, "u64"], whence: [16, "u32"] });

export const COPY_FILE_RANGE_IN = struct("fuse_copy_file_range_in", 56, {
  fh_in: [0, "u64"],
  off_in: [8, "u64"],
  nodeid_out: [16, "node"],
  fh_out: [24, "u64"],
  off_out: [32, "u64"],
  len: [40, "u64"],
  flags: [48, "u64"],
});

export const SETUPMAPPING_IN = struct("fuse_setupmapping_in", 40, {
  fh: [0, "handle"],
  foffset: [8, "u64"],
  len: [16, "u64"],
  flags: [24, "u64"],
  moffset: [32, "u64"],
});
export const REMOVEMAPPING_IN = struct("fuse_removemapping_in", 4, { count: [0, "u32"] });
export const REMOVEMAPPING_ONE = struct("fuse_removemapping_one", 16, { moffset: [0, "u64"], len: [8, "u64"] });

/** Trailing extensions: records of this header and its payload, `size` in bytes, header included. */
export const EXT_HEADER = struct("fuse_ext_header", 8, { size: [0, "u32"], type: [4, "u32"] });
export const SECCTX = struct("fuse_secctx", 8, { size: [0, "u32"] });

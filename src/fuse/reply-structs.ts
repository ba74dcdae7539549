/**
 * The fixed parts of our messages: replies and notifications (protocol 7.45), with the field names of linux/fuse.h.
 * This file has only offsets.
 */
import { struct } from "./layout.ts";

/** `unique` at offset 8 is eight bytes copied from the request. */
export const OUT_HEADER = struct("fuse_out_header", 16, { len: [0, "u32"], error: [4, "i32"], unique: [8, "id"] });
export const UNIQUE_AT = 8;
export const UNIQUE_SIZE = 8;

export const INIT_OUT = struct("fuse_init_out", 64, {
  major: [0, "u32"],
  minor: [4, "u32"],
  max_readahead: [8, "u32"],
  flags: [12, "u32"],
  max_background: [16, "u16"],
  congestion_threshold: [18, "u16"],
  max_write: [20, "u32"],
  time_gran: [24, "u32"],
  max_pages: [28, "u16"],
  map_alignment: [30, "u16"],
  flags2: [32, "u32"],
  max_stack_depth: [36, "u32"],
  request_timeout: [40, "u16"],
});

export const ATTR = struct("fuse_attr", 88, {
  ino: [0, "u64"],
  size: [8, "u64"],
  blocks: [16, "u64"],
  atime: [24, "i64"],
  mtime: [32, "i64"],
  ctime: [40, "i64"],
  atimensec: [48, "u32"],
  mtimensec: [52, "u32"],
  ctimensec: [56, "u32"],
  mode: [60, "u32"],
  nlink: [64, "u32"],
  uid: [68, "u32"],
  gid: [72, "u32"],
  rdev: [76, "u32"],
  blksize: [80, "u32"],
  flags: [84, "u32"],
});

/** A fuse_attr follows at offset 40. */
export const ENTRY_OUT = struct("fuse_entry_out", 128, {
  nodeid: [0, "node"],
  generation: [8, "u64"],
  entry_valid: [16, "u64"],
  attr_valid: [24, "u64"],
  entry_valid_nsec: [32, "u32"],
  attr_valid_nsec: [36, "u32"],
});
export const ENTRY_OUT_ATTR_AT = 40;

/** A fuse_attr follows at offset 16. */
export const ATTR_OUT = struct("fuse_attr_out", 104, { attr_valid: [0, "u64"], attr_valid_nsec: [8, "u32"] });
export const ATTR_OUT_ATTR_AT = 16;

export const OPEN_OUT = struct("fuse_open_out", 16, {
  fh: [0, "handle"],
  open_flags: [8, "u32"],
  backing_id: [12, "i32"],
});
export const WRITE_OUT = struct("fuse_write_out", 8, { size: [0, "u32"] });

export const KSTATFS = struct("fuse_kstatfs", 80, {
  blocks: [0, "u64"],
  bfree: [8, "u64"],
  bavail: [16, "u64"],
  files: [24, "u64"],
  ffree: [32, "u64"],
  bsize: [40, "u32"],
  namelen: [44, "u32"],
  frsize: [48, "u32"],
});

export const GETXATTR_OUT = struct("fuse_getxattr_out", 8, { size: [0, "u32"] });

/** The name follows at offset 24; records are padded to 8 bytes. */
export const DIRENT = struct("fuse_dirent", 24, {
  ino: [0, "u64"],
  off: [8, "u64"],
  namelen: [16, "u32"],
  type: [20, "u32"],
});
/** A fuse_entry_out, then a fuse_dirent at offset 128. */
export const DIRENTPLUS_DIRENT_AT = 128;

/** A fuse_statx follows at offset 32. */
export const STATX_OUT = struct("fuse_statx_out", 288, {
  attr_valid: [0, "u64"],
  attr_valid_nsec: [8, "u32"],
  flags: [12, "u32"],
});
export const STATX_OUT_STAT_AT = 32;

export const STATX = struct("fuse_statx", 256, {
  mask: [0, "u32"],
  blksize: [4, "u32"],
  attributes: [8, "u64"],
  nlink: [16, "u32"],
  uid: [20, "u32"],
  gid: [24, "u32"],
  mode: [28, "u16"],
  ino: [32, "u64"],
  size: [40, "u64"],
  blocks: [48, "u64"],
  attributes_mask: [56, "u64"],
  atime: [64, "i64"],
  atimensec: [72, "u32"],
  btime: [80, "i64"],
  btimensec: [88, "u32"],
  ctime: [96, "i64"],
  ctimensec: [104, "u32"],
  mtime: [112, "i64"],
  mtimensec: [120, "u32"],
  rdev_major: [128, "u32"],
  rdev_minor: [132, "u32"],
  dev_major: [136, "u32"],
  dev_minor: [140, "u32"],
});

export const LSEEK_OUT = struct("fuse_lseek_out", 8, { offset: [0, "u64"] });
export const COPY_FILE_RANGE_OUT = struct("fuse_copy_file_range_out", 8, { bytes_copied: [0, "u64"] });
export const BMAP_OUT = struct("fuse_bmap_out", 8, { block: [0, "u64"] });
export const POLL_OUT = struct("fuse_poll_out", 8, { revents: [0, "u32"] });
export const IOCTL_OUT = struct("fuse_ioctl_out", 16, {
  result: [0, "i32"],
  flags: [4, "u32"],
  in_iovs: [8, "u32"],
  out_iovs: [12, "u32"],
});

export const NOTIFY_POLL_OUT = struct("fuse_notify_poll_wakeup_out", 8, { kh: [0, "u64"] });
export const NOTIFY_INVAL_INODE_OUT = struct("fuse_notify_inval_inode_out", 24, {
  ino: [0, "u64"],
  off: [8, "i64"],
  len: [16, "i64"],
});
export const NOTIFY_INVAL_ENTRY_OUT = struct("fuse_notify_inval_entry_out", 16, {
  parent: [0, "u64"],
  namelen: [8, "u32"],
  flags: [12, "u32"],
});
export const NOTIFY_DELETE_OUT = struct("fuse_notify_delete_out", 24, {
  parent: [0, "u64"],
  child: [8, "u64"],
  namelen: [16, "u32"],
});
export const NOTIFY_STORE_OUT = struct("fuse_notify_store_out", 24, {
  nodeid: [0, "node"],
  offset: [8, "u64"],
  size: [16, "u32"],
});
export const NOTIFY_RETRIEVE_OUT = struct("fuse_notify_retrieve_out", 32, {
  notify_unique: [0, "u64"],
  nodeid: [8, "node"],
  offset: [16, "u64"],
  size: [24, "u32"],
});
/** The kernel node ids follow, eight bytes each. */
export const NOTIFY_PRUNE_OUT = struct("fuse_notify_prune_out", 16, { count: [0, "u32"] });

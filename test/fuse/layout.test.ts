/**
 * Our tables of offsets against two sources that are not ours: what a C compiler makes of the
 * system's linux/fuse.h, and, for what is newer than that header, the offsets of the 7.45 header
 * as fuse-protocol.md lists them.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KIND_BITS } from "../../src/fuse/attributes.ts";
import { ERRNO } from "../../src/fuse/errno.ts";
import * as flags from "../../src/fuse/flags.ts";
import type { FieldType, Struct } from "../../src/fuse/layout.ts";
import { NOTIFY } from "../../src/fuse/notifications.ts";
import { OPERATIONS } from "../../src/fuse/opcodes.ts";
import * as replyStructs from "../../src/fuse/reply-structs.ts";
import * as requestStructs from "../../src/fuse/request-structs.ts";

const FIELD_SIZES = { u16: 2, u32: 4, i32: 4, u64: 8, i64: 8, id: 8, node: 8, handle: 8 } as const satisfies Record<
  FieldType,
  number
>;

interface Layout {
  size: number;
  /** Field -> [offset, size]. */
  fields: Record<string, [number, number]>;
}

const exported: unknown[] = [...Object.values(requestStructs), ...Object.values(replyStructs)];
const structs = exported.filter((value): value is Struct => typeof value === "object");

function layoutOf(struct: Struct): Layout {
  const fields = Object.entries(struct.fields).map(
    ([name, [at, type]]) => [name, [at, FIELD_SIZES[type]] as [number, number]] as const,
  );
  return { size: struct.size, fields: Object.fromEntries(fields) };
}

/** Protocol 7.45 (linux 7.2 uapi), only what 7.38 does not have. From fuse-protocol.md §1. */
const NEWER = {
  structs: {
    fuse_statx_in: { size: 24, fields: { getattr_flags: [0, 4], fh: [8, 8], sx_flags: [16, 4], sx_mask: [20, 4] } },
    fuse_statx_out: { size: 288, fields: { attr_valid: [0, 8], attr_valid_nsec: [8, 4], flags: [12, 4] } },
    fuse_statx: {
      size: 256,
      fields: {
        mask: [0, 4],
        blksize: [4, 4],
        attributes: [8, 8],
        nlink: [16, 4],
        uid: [20, 4],
        gid: [24, 4],
        mode: [28, 2],
        ino: [32, 8],
        size: [40, 8],
        blocks: [48, 8],
        attributes_mask: [56, 8],
        atime: [64, 8],
        atimensec: [72, 4],
        btime: [80, 8],
        btimensec: [88, 4],
        ctime: [96, 8],
        ctimensec: [104, 4],
        mtime: [112, 8],
        mtimensec: [120, 4],
        rdev_major: [128, 4],
        rdev_minor: [132, 4],
        dev_major: [136, 4],
        dev_minor: [140, 4],
      },
    },
    fuse_copy_file_range_out: { size: 8, fields: { bytes_copied: [0, 8] } },
    fuse_notify_prune_out: { size: 16, fields: { count: [0, 4] } },
  } satisfies Record<string, Layout> as Record<string, Layout>,
  fields: {
    fuse_init_out: { max_stack_depth: [36, 4], request_timeout: [40, 2] },
    fuse_open_out: { backing_id: [12, 4] },
  } as Record<string, Layout["fields"]>,
  opcodes: { STATX: 52, COPY_FILE_RANGE_64: 53 } as Record<string, number>,
  notifications: { RESEND: 7, INC_EPOCH: 8, PRUNE: 9 } as Record<string, number>,
};

describe("what is newer than the system's header, as in 7.45", () => {
  it.each(Object.entries(NEWER.structs))("%s", (name, expected) => {
    const struct = structs.find((candidate) => candidate.name === name);
    expect(struct && layoutOf(struct)).toEqual(expected);
  });

  it.each(Object.entries(NEWER.fields))("new fields of %s", (name, expected) => {
    const struct = structs.find((candidate) => candidate.name === name);
    expect(struct && layoutOf(struct).fields).toMatchObject(expected);
  });

  it("a fuse_statx lies at 32 of its reply, and the opcodes and codes have their numbers", () => {
    expect(replyStructs.STATX_OUT_STAT_AT).toBe(32);
    expect(flags.EXT_GROUPS).toBe(32);
    const opcodes = Object.fromEntries([...OPERATIONS.values()].map(({ code, name }) => [name, code]));
    expect(opcodes).toMatchObject(NEWER.opcodes);
    expect(NOTIFY).toMatchObject(NEWER.notifications);
  });
});

/** C expressions beside the numbers we use for them. */
function constants(): [expression: string, ours: number][] {
  const prefixed = (prefix: string, values: Record<string, number>, skip: Record<string, number> = {}) =>
    Object.entries(values)
      .filter(([name]) => !(name in skip))
      .map(([name, value]) => [`${prefix}${name}`, value] as [string, number]);
  const opcodes = Object.fromEntries([...OPERATIONS.values()].map(({ code, name }) => [name, code]));
  const { O } = flags;
  return [
    ...prefixed("FUSE_", opcodes, NEWER.opcodes),
    ...prefixed("FUSE_", flags.INIT),
    ...prefixed("FATTR_", flags.FATTR),
    ...prefixed("E", Object.fromEntries(Object.entries(ERRNO).map(([name, value]) => [name.slice(1), value]))),
    ...prefixed("FUSE_NOTIFY_", { POLL: 1, INVAL_INODE: 2, INVAL_ENTRY: 3, STORE: 4, RETRIEVE: 5, DELETE: 6 }),
    ["FUSE_ROOT_ID", flags.ROOT_NODE],
    ["FUSE_GETATTR_FH", flags.GETATTR_FH],
    ["FUSE_OPEN_KILL_SUIDGID", flags.OPEN_KILL_SUIDGID],
    ["FUSE_WRITE_KILL_SUIDGID", flags.WRITE_KILL_SUIDGID],
    ["FUSE_FSYNC_FDATASYNC", flags.FSYNC_FDATASYNC],
    ["FOPEN_KEEP_CACHE", flags.FOPEN_KEEP_CACHE],
    ["FUSE_MAX_NR_SECCTX", flags.EXT_MAX_SECCTX],
    ["RENAME_NOREPLACE", flags.RENAME_NOREPLACE],
    ["RENAME_EXCHANGE", flags.RENAME_EXCHANGE],
    ["XATTR_CREATE", flags.XATTR_CREATE],
    ["XATTR_REPLACE", flags.XATTR_REPLACE],
    ["SEEK_DATA", flags.SEEK_DATA],
    ["SEEK_HOLE", flags.SEEK_HOLE],
    ["O_ACCMODE", O.ACCMODE],
    ["O_WRONLY", O.WRONLY],
    ["O_RDWR", O.RDWR],
    ["O_EXCL", O.EXCL],
    ["O_TRUNC", O.TRUNC],
    ["O_APPEND", O.APPEND],
    ["S_IFMT", flags.S_IFMT],
    ["S_ISUID | S_ISGID", flags.S_ISUID_ISGID],
    ["S_IFREG", KIND_BITS.file],
    ["S_IFDIR", KIND_BITS.folder],
    ["S_IFLNK", KIND_BITS.symlink],
    ["S_IFIFO", KIND_BITS.fifo],
    ["S_IFSOCK", KIND_BITS.socket],
    ["S_IFBLK", KIND_BITS.block],
    ["S_IFCHR", KIND_BITS.character],
    ["STATX_BASIC_STATS | STATX_BTIME", flags.STATX_MASK],
    ["offsetof(struct fuse_entry_out, attr)", replyStructs.ENTRY_OUT_ATTR_AT],
    ["offsetof(struct fuse_attr_out, attr)", replyStructs.ATTR_OUT_ATTR_AT],
    ["offsetof(struct fuse_lk_in, lk)", requestStructs.LK_IN_LOCK_AT],
    ["offsetof(struct fuse_direntplus, entry_out)", 0],
    ["offsetof(struct fuse_direntplus, dirent)", replyStructs.DIRENTPLUS_DIRENT_AT],
    ["FUSE_NAME_OFFSET_DIRENTPLUS", replyStructs.DIRENTPLUS_DIRENT_AT + replyStructs.DIRENT.size],
    ["FUSE_NAME_OFFSET", replyStructs.DIRENT.size],
    ["offsetof(struct fuse_out_header, unique)", replyStructs.UNIQUE_AT],
    ["offsetof(struct fuse_in_header, unique)", replyStructs.UNIQUE_AT],
    ["FUSE_COMPAT_SETXATTR_IN_SIZE", requestStructs.SETXATTR_IN_SIZE_SHORT],
    ["offsetof(struct fuse_init_in, flags2)", requestStructs.INIT_IN_SIZE_BEFORE_36],
  ];
}

/** What the compiler sees: each struct with the fields we name, except those its header may not have. */
function program(): string {
  const lines = structs
    .filter(({ name }) => !(name in NEWER.structs))
    .flatMap(({ name, fields }) => [
      `printf("%s . 0 %zu\\n", "${name}", sizeof(struct ${name}));`,
      ...Object.keys(fields)
        .filter((field) => !(field in (NEWER.fields[name] ?? {})))
        .map(
          (field) =>
            `printf("%s %s %zu %zu\\n", "${name}", "${field}", offsetof(struct ${name}, ${field}), sizeof(((struct ${name} *)0)->${field}));`,
        ),
    ]);
  const values = constants().map(
    ([expression], index) => `printf("constant %d %lld\\n", ${index}, (long long)(${expression}));`,
  );
  return `#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <linux/fuse.h>
int main(void) {
${[...lines, ...values].join("\n")}
return 0;
}
`;
}

function compileAndRun(source: string): string[][] {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-layout-"));
  try {
    writeFileSync(join(folder, "layout.c"), source);
    execFileSync("cc", ["-o", join(folder, "layout"), join(folder, "layout.c")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return execFileSync(join(folder, "layout"), { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const hasCompiler = spawnSync("cc", ["--version"]).status === 0;

describe.skipIf(!hasCompiler)("linux/fuse.h of this system, compiled by cc", () => {
  const lines = hasCompiler ? compileAndRun(program()) : [];

  it.each(structs.filter(({ name }) => !(name in NEWER.structs)).map((struct) => [struct.name, struct] as const))(
    "struct %s",
    (name, struct) => {
      const ours = layoutOf(struct);
      for (const field of Object.keys(NEWER.fields[name] ?? {})) delete ours.fields[field];
      const theirs: Layout = { size: -1, fields: {} };
      for (const [owner, field, at, size] of lines) {
        if (owner !== name || field === undefined) continue;
        if (field === ".") theirs.size = Number(size);
        else theirs.fields[field] = [Number(at), Number(size)];
      }
      expect(ours).toEqual(theirs);
    },
  );

  it.each(constants().map(([expression, ours], index) => [expression, ours, index] as const))(
    "%s is %i",
    (_, ours, index) => {
      const line = lines.find(([kind, number]) => kind === "constant" && Number(number) === index);
      expect(ours).toBe(Number(line?.[2]));
    },
  );
});

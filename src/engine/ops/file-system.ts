/** Binds the flows to FileSystem, the interface that the kernel side calls. */

import type { FileSystem } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { answeredBefore } from "./answered-before.ts";
import * as attributes from "./attributes.ts";
import * as create from "./create.ts";
import * as lookup from "./lookup.ts";
import * as open from "./open.ts";
import type { Prefetch } from "./prefetch.ts";
import { read, seek } from "./read.ts";
import * as readdir from "./readdir.ts";
import * as remove from "./remove.ts";
import { rename } from "./rename.ts";
import * as write from "./write.ts";

/** The file system of a mount. The errors of its calls are documented in api/filesystem.ts. */
export function createFileSystem(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync & Incoming & Outgoing & Prefetch,
): FileSystem {
  return {
    done: (request) => answeredBefore(context, request),
    get changes() {
      return context.kernel.changes;
    },
    unheard: () => context.kernel.expireAll(),
    noteProgramTime: (milliseconds, mayAsk) => context.foregroundThrottle.noteProgramTime(milliseconds, mayAsk),
    lookup: (caller, parent, name) => lookup.lookup(context, caller, parent, name),
    forget: (kernelNodeIds) => context.orphans.forgotten(kernelNodeIds),
    getattr: (_caller, kernelNodeId) => lookup.getattr(context, kernelNodeId),
    setattr: (caller, kernelNodeId, change) => attributes.setattr(context, caller, kernelNodeId, change),
    access: (_caller, kernelNodeId, mask) => lookup.access(context, kernelNodeId, mask),
    statfs: () => lookup.statfs(context),

    readlink: (_caller, kernelNodeId) => create.readlink(context, kernelNodeId),
    symlink: (caller, parent, name, target) => create.symlink(context, caller, parent, name, target),
    mknod: (caller, parent, name, kind, mode, rdev) => create.mknod(context, caller, parent, name, kind, mode, rdev),
    mkdir: (caller, parent, name, mode) => create.mkdir(context, caller, parent, name, mode),
    link: (caller, kernelNodeId, parent, name) => create.link(context, caller, kernelNodeId, parent, name),
    unlink: (caller, parent, name) => remove.unlink(context, caller, parent, name),
    rmdir: (caller, parent, name) => remove.rmdir(context, caller, parent, name),
    rename: (caller, from, to, flags) => rename(context, caller, from, to, flags),

    open: (caller, kernelNodeId, flags) => open.open(context, caller, kernelNodeId, flags),
    create: (caller, parent, name, mode, flags) => create.create(context, caller, parent, name, mode, flags),
    read: (caller, handle, offset, size) => read(context, caller, handle, offset, size),
    write: (caller, handle, offset, data, options) => write.write(context, caller, handle, offset, data, options),
    flush: (caller, handle) => write.flush(context, caller, handle),
    fsync: (caller, handle, dataOnly) => write.fsync(context, caller, handle, dataOnly),
    release: (handle) => open.release(context, handle),
    allocate: (caller, handle, mode, offset, length) => write.allocate(context, caller, handle, mode, offset, length),
    seek: (caller, handle, kind, offset) => seek(context, caller, handle, kind, offset),

    opendir: (caller, kernelNodeId) => readdir.opendir(context, caller, kernelNodeId),
    readdir: (caller, handle, cookie, limit, withAttributes) =>
      readdir.readdir(context, caller, handle, cookie, limit, withAttributes),
    fsyncdir: () => write.syncNames(context),
    releasedir: (handle) => readdir.releasedir(context, handle),

    setxattr: (caller, kernelNodeId, name, value, flags) =>
      attributes.setxattr(context, caller, kernelNodeId, name, value, flags),
    getxattr: (_caller, kernelNodeId, name) => attributes.getxattr(context, kernelNodeId, name),
    listxattr: (_caller, kernelNodeId) => attributes.listxattr(context, kernelNodeId),
    removexattr: (caller, kernelNodeId, name) => attributes.removexattr(context, caller, kernelNodeId, name),
  };
}

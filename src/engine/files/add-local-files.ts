/** Adds the services of this room to the context. */
import type { Host, Kernel, Remote, Rows, LocalFiles as SharedLocalFiles, Uploads } from "../core/index.ts";
import { CacheFileTable } from "./cache-file-table.ts";
import { cancelUpload, giveUpUnreadable, syncCopy, yieldToNewer } from "./cancel-upload.ts";
import { logClean, logDirty, logNames, renewList } from "./dirty-file-log.ts";
import { FileState, inBackground } from "./file-state.ts";
import { createLookupProbe } from "./lookup-probe.ts";
import { dropForgottenByKernel, onForget, onLookup } from "./on-forget.ts";
import { dropKernelNodeId } from "./open-close.ts";
import { dropIfUnused, removeInode, renewIfOrphan } from "./orphans.ts";
import type { Parts } from "./room.ts";
import { dropSnapshot, removeSnapshot, snapshotSource } from "./snapshot-source.ts";
import { createSpace } from "./space.ts";
import { ctimeOf, mtimeOf, pinMtime } from "./times.ts";
import { couldNotRead, forgetFailures, noteUnreadable } from "./unreadable.ts";

type Added = keyof Pick<
  SharedLocalFiles,
  | "cacheFiles"
  | "fileState"
  | "background"
  | "space"
  | "snapshotFiles"
  | "orphans"
  | "dirtyFiles"
  | "readFailures"
  | "fileTimes"
>;

/** Returns the object `rest` itself, with the services added. */
export function addLocalFiles(rest: Rows & Omit<SharedLocalFiles, Added> & Kernel & Remote & Uploads & Host): Parts {
  const room = () => context;
  const context: Parts = Object.assign(rest, {
    cacheFiles: new CacheFileTable(room),
    fileState: new FileState(!rest.client.features.ranges),
    background: (what: string, work: () => Promise<void>) => inBackground(room(), what, work),
    space: createSpace(room),
    snapshotFiles: createSnapshotFiles(room),
    orphans: createOrphans(room),
    dirtyFiles: createDirtyFiles(room),
    readFailures: createReadFailures(room),
    fileTimes: createFileTimes(room),
  });
  return context;
}

function createSnapshotFiles(room: () => Parts): SharedLocalFiles["snapshotFiles"] {
  return {
    source: (snapshot) => snapshotSource(room(), snapshot),
    drop: (id) => dropSnapshot(room(), id),
    remove: (snapshot) => removeSnapshot(room(), snapshot),
    syncCopy: (path) => syncCopy(room(), path),
    yieldToNewer: (inode) => yieldToNewer(room(), inode),
    cancelUpload: (row) => cancelUpload(room(), row),
    giveUpUnreadable: (attempt) => giveUpUnreadable(room(), attempt),
  };
}

function createOrphans(room: () => Parts): SharedLocalFiles["orphans"] {
  let probe: ReturnType<typeof createLookupProbe> | undefined;
  return {
    forgotten: (kernelNodeIds) => onForget(room(), kernelNodeIds),
    lookedUp: (inode) => onLookup(room(), inode),
    dropForgotten: () => dropForgottenByKernel(room()),
    dropIfUnused: (kernelNodeId) => dropIfUnused(room(), kernelNodeId),
    removeInode: (inode) => removeInode(room(), inode),
    dropKernelNodeId: (kernelNodeId) => dropKernelNodeId(room(), kernelNodeId),
    renewIfOrphan: (inode) => renewIfOrphan(room(), inode),
    startProbe() {
      probe = createLookupProbe(room());
      probe.start();
    },
    stopProbe: () => probe?.stop(),
  };
}

function createDirtyFiles(room: () => Parts): SharedLocalFiles["dirtyFiles"] {
  return {
    dirty: (inode) => logDirty(room(), inode, room().cacheFiles.get(inode.kernelNodeId)),
    clean: (kernelNodeId) => logClean(room(), kernelNodeId),
    named: (inode) => logNames(room(), inode),
    renew: () => renewList(room()),
  };
}

function createReadFailures(room: () => Parts): SharedLocalFiles["readFailures"] {
  return {
    get: (kernelNodeId) => room().fileState.unreadable.get(kernelNodeId),
    couldNotRead: (row, inode, error) => couldNotRead(room(), row, inode, error),
    note: (inode, kernelNodeId, error) => void noteUnreadable(room(), inode, kernelNodeId, error),
    ended: (kernelNodeId) => void room().fileState.unreadable.delete(kernelNodeId),
    forget: (inode) => forgetFailures(room(), inode),
  };
}

function createFileTimes(room: () => Parts): SharedLocalFiles["fileTimes"] {
  return {
    mtimeOf: (inode) => mtimeOf(room(), inode),
    ctimeOf,
    pinMtime: (inode) => pinMtime(room(), inode),
  };
}

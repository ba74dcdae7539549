/** The services of tree/ for other rooms. Each method is a flow of this room, whose own file says more. */
import type { Attributes } from "../../contract/attributes.ts";
import type { RowTime } from "../../lib/clocks.ts";
import type { Time } from "../../lib/time.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { EntryId, InodeId, NodeRowId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { AccountKind, Attributed, Caller, Found, KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { dropRow } from "./abandoned-requests.ts";
import { keepInOthers, rowsOfInode } from "./hard-links.ts";
import { isInside } from "./is-inside.ts";
import {
  addName,
  askForUndeletable,
  createUnborn,
  exchangeNames,
  folderOfNode,
  giveUndeletable,
  inodeOfRow,
  isBeingDeleted,
  makeFolder,
  mayLeaveNode,
  moveName,
  nodeIdOfFolder,
  removeName,
  replaceTarget,
  rowOfFolder,
} from "./names.ts";
import { type Account, accountOf, chowned, type Maker, madeBy, makerOf } from "./owners.ts";
import { attributed, fileTimeText, folderOf, found, inodeOf, now, requireNamed, requireWritable } from "./stat.ts";

/** Names come, move and go, and their nodes with them. Runs inside the caller's transaction. */
interface Names {
  /** Adds an entry with the node that the name had, or with a new one. */
  add(parent: InodeId, name: string, inode: InodeId, kind: "file" | "folder"): Entry;
  /** Makes a folder that the gateway does not know yet. */
  makeFolder(parent: InodeId, name: string): InodeId;
  /** A program removed the name: a deletion is queued if its node exists. */
  remove(entry: Entry): void;
  /** Renames to a free place. */
  move(entry: Entry, parent: InodeId, name: string): void;
  /** Renames a file over an existing one, whose entry keeps its node. */
  replaceTarget(source: Entry, target: Entry): void;
  /** Two entries exchange their places. */
  exchange(a: Entry, b: Entry): void;
  /**
   * Makes a node row for an entry whose node the gateway does not have. `dirtySince`: row time since which its content
   * waits to be sent; by default from now on.
   */
  createUnborn(entry: EntryId, kind: "file" | "folder", dirtySince?: RowTime | null): NodeRow;
  /** True: the content may go to another node, because its bytes can still be read then. */
  mayLeaveNode(id: InodeId): boolean;
  /** One name of the inode went, and `row` is its node row: the nodes of the other names must hold the whole inode. */
  keepInOthers(inode: InodeId, row: NodeRow | undefined): void;
  /** Asks for a node that cannot be deleted and blocks the row's name. */
  askForUndeletable(row: NodeRow): void;
  /** The node was just found: if it cannot be deleted, the entry that waits for its name takes it. */
  giveUndeletable(row: NodeRow): void;
}

/** Finds the node rows of names, folders and inodes. */
interface NodeRows {
  /** The row of the folder's own name. */
  ofFolder(folder: InodeId): NodeRow | undefined;
  /** The folder's node id; undefined while it is unborn. */
  nodeIdOfFolder(folder: InodeId): string | undefined;
  /** The inode of the folder with this node id. */
  folderOfNode(nodeId: string): InodeId | undefined;
  /** The inode that the row's name shows. */
  inodeOf(row: NodeRow): Inode | undefined;
  /** The rows of all names of the inode. */
  ofInode(inode: InodeId): NodeRow[];
  /** True while a deletion that was sent may have been carried out. */
  isBeingDeleted(row: NodeRow): boolean;
  /** Removes a row, or keeps it as a queued deletion while its creation may still arrive. */
  drop(id: NodeRowId): void;
  /** True: `folder` is below `ancestor`, or is the same. */
  isInside(folder: InodeId, ancestor: InodeId): boolean;
}

/**
 * The attributes of an inode as programs see them, and the clock that stamps files. `found` and `attributed` reject
 * with the error of the disk when an open file cannot be looked at.
 */
interface Stats {
  /** The attributes for an answer that finds the inode by a name. */
  found(inode: Inode): Promise<Found>;
  /** The attributes for an answer that holds nothing else. `kernelNodeId`: by default that of the inode. */
  attributed(inode: Inode, kernelNodeId?: KernelNodeId): Promise<Attributed>;
  /** The time by the clock that stamps the cache files. */
  now(): Time;
  /** The time of `now`, as text that the rows store. */
  nowText(): string;
}

/** The conditions of a call, checked before it does anything. Each throws an FsError if it is not met. */
interface Requirements {
  /** The inode of the kernel node id; else ESTALE. */
  inode(kernelNodeId: KernelNodeId): Inode;
  /** The folder of the kernel node id, which counts as used; else ESTALE or ENOTDIR. */
  folder(kernelNodeId: KernelNodeId): Inode;
  /** The folder was not removed; else ENOENT. */
  named(folder: Inode): void;
  /** Something may be changed; else EROFS, or the error of the disk. */
  writable(): void;
}

/**
 * Users and groups, in the numbers and names of this machine. Never rejects: an account whose name cannot be found has
 * its number alone.
 */
interface Owners {
  /** The account with this number (uid or gid). */
  account(kind: AccountKind, number: number): Promise<Account>;
  /** The owner of a node that the caller makes; undefined: no owner is stored. */
  maker(caller: Caller): Promise<Maker | undefined>;
  /** The attributes of a new node that `maker` makes in the folder. */
  madeBy(maker: Maker | undefined, folder: Inode, attributes: Attributes): Attributes;
  /** The attributes after chown(2); the same object if the account is the owner already. */
  chowned(attributes: Attributes, kind: AccountKind, account: Account): Attributes;
}

export interface Tree {
  readonly names: Names;
  readonly nodeRows: NodeRows;
  readonly stats: Stats;
  readonly requirements: Requirements;
  readonly owners: Owners;
}

export function createTree(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host): Tree {
  return {
    names: {
      add: (parent, name, inode, kind) => addName(context, parent, name, inode, kind),
      makeFolder: (parent, name) => makeFolder(context, parent, name),
      remove: (entry) => removeName(context, entry),
      move: (entry, parent, name) => moveName(context, entry, parent, name),
      replaceTarget: (source, target) => replaceTarget(context, source, target),
      exchange: (a, b) => exchangeNames(context, a, b),
      createUnborn: (entry, kind, dirtySince) => createUnborn(context, entry, kind, dirtySince),
      mayLeaveNode: (id) => mayLeaveNode(context, id),
      keepInOthers: (inode, row) => keepInOthers(context, inode, row),
      askForUndeletable: (row) => askForUndeletable(context, row),
      giveUndeletable: (row) => giveUndeletable(context, row),
    },
    nodeRows: {
      ofFolder: (folder) => rowOfFolder(context, folder),
      nodeIdOfFolder: (folder) => nodeIdOfFolder(context, folder),
      folderOfNode: (nodeId) => folderOfNode(context, nodeId),
      inodeOf: (row) => inodeOfRow(context, row),
      ofInode: (inode) => rowsOfInode(context, inode),
      isBeingDeleted: (row) => isBeingDeleted(context, row),
      drop: (id) => dropRow(context, id),
      isInside: (folder, ancestor) => isInside(context, folder, ancestor),
    },
    stats: {
      found: (inode) => found(context, inode),
      attributed: (inode, kernelNodeId) => attributed(context, inode, kernelNodeId),
      now: () => now(context),
      nowText: () => fileTimeText(context),
    },
    requirements: {
      inode: (kernelNodeId) => inodeOf(context, kernelNodeId),
      folder: (kernelNodeId) => folderOf(context, kernelNodeId),
      named: (folder) => requireNamed(context, folder),
      writable: () => requireWritable(context),
    },
    owners: {
      account: (kind, number) => accountOf(context, kind, number),
      maker: (caller) => makerOf(context, caller),
      madeBy,
      chowned: (attributes, kind, account) => chowned(context, attributes, kind, account),
    },
  };
}

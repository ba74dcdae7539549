/** Gathers the plan's input for one node from the rows. Reads only. */
import type { Scope } from "../../contract/scopes.ts";
import { minus } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { type Host, type LocalFiles, type Remote, type Rows, scopesOf, type Uploads } from "../core/index.ts";
import { mayRefer } from "../host/index.ts";
import type { Tree } from "../tree/index.ts";
import { hasOtherNames, isFollower, orderInGroup } from "./link-groups.ts";
import { localOf } from "./local.ts";
import type { View } from "./plan.ts";
import { fits } from "./quota.ts";
import {
  breaksCycle,
  exchangePartnerOf,
  hasAttempt,
  isPlaceOccupied,
  pathWithin,
  referrersOf,
} from "./rename-cycles.ts";

/**
 * A remote edit waits this long for a program that is writing the same file. It waits no longer when a drain is under
 * way, or when a program, perhaps the writer itself, waits for the upload of the file. Then both contents are kept.
 */
const WRITER_PATIENCE_MS = 15 * 60_000;

/** The view of a row. It reads other rows only when the plan asks, which is rare. It is true at this moment only. */
export function viewOf(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, row: NodeRow): View {
  return new RowView(context, row);
}

class RowView implements View {
  readonly kind: View["kind"];
  readonly isRoot: boolean;
  readonly nodeId: string | null;
  readonly base: View["base"];
  readonly seen: View["seen"];
  readonly local: View["local"];
  readonly #context: Rows & LocalFiles & Remote & Uploads & Host & Tree;
  readonly #row: NodeRow;
  readonly #inode: Inode | undefined;

  constructor(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, row: NodeRow) {
    const { entries, inodes } = context.metadata;
    const entry = row.entry === null ? undefined : entries.get(row.entry);
    const inode = entry === undefined ? undefined : inodes.get(entry.inode);
    this.#context = context;
    this.#row = row;
    this.#inode = inode;
    this.kind = row.kind;
    this.isRoot = inode?.id === ROOT_INODE;
    this.nodeId = row.nodeId;
    this.base = row.base;
    this.seen = row.seen;
    this.local = entry === undefined || inode === undefined ? null : localOf(context, row, entry, inode);
  }

  get hasAttempt() {
    return hasAttempt(this.#context, this.#row);
  }
  get hasAbandoned() {
    const isCreation = this.local === null && this.nodeId === null;
    return isCreation && this.#context.metadata.attempts.hasAbandonedCreation(this.#row.id);
  }
  get writers() {
    return this.#inode === undefined ? 0 : this.#context.cacheFiles.writersOf(this.#inode);
  }
  get below() {
    return this.local === null ? countBelow(this.#context, this.#row) : 0;
  }
  get cleanEntries() {
    return this.#countEntries().cleanEntries;
  }
  get dirtyEntries() {
    return this.#countEntries().dirtyEntries;
  }
  get isFollower() {
    return this.#inode !== undefined && isFollower(this.#context, this.#row, this.#inode);
  }
  get linkOrder() {
    const { seen } = this;
    if (this.#inode === undefined || seen === null || !("node" in seen)) return null;
    return orderInGroup(this.#inode, seen.node);
  }
  get hasOtherNames() {
    return hasOtherNames(this.#context, this.#row, this.#inode);
  }
  get mayHaveWritten() {
    const cacheFile = this.#inode === undefined ? undefined : this.#context.cacheFiles.get(this.#inode.kernelNodeId);
    return cacheFile?.mayHaveUndetectedWrites ?? false;
  }
  get hasWaited() {
    return hasWaited(this.#context, this.#row, this.#inode);
  }
  get isPlaceOccupied() {
    return isPlaceOccupied(this.#context, this.#row);
  }
  get partner() {
    const { client, network } = this.#context;
    if (!client.features.isFull || !network.mayExchange || !this.isPlaceOccupied) return null;
    const exchangePartner = exchangePartnerOf(this.#context, this.#row);
    if (exchangePartner?.nodeId == null || exchangePartner.base === null) return null;
    const { nodeId, base } = exchangePartner;
    return { nodeId, revision: base.revision, hasAttempt: hasAttempt(this.#context, exchangePartner) };
  }
  get isCycle() {
    return breaksCycle(this.#context, this.#row);
  }
  get isInsideItself() {
    return pathWithin(this.#context, this.#row).length > 0;
  }
  get isReferenced() {
    const { isFull } = this.#context.client.features;
    return (this.local === null || !isFull) && isReferenced(this.#context, this.#row);
  }
  get fits() {
    return fits(this.#context, this.#row);
  }
  get features() {
    return this.#context.client.features;
  }
  get mayRefer() {
    return this.#inode === undefined || mayRefer(this.#context, this.#inode);
  }
  get may() {
    const may = (scope: Scope) => this.#context.network.may(scope);
    return {
      create: scopesOf("upload").every(may),
      update: scopesOf("patch").every(may),
      refer: scopesOf("reference").every(may),
      delete: scopesOf("delete").every(may),
    };
  }

  #countEntries() {
    const isGone = this.seen !== null && "deleted" in this.seen;
    if (!isGone || this.#inode?.kind !== "folder") return { cleanEntries: 0, dirtyEntries: 0 };
    return countEntries(this.#context, this.#inode.id);
  }
}

function hasWaited(
  { drains, awaited, runtime }: Uploads & Host,
  { seenAt }: NodeRow,
  inode: Inode | undefined,
): boolean {
  if (seenAt === null) return false;
  const isAwaited = drains.count > 0 || (inode !== undefined && awaited.has(inode.id));
  return isAwaited || minus(runtime.now(), seenAt) > WRITER_PATIENCE_MS;
}

/**
 * True: another row still needs a version of this node. A row that the quota holds back does not count: the deletion of
 * this node may give the room that it waits for, and versions of deleted nodes can still be read.
 */
function isReferenced(context: Rows & Remote & Tree, row: NodeRow): boolean {
  if (row.kind !== "file") return false;
  const { metadata, client } = context;
  const isHeldBack = (other: NodeRow) =>
    client.features.isFull && !fits(context, other) && metadata.attempts.openOf(other.id) === undefined;
  return referrersOf(context, row).some((other) => !isHeldBack(other));
}

/**
 * For a folder that is gone at the gateway: the numbers of its entries without and with unsent changes. The latter
 * would be lost with the folder.
 */
function countEntries(context: Rows, folder: InodeId): { cleanEntries: number; dirtyEntries: number } {
  let cleanEntries = 0;
  let dirtyEntries = 0;
  let cookie = 0;
  for (;;) {
    const entries = context.metadata.entries.list(folder, cookie, 500);
    for (const entry of entries) {
      cookie = entry.id;
      if (entry.inode === folder) continue;
      const row = context.metadata.nodes.ofEntry(entry.id);
      if (row?.nodeId == null || row.dirtySince !== null) dirtyEntries += 1;
      else cleanEntries += 1;
    }
    if (entries.length < 500) return { cleanEntries, dirtyEntries };
  }
}

/** Counts the nodes in the folder at the gateway, by base and by requests that are not answered. */
function countBelow({ metadata }: Rows, row: NodeRow): number {
  if (row.kind !== "folder" || row.nodeId === null) return 0;
  return metadata.nodes.countBelow(row.nodeId) + metadata.attempts.nodesWanting(row.nodeId).length;
}

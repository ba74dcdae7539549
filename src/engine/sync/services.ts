/** The services of sync/ for other rooms. Each method is a flow of this room, whose own file says more. */
import type { RemoteError } from "../../client/errors.ts";
import type { JournalEntry, Node } from "../../contract/resources.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { DetachedFileRow } from "../../metadata/detached-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId, NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Reread } from "../../metadata/rereads.ts";
import type { EngineStatus } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Request, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { acknowledge, refused, type Verdict } from "./acknowledge.ts";
import { advance, type Pending } from "./advance.ts";
import { withHash } from "./content-hash.ts";
import { detachedFiles, pathOf, renameDetached, resolveDetached } from "./detached-files.ts";
import { forgetEchoes, type Source, withRevision } from "./echo.ts";
import { askMoreSeldom, isUntellable, notVisible, readNode, readOrHidden, refreshNode } from "./fetch-node.ts";
import { growthOf } from "./growth.ts";
import { askIndexWatermark, forgetDeletions, noteIndexWatermark, positionsNotAhead } from "./index-watermark.ts";
import { endLinkLeases } from "./link-groups.ts";
import { listRemovedFolder } from "./list-removed-folder.ts";
import { freeConflictName, moveToConflictName, moveToTemporaryName } from "./name-conflicts.ts";
import { isStaleRead, observeDeletion, observeNode, retryArrivals } from "./observe.ts";
import { keyOfContent, recognizeOwn } from "./own-writes.ts";
import { plan, type Step } from "./plan.ts";
import { judgeContents, parkQuarantined, wentDown } from "./power-loss.ts";
import { fits } from "./quota.ts";
import { exchangeOf } from "./rename-cycles.ts";
import { isRelistDue } from "./request-relist.ts";
import { areConfirmed, confirmByJournal, isAnyUnconfirmed } from "./unconfirmed.ts";
import { viewOf } from "./view.ts";

/** Takes in the gateway's news of nodes, and tells news from lag and from own writes. Never waits. */
interface Observer {
  /** Takes in a node as the gateway told it. `source`: by default "others". */
  node(told: Node, source?: Source): void;
  /** The gateway no longer has the node. `position`: that of the journal's entry; null: the node's id answers 404. */
  deletion(nodeId: string, revision: number, position: number | null): void;
  /**
   * Tries to place at most `limit` arrivals again, after this node id. Returns the id of the last one; undefined: all
   * have had their turn.
   */
  retryArrivals(after: string | undefined, limit: number): string | undefined;
  /** The node with the gateway's revision, or with one that is made here. Undefined: the told state is lag. */
  withRevision(told: Node, source: Source): Node | undefined;
  /** True: the node, as `withRevision` returns it, shows a state before a deletion that is known here. */
  isStaleRead(node: Node): boolean;
  /**
   * If the change with this key is the effect of a request that was given up, base moves, and this returns true. `key`:
   * by default the node's `lastKey`.
   */
  recognizeOwn(node: Node, key?: string): boolean;
  /** The key of a request that was given up and whose content the node has. */
  keyOfContent(row: NodeRow, node: Node): string | undefined;
  /** Forgets vacated states whose settle time is over. */
  forgetEchoes(): void;
}

/** Plans the next step of a node row. */
interface Planner {
  /** The plan's next step. Reads only. */
  step(row: NodeRow): Step;
  /** Carries out the steps that need no network and no wait. Undefined: nothing is left to do. */
  advance(id: NodeRowId): Pending | undefined;
  /** The request of another node that exchanges the two. */
  exchangeOf(row: NodeRow): Attempt<Request> | undefined;
  /** True: the workspace has room for the row's content, as far as this mount knows. */
  fits(row: NodeRow): boolean;
  /** The bytes by which the workspace grows when the row's content is sent. */
  growthOf(row: NodeRow): number;
  /** Marks a slice of names whose link lease is over. Returns whether there is more to do. */
  endLinkLeases(): boolean;
}

/** Applies the answer to a request to the rows. */
interface Answers {
  /** The request was carried out. `told`: the node after it. `position`: in the journal. Undefined: not told. */
  acknowledge(attempt: Attempt<Request>, told: Node, position?: number): void;
  /** The request was refused, or failed on its way. Closes the attempt unless the verdict is to retry. */
  refused(attempt: Attempt<Request>, error: RemoteError): Verdict;
}

/** Asks the gateway for nodes by their ids. Rejects with the RemoteError of the read. */
interface NodeReader {
  /** The node; undefined if its id answers 404. */
  read(nodeId: string, signal: AbortSignal): Promise<Node | undefined>;
  /** The node; undefined if its id answers 404; "hidden" if the account has no grant for it. */
  readOrHidden(nodeId: string, signal: AbortSignal): Promise<Node | "hidden" | undefined>;
  /** The node with the hash of its content. Reads the whole content. */
  withHash(node: Node, signal: AbortSignal): Promise<Node>;
  /** Reads the node and the unknown folders above it, and observes them. */
  refresh(reread: Reread, signal: AbortSignal): Promise<void>;
  /** The node may not be read by this account. */
  notVisible(reread: Reread): void;
  /** The node could not be read: it is read less and less often. */
  askMoreSeldom(reread: Reread): void;
  /** True: the gateway fails to tell of this one node, and not of every node. */
  isUntellable(error: unknown): boolean;
  /**
   * Lists removed folders that the gateway does not delete because they are not empty. Rejects only with a RemoteError
   * that is not about one folder: offline, silent, aborted, unauthorized, throttled, or forbidden for want of a scope.
   */
  listRemovedFolder(signal: AbortSignal): Promise<void>;
  /** True: a folder that is marked to be listed again is due. */
  isRelistDue(): boolean;
}

/** The changes that lists show: index watermark, tombstones and unconfirmed writes. */
interface Shown {
  /** Asks for the index watermark. Rejects with the RemoteError of the list. */
  ask(signal: AbortSignal): Promise<void>;
  /** A listing was complete up to this position. */
  note(asOf: number): void;
  /** For a start: sets positions that lie ahead of row time back to it. An earlier release wrote such. */
  positionsNotAhead(): void;
  /** Forgets deletions that journal and index have passed. */
  forgetDeletions(): void;
  /** True while lists may not show an unconfirmed write. */
  isAnyUnconfirmed(): boolean;
  /** Asks lists for the unconfirmed writes. True: lists show all of them. Rejects with the RemoteError of a list. */
  areConfirmed(signal: AbortSignal): Promise<boolean>;
  /** The journal tells of this change. */
  confirmByJournal(entry: JournalEntry): void;
}

/** Files that programs have open for writing while their names went on without them. */
interface DetachedFiles {
  all(): NonNullable<EngineStatus["overtaken"]>;
  /** The path that the file had. */
  pathOf(detached: DetachedFileRow): string;
  /** Gives the file a name, so that it is sent. Runs inside the caller's transaction. */
  rename(detached: DetachedFileRow): void;
  /** Files without a writer are detached no longer: changed ones get a name, the others go. */
  resolve(): void;
}

/** New names for entries that leave theirs. Runs inside the caller's transaction. */
interface ConflictNames {
  /** A free name in the folder that says on which machine, when and why the copy was made. */
  free(folder: InodeId, name: string, why?: "conflict" | "recovered"): string;
  /** The entry goes on under a conflict name, together with its node. */
  moveTo(entry: Entry): void;
  /** Gives the entry a name that is not in use, until the gateway's change of its node is carried out here. */
  moveToTemporary(entry: Entry): void;
}

/** The machine went down while the mount was there. */
interface PowerLoss {
  wentDown(): boolean;
  /** Call it before anything else looks at the contents. Rejects with the error of the disk. */
  judgeContents(): Promise<void>;
  /** Parks a row whose content is quarantined. */
  park(row: NodeRowId): void;
}

export interface Sync {
  readonly observer: Observer;
  readonly planner: Planner;
  readonly answers: Answers;
  readonly nodeReader: NodeReader;
  readonly shown: Shown;
  readonly detachedFiles: DetachedFiles;
  readonly conflictNames: ConflictNames;
  readonly powerLoss: PowerLoss;
}

export function createSync(context: Rows & LocalFiles & Remote & Uploads & Host & Tree): Sync {
  return {
    observer: {
      node: (told, source) => observeNode(context, told, source),
      deletion: (nodeId, revision, position) => observeDeletion(context, nodeId, revision, position),
      retryArrivals: (after, limit) => retryArrivals(context, after, limit),
      withRevision: (told, source) => withRevision(context, told, source),
      isStaleRead: (node) => isStaleRead(context, node),
      recognizeOwn: (node, key) => recognizeOwn(context, node, key),
      keyOfContent: (row, node) => keyOfContent(context, row, node),
      forgetEchoes: () => forgetEchoes(context),
    },
    planner: {
      step: (row) => plan(viewOf(context, row)),
      advance: (id) => advance(context, id),
      exchangeOf: (row) => exchangeOf(context, row),
      fits: (row) => fits(context, row),
      growthOf: (row) => growthOf(context, row),
      endLinkLeases: () => endLinkLeases(context),
    },
    answers: {
      acknowledge: (attempt, told, position) => acknowledge(context, attempt, told, position),
      refused: (attempt, error) => refused(context, attempt, error),
    },
    nodeReader: {
      read: (nodeId, signal) => readNode(context, nodeId, signal),
      readOrHidden: (nodeId, signal) => readOrHidden(context, nodeId, signal),
      withHash: (node, signal) => withHash(context, node, signal),
      refresh: (reread, signal) => refreshNode(context, reread, signal),
      notVisible: (reread) => notVisible(context, reread),
      askMoreSeldom: (reread) => askMoreSeldom(context, reread),
      isUntellable: (error) => isUntellable(context, error),
      listRemovedFolder: (signal) => listRemovedFolder(context, signal),
      isRelistDue: () => isRelistDue(context),
    },
    shown: {
      ask: (signal) => askIndexWatermark(context, signal),
      note: (asOf) => noteIndexWatermark(context, asOf),
      positionsNotAhead: () => positionsNotAhead(context),
      forgetDeletions: () => forgetDeletions(context),
      isAnyUnconfirmed: () => isAnyUnconfirmed(context),
      areConfirmed: (signal) => areConfirmed(context, signal),
      confirmByJournal: (entry) => confirmByJournal(context, entry),
    },
    detachedFiles: {
      all: () => detachedFiles(context),
      pathOf,
      rename: (detached) => renameDetached(context, detached),
      resolve: () => resolveDetached(context),
    },
    conflictNames: {
      free: (folder, name, why) => freeConflictName(context, folder, name, why),
      moveTo: (entry) => moveToConflictName(context, entry),
      moveToTemporary: (entry) => moveToTemporaryName(context, entry),
    },
    powerLoss: {
      wentDown: () => wentDown(context),
      judgeContents: () => judgeContents(context),
      park: (row) => parkQuarantined(context, row),
    },
  };
}

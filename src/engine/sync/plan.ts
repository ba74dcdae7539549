/**
 * The plan: from what the mount shows of a node (local), what was last agreed on (base) and what the gateway last told
 * (seen), it decides the next step towards agreement. Pure: no rows, no clock, no network. When a step may run
 * (debounce, retries) is up to the write-back loop. Any order of crashes, lag and edits only changes the three states,
 * so it only changes which step comes next.
 */
import { type Attributes, attributesDifference, sameAttributes, sameValue } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { type Base, isSameContent, type Seen } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";
import { mergeAttributes, withTimeOf } from "./merge-attributes.ts";

/** The content that the mount shows. `size`: in bytes. */
export interface LocalContent {
  /**
   * open: a writable handle may have changed the content, and it was not looked at since. While its hash is known,
   * nothing was written. Where the gateway tells no hashes, the first write makes the content dirty at once.
   */
  readonly state: "clean" | "open" | "dirty";
  /** Null while not known: a snapshot has to be taken first. */
  readonly hash: string | null;
  readonly size: number;
  /** The version that the content is (clean) or grew from. */
  readonly originNode: string | null;
  readonly originVersion: string | null;
  /** Its bytes can be sent: there is a snapshot of the newest content, or the content is empty. */
  readonly hasSnapshot: boolean;
}

export interface Local {
  /** The node id of the folder. Null: the folder is unborn, or this is the root. */
  readonly parent: string | null;
  readonly name: string;
  readonly attributes: Attributes;
  /** Null for a folder. */
  readonly content: LocalContent | null;
}

/** The node that may exchange places with this one. */
export interface Partner {
  readonly nodeId: string;
  readonly revision: number;
  /** A request about the partner is under way, and its answer is not known. */
  readonly hasAttempt: boolean;
}

/** All that the plan looks at. */
export interface View {
  readonly kind: "file" | "folder";
  readonly isRoot: boolean;
  /** Null: unborn. */
  readonly nodeId: string | null;
  readonly base: Base | null;
  readonly seen: Seen | null;
  /** Null: a program removed the name. */
  readonly local: Local | null;
  /** A request is under way, and its answer is not known. */
  readonly hasAttempt: boolean;
  /** A creation was given up a moment ago and may still arrive. */
  readonly hasAbandoned: boolean;
  /** Open writable handles of the inode. */
  readonly writers: number;
  /** Nodes in this folder, according to base. */
  readonly below: number;
  /** Entries of this folder that agree with the gateway, and entries that differ from it or are not there. */
  readonly cleanEntries: number;
  readonly dirtyEntries: number;
  /** One of several names of a file, not changed here. What its node lacks, others bring. */
  readonly isFollower: boolean;
  /**
   * Of a linked file: how the seen content relates to what the file shows. Null: it is in no group, or in another one.
   */
  readonly linkOrder: "same" | "behind" | "newer" | "apart" | null;
  /** The file has other names, so its content does not go with this one. */
  readonly hasOtherNames: boolean;
  /** There are passthrough writers, and write detection has not looked yet whether they have written. */
  readonly mayHaveWritten: boolean;
  /** A remote change has waited long enough for writers, or is to wait for none. */
  readonly hasWaited: boolean;
  /** In base, another node is at the place that this one wants. */
  readonly isPlaceOccupied: boolean;
  /** The node at that place, if it wants the place that this one has in base, and the gateway can exchange the two. */
  readonly partner: Partner | null;
  /** This row is to break a rename cycle: what waits for its name is, by way of others, what it waits for itself. */
  readonly isCycle: boolean;
  /** In base, the wanted folder is below this node. */
  readonly isInsideItself: boolean;
  /** Another inode still has a version of this node as its only content at the gateway. */
  readonly isReferenced: boolean;
  /** The workspace has room for the content, as far as is known. */
  readonly fits: boolean;
  /** The abilities of the gateway. */
  readonly features: Features;
  /** The gateway can be told to take the content from its origin version. */
  readonly mayRefer: boolean;
  /** The rights of the token. */
  readonly may: {
    readonly create: boolean;
    readonly update: boolean;
    /** A new version by reference: the gateway reads the content for it. */
    readonly refer: boolean;
    readonly delete: boolean;
  };
}

/**
 * The event that a row waits for. "look": only for write detection, to see what a passthrough writer may have done by
 * now.
 */
export type Waiting =
  | "answer"
  | "parent"
  | "children"
  | "name"
  | "names"
  | "writer"
  | "look"
  | "scope"
  | "quota"
  | "reference";

export type Step =
  | { readonly do: "nothing" }
  | { readonly do: "wait"; readonly for: Waiting }
  /** The row is no longer needed. */
  | { readonly do: "forget" }
  /**
   * Take a snapshot of the content, so that its hash is known. Also of clean content, so that its bytes can be sent.
   */
  | { readonly do: "snapshot" }
  | { readonly do: "send"; readonly request: Request }
  /** Move the node to a name that is not in use, so that a rename cycle opens. */
  | { readonly do: "breakCycle"; readonly ifRevision: number }
  /** Adopt what was seen. What stays different is sent afterwards. */
  | {
      readonly do: "adopt";
      readonly node: Node;
      readonly attributes: Attributes;
      readonly isPlaceAdopted: boolean;
      readonly isContentAdopted: boolean;
      /** The content here is the seen one: it becomes the clean version that it is. */
      readonly isContentAgreed: boolean;
    }
  /** The node was moved there, and what else is new of it has to wait: only the place is adopted. */
  | { readonly do: "adoptPlace"; readonly node: Node }
  /** Removed here, edited there: the name comes back. */
  | { readonly do: "undelete"; readonly node: Node }
  /** Removed there: the name goes. */
  | { readonly do: "removeLocal" }
  /** Removed there, changed here: it becomes a new node. */
  | { readonly do: "recreate" }
  /** Both sides changed the content: the local one moves aside, the remote one takes the name. */
  | { readonly do: "conflict"; readonly node: Node };

const wait = (reason: Waiting): Step => ({ do: "wait", for: reason });

/** The next step for the node. Throws only by a bug: a root that wants to be elsewhere. */
export function plan(view: View): Step {
  if (view.hasAttempt) return wait("answer");
  if (view.seen !== null && view.base !== null) return judge(view, view.seen, view.base);
  if (view.local === null) return planRemoval(view);
  if (view.base === null || view.nodeId === null) return planCreation(view, view.local);
  if (view.isFollower) return planFollower(view, view.local, view.base);
  return planChange(view, view.local, view.nodeId, view.base);
}

function planRemoval(view: View): Step {
  if (view.base === null || view.nodeId === null) return view.hasAbandoned ? wait("answer") : { do: "forget" };
  // A child of the node, or a row that needs the node, may itself wait for this name.
  if ((view.below > 0 || view.isReferenced) && view.isCycle && view.may.update) {
    return { do: "breakCycle", ifRevision: view.base.revision };
  }
  if (view.below > 0) return wait("children");
  if (view.isReferenced) return wait("reference");
  if (!view.may.delete) return wait("scope");
  return { do: "send", request: { do: "delete", nodeId: view.nodeId, ifRevision: view.base.revision } };
}

function planCreation(view: View, local: Local): Step {
  const { parent, name, attributes, content } = local;
  if (parent === null) return wait("parent");
  if (view.isPlaceOccupied) return wait("name");
  if (!view.may.create) return wait("scope");
  if (content === null) return { do: "send", request: { do: "folder", parent, name, attributes } };
  const { originNode, originVersion, hash, size } = content;
  if (isBorrowed(view, content)) return snapshot(view, content);
  if (!view.fits) return wait("quota");
  if (view.mayRefer && isVersion(view, content) && originNode !== null && originVersion !== null) {
    const request = { do: "copy", parent, name, copyOf: originNode, version: originVersion, hash, size } as const;
    return { do: "send", request: { ...request, attributes } };
  }
  if (hash === null || !isReady(content)) return snapshot(view, content);
  return { do: "send", request: { do: "upload", parent, name, hash, size, attributes } };
}

/**
 * A writer leaves a snapshot when it has finished, so the plan waits for it. But a writer that has written nothing since
 * a version, or since a snapshot that is gone, is not waited for: then a snapshot is taken now.
 */
function snapshot(view: View, content: LocalContent): Step {
  return view.writers > 0 && mayBeWritten(view, content) ? wait("writer") : { do: "snapshot" };
}

/** The content is the version that it comes from. Open content without a writer is looked at first. */
function isVersion(view: View, content: LocalContent): boolean {
  const { state } = content;
  return state === "clean" || (state === "open" && view.writers > 0 && !mayBeWritten(view, content));
}

/**
 * Borrowed content is a version of another node, at a gateway that takes no references. Then a snapshot is taken first:
 * with bytes of its own, the row does not hold back the deletion of that node, which may be what makes room for it.
 */
const isBorrowed = (view: View, content: LocalContent) =>
  isVersion(view, content) && !view.mayRefer && !isReady(content);

/**
 * Bytes can be sent when there is a snapshot, or when there are no bytes, whatever version that is. A symlink has none.
 */
function isReady({ state, hash, size, hasSnapshot }: LocalContent): boolean {
  return hash !== null && hasSnapshot && (state === "dirty" || size === 0);
}

/** The mount that changed the other names goes first. */
function planFollower(view: View, local: Local, base: Base): Step {
  const isSame = local.content === null || !differs(view, local.content, base);
  const isLike = !view.features.attributes || sameAttributes(base.attributes, local.attributes);
  return isSame && isLike ? { do: "nothing" } : wait("names");
}

function planChange(view: View, local: Local, nodeId: string, base: Base): Step {
  const contentDiffers = local.content !== null && differs(view, local.content, base);
  const place = isSamePlace(view, local, base) ? undefined : planMove(view, local);
  // Attributes travel with the content if the content is sent too, because mtime belongs to the version.
  const isSilent = contentDiffers || !view.features.attributes;
  const patch = isSilent ? undefined : attributesDifference(base.attributes, local.attributes);

  if (place?.do === "breakCycle") return { do: "breakCycle", ifRevision: base.revision };
  if (place?.do === "exchange") return planExchange(place, local, nodeId, base);
  if (place?.do === "move" || patch !== undefined) {
    if (!view.may.update) return wait("scope");
    const target = place?.do === "move" ? { parent: place.parent, name: local.name } : {};
    const attributes = patch === undefined ? {} : { attributes: patch };
    return { do: "send", request: { do: "patch", nodeId, ifRevision: base.revision, ...target, ...attributes } };
  }
  const content =
    contentDiffers && local.content !== null ? planContent(view, local, local.content, nodeId, base) : undefined;
  if (content !== undefined && content.do !== "wait") return content;
  if (place !== undefined) return wait(place.do === "wait" ? place.for : "name");
  return content ?? { do: "nothing" };
}

/** Only the place. Whatever else is new of either node is sent by itself afterwards. */
function planExchange(
  { parent, partner: exchangePartner }: ExchangePlace,
  local: Local,
  nodeId: string,
  base: Base,
): Step {
  if (base.parent === null) throw new Error("a root wants to be elsewhere");
  const there = { nodeId, ifRevision: base.revision, parent, name: local.name };
  const here = { withRevision: exchangePartner.revision, withParent: base.parent, withName: base.name };
  return { do: "send", request: { do: "exchange", ...there, with: exchangePartner.nodeId, ...here } };
}

function planContent(view: View, local: Local, content: LocalContent, nodeId: string, base: Base): Step {
  if (!view.may.update) return wait("scope");
  if (isBorrowed(view, content)) return snapshot(view, content);
  if (!view.fits) return wait("quota");
  // The version that others still need could not be read any more.
  if (view.isReferenced && !view.features.isFull) return wait("reference");
  const { originNode, originVersion, hash, size } = content;
  const attributes = changedAttributes(base.attributes, local.attributes);
  const common = { nodeId, ifHead: base.head, size, attributes };
  if (view.mayRefer && isVersion(view, content) && originNode !== null && originVersion !== null) {
    if (!view.may.refer) return wait("scope");
    return { do: "send", request: { do: "reference", ...common, hash, copyOf: originNode, version: originVersion } };
  }
  if (hash === null || !isReady(content)) return snapshot(view, content);
  return { do: "send", request: { do: "content", ...common, hash } };
}

/**
 * The attributes that go with new content: only those that were changed here. The request has a condition on the head
 * alone, and other attributes may have been changed elsewhere. Attributes that were removed here are sent as a patch
 * afterwards.
 */
function changedAttributes(base: Attributes, local: Attributes): Attributes {
  const changed: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(local)) {
    if (key === "mtime" || !sameValue(base[key], value)) changed[key] = value;
  }
  const xattrs = Object.entries(local.xattrs ?? {}).filter(([name, value]) => base.xattrs?.[name] !== value);
  return { ...changed, ...("xattrs" in changed ? { xattrs: Object.fromEntries(xattrs) } : {}) };
}

interface ExchangePlace {
  readonly do: "exchange";
  readonly parent: string;
  readonly partner: Partner;
}

function planMove(
  view: View,
  local: Local,
): { do: "move"; parent: string } | { do: "breakCycle" } | ExchangePlace | { do: "wait"; for: Waiting } {
  const { partner: exchangePartner } = view;
  if (exchangePartner !== null && local.parent !== null && view.may.update) {
    return exchangePartner.hasAttempt
      ? { do: "wait", for: "name" }
      : { do: "exchange", parent: local.parent, partner: exchangePartner };
  }
  if (view.isCycle && view.may.update) return { do: "breakCycle" };
  if (local.parent === null) return { do: "wait", for: "parent" };
  if (view.isInsideItself) return { do: "wait", for: "parent" };
  if (view.isPlaceOccupied) return { do: "wait", for: "name" };
  return { do: "move", parent: local.parent };
}

/** The state that the gateway told is newer than base, so it is merged. Nothing is sent before that. */
function judge(view: View, seen: Seen, base: Base): Step {
  if ("deleted" in seen) return judgeDeletion(view, base);
  const { node } = seen;
  const { local } = view;
  const { head, contentHash: hash } = node;
  const isContentMoved = view.kind === "file" && !isSameContent({ head, hash }, base);
  const isPlaceAdopted = !view.isRoot && (node.parentId !== base.parent || node.name !== base.name);
  if (local === null) {
    // Deletion against a remote edit: the edit wins. A mere move does not win against it.
    const isSame = node.contentHash !== null && node.contentHash === base.hash;
    if (isContentMoved && !isSame && !view.hasOtherNames) return { do: "undelete", node };
    return {
      do: "adopt",
      node,
      attributes: {},
      isPlaceAdopted: false,
      isContentAdopted: false,
      isContentAgreed: false,
    };
  }
  let isContentAdopted = false;
  let isContentAgreed = false;
  const attributes = judgeAttributes(view, local, node, base);
  // A file that has become a symlink has no bytes any more, whatever its head is.
  const isRetyped = attributes.type !== local.attributes.type;
  if ((isContentMoved || isRetyped) && local.content !== null) {
    const { content } = local;
    isContentAgreed = !isRetyped && content.hash !== null && content.hash === node.contentHash;
    const isChangedHere = !view.isFollower && !isInOrder(view, local) && differs(view, content, base);
    // A writer that has changed the content is waited for; it goes its own way in the end. A writer that has changed
    // nothing keeps the bytes, without the name.
    if (view.writers > 0 && !isContentAgreed) {
      if (isUnknown(view, content) || (isChangedHere && !view.hasWaited)) {
        return isPlaceAdopted ? { do: "adoptPlace", node } : wait("writer");
      }
      if (!isChangedHere && view.mayHaveWritten) return wait("look");
    }
    if (content.state === "open" && view.writers === 0) return { do: "snapshot" };
    // A clean version needs no hash to be kept beside: a gateway that tells no hashes has it all the same.
    if (!isContentAgreed && isChangedHere && content.hash === null && content.state !== "clean")
      return { do: "snapshot" };
    // The remote version has the same bytes as base, so the local change is a change of those bytes.
    const isOnTop = isChangedHere && !isRetyped && hash !== null && hash === base.hash;
    if (!isContentAgreed && isChangedHere && !isOnTop) return { do: "conflict", node };
    isContentAdopted = !isContentAgreed && !isOnTop && view.linkOrder !== "behind";
  }
  const isContentOld = isContentMoved && !isContentAdopted && !isContentAgreed;
  return {
    do: "adopt",
    node,
    attributes: isContentAdopted
      ? withTimeOf(node.attributes, attributes)
      : isContentOld
        ? withTimeOf(local.attributes, attributes)
        : attributes,
    isPlaceAdopted,
    isContentAdopted,
    isContentAgreed,
  };
}

/**
 * Contents are in order when one came after the other. Then the later writer had seen the earlier content, so neither
 * has to be kept beside.
 */
function isInOrder({ linkOrder }: View, { content }: Local): boolean {
  return content?.state === "clean" && (linkOrder === "newer" || linkOrder === "behind");
}

function judgeAttributes(view: View, local: Local, node: Node, base: Base): Attributes {
  // The local attributes differ from base because of what came in with other names, and not, or not only, because of a
  // program here. So the remote ones take precedence.
  if (view.isFollower || isInOrder(view, local)) {
    return mergeAttributes(base.attributes, node.attributes, local.attributes, false);
  }
  return mergeAttributes(base.attributes, local.attributes, node.attributes, view.kind === "folder");
}

function judgeDeletion(view: View, base: Base): Step {
  if (view.local === null) return { do: "forget" };
  // A root that cannot be seen any more says nothing of what is in it.
  if (view.isRoot) return wait("parent");
  if (view.kind === "folder") {
    if (view.dirtyEntries > 0) return { do: "recreate" };
    return view.cleanEntries > 0 ? wait("children") : { do: "removeLocal" };
  }
  const { content } = view.local;
  if (content === null) return { do: "removeLocal" };
  // The other names go on with whatever is written.
  if (view.hasOtherNames) return { do: "removeLocal" };
  const isChangedHere = differs(view, content, base);
  if (view.writers > 0) {
    if (isUnknown(view, content) || (isChangedHere && !view.hasWaited)) return wait("writer");
    if (!isChangedHere && view.mayHaveWritten) return wait("look");
  }
  if (content.state === "open" && view.writers === 0) return { do: "snapshot" };
  if (content.state === "dirty" && content.hash === null) return { do: "snapshot" };
  return isChangedHere ? { do: "recreate" } : { do: "removeLocal" };
}

/**
 * The content may have been written since the version or the snapshot that it was. Where the gateway tells no hashes, a
 * null hash does not mean that: there, a writer that has changed the content has made it dirty.
 */
function mayBeWritten({ features }: View, { state, hash }: LocalContent): boolean {
  return hash === null && (state === "dirty" || features.hashes);
}

/** A writer may have changed the content, and that is not known. */
const isUnknown = (view: View, content: LocalContent) => content.state === "open" && mayBeWritten(view, content);

function differs(view: View, content: LocalContent, base: Base): boolean {
  const { state, hash, originVersion } = content;
  if (hash !== null && hash === base.hash) return false;
  if (state === "dirty") return true;
  if (isUnknown(view, content)) return false;
  return originVersion !== null && originVersion !== base.head;
}

function isSamePlace(view: View, local: Local, base: Base): boolean {
  return view.isRoot || (local.parent === base.parent && local.name === base.name);
}

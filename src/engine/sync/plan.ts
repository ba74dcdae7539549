/**
 * The plan decides the next step towards agreement from three states of a node: the one that the mount shows (local),
 * the one last agreed on (base) and the one that the gateway told since (seen). Pure: no rows, no clock, no network.
 * The write-back loop decides the time of a step (debounce, retries). Crashes, lag and edits, in any order, only change
 * the three states, and so the next step.
 */
import { type Attributes, attributesDifference, sameAttributes, sameValue } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { type Base, isSameContent, type Seen } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";
import { mergeAttributes, withTimeOf } from "./merge-attributes.ts";

/** The content that the mount shows, but for its hash. `size`: in bytes. */
interface LocalContentBase {
  /**
   * open: a writable handle may have changed the content, and no look has shown it yet. While the hash is known,
   * nothing was written. Where the gateway tells no hashes, the first write makes the content dirty at once.
   */
  readonly state: "clean" | "open" | "dirty";
  readonly size: number;
  /** The version that the content is (clean) or grew from. */
  readonly originNode: string | null;
  readonly originVersion: string | null;
}

/**
 * `isReady`: the bytes can be sent, because there is a snapshot of the newest content, or because it is empty. Else a
 * snapshot has to be taken before they are sent. A hash of null is not known.
 */
export type LocalContent = LocalContentBase &
  ({ readonly isReady: true; readonly hash: string } | { readonly isReady: false; readonly hash: string | null });

export interface Local {
  /** The node id of the folder. Null: the folder is unborn, or this is the root. */
  readonly parent: string | null;
  readonly name: string;
  readonly attributes: Attributes;
  /** Null for a folder. */
  readonly content: LocalContent | null;
}

/** The node that may exchange places with this one. */
interface Partner {
  readonly nodeId: string;
  readonly revision: number;
  /** A request about the partner is under way, and its answer is not known. */
  readonly hasAttempt: boolean;
}

/** The whole input of the plan. */
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
  /**
   * For a folder that is gone at the gateway: its entries without and with unsent changes. New entries count as
   * changed. For any other folder: 0.
   */
  readonly cleanEntries: number;
  readonly dirtyEntries: number;
  /** One of several names of a file, not changed here. Other mounts bring its node up to date. */
  readonly isFollower: boolean;
  /** For a linked file: the order of the seen content to the shown one. Null: the node is not in the file's group. */
  readonly linkOrder: "same" | "behind" | "newer" | "apart" | null;
  /** The file has other names, so its content lives on if this name goes. */
  readonly hasOtherNames: boolean;
  /** There are passthrough writers, and write detection has still to show whether they have written. */
  readonly mayHaveWritten: boolean;
  /** The remote change has waited long enough for writers, or must not wait for them. */
  readonly hasWaited: boolean;
  /** In base, another node is at the place that this one wants. */
  readonly isPlaceOccupied: boolean;
  /** The node at that place, if it wants the place that this one has in base, and the gateway can exchange the two. */
  readonly partner: Partner | null;
  /** This row is to break a rename cycle: it waits, perhaps by way of others, for a row that waits for its name. */
  readonly isCycle: boolean;
  /** In base, the wanted folder is below this node. */
  readonly isInsideItself: boolean;
  /** The content of another row is, at the gateway, only a version of this node. */
  readonly isReferenced: boolean;
  /** The workspace has room for the content, as far as this mount knows. */
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

/** The event that a row waits for. "look": write detection, which shows whether a passthrough writer has written. */
type Waiting =
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
  /** Take a snapshot of the content, so that its hash is known, or so that bytes of clean content can be sent. */
  | { readonly do: "snapshot" }
  | { readonly do: "send"; readonly request: Request }
  /** Move the node to a name that is not in use, so that a rename cycle opens. */
  | { readonly do: "breakCycle"; readonly ifRevision: number }
  /** Adopt the seen state. The remaining differences are sent afterwards. */
  | {
      readonly do: "adopt";
      readonly node: Node;
      readonly attributes: Attributes;
      readonly isPlaceAdopted: boolean;
      readonly isContentAdopted: boolean;
      /** The local content has the seen bytes: it becomes clean. */
      readonly isContentAgreed: boolean;
    }
  /** Moved there, and the other news has to wait for a writer: only the place is adopted. */
  | { readonly do: "adoptPlace"; readonly node: Node }
  /** Removed here, edited there: the name comes back. */
  | { readonly do: "undelete"; readonly node: Node }
  /** Removed there: the name goes. */
  | { readonly do: "removeLocal" }
  /** Removed there, changed here: it becomes a new node. */
  | { readonly do: "recreate" }
  /** Both sides changed the content: the local one becomes a conflict copy, the remote one takes the name. */
  | { readonly do: "conflict"; readonly node: Node };

const wait = (reason: Waiting): Step => ({ do: "wait", for: reason });

/** The next step for the node. Throws an Error only by a bug: a root that is to be moved. */
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
  // A child of the node, or a row whose content is a version of it, may itself wait for this name.
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
  const { originNode, originVersion, hash, size, isReady } = content;
  if (isBorrowed(view, content)) return snapshot(view, content);
  if (!view.fits) return wait("quota");
  if (view.mayRefer && isVersion(view, content) && originNode !== null && originVersion !== null) {
    const request = { do: "copy", parent, name, copyOf: originNode, version: originVersion, hash, size } as const;
    return { do: "send", request: { ...request, attributes } };
  }
  if (!isReady) return snapshot(view, content);
  return { do: "send", request: { do: "upload", parent, name, hash, size, attributes } };
}

/**
 * The plan waits for a writer, because a snapshot is due once it has finished. But it does not wait for a writer that
 * has written nothing since a version, or since a snapshot that is gone: then a snapshot is taken now.
 */
function snapshot(view: View, content: LocalContent): Step {
  return view.writers > 0 && mayBeWritten(view, content) ? wait("writer") : { do: "snapshot" };
}

/** True: the content is the version that it comes from. Open content without a writer has to be looked at first. */
function isVersion(view: View, content: LocalContent): boolean {
  const { state } = content;
  return state === "clean" || (state === "open" && view.writers > 0 && !mayBeWritten(view, content));
}

/**
 * True: the content is a version that the gateway does not take by reference, and has no snapshot yet. A snapshot gives
 * it bytes of its own. Then the row does not hold back the deletion of the node of that version, which may make the
 * room that the row waits for.
 */
const isBorrowed = (view: View, content: LocalContent) =>
  isVersion(view, content) && !view.mayRefer && !content.isReady;

/** The row waits for the mount that changed the other names. */
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

/** The request changes only the places. Other changes of either node are sent by themselves afterwards. */
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
  // A plain gateway keeps no versions: a new one would replace the bytes that another row still needs.
  if (view.isReferenced && !view.features.isFull) return wait("reference");
  const { originNode, originVersion, hash, size, isReady } = content;
  const attributes = changedAttributes(base.attributes, local.attributes);
  const common = { nodeId, ifHead: base.head, size, attributes };
  if (view.mayRefer && isVersion(view, content) && originNode !== null && originVersion !== null) {
    if (!view.may.refer) return wait("scope");
    return { do: "send", request: { do: "reference", ...common, hash, copyOf: originNode, version: originVersion } };
  }
  if (!isReady) return snapshot(view, content);
  return { do: "send", request: { do: "content", ...common, hash } };
}

/**
 * The attributes that go with new content: the mtime, and those that were changed here. The others may have been
 * changed elsewhere, and the request has a condition on the head alone. Attributes that were removed here are sent as a
 * patch afterwards.
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

/** The seen state is newer than base, so it is merged. Nothing is sent before that. */
function judge(view: View, seen: Seen, base: Base): Step {
  if ("deleted" in seen) return judgeDeletion(view, base);
  const { node } = seen;
  const { local } = view;
  const { head, contentHash: hash } = node;
  const isContentMoved = view.kind === "file" && !isSameContent({ head, hash }, base);
  const isPlaceAdopted = !view.isRoot && (node.parentId !== base.parent || node.name !== base.name);
  if (local === null) {
    // A remote edit wins against the local deletion. A mere remote move does not.
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
  // A file that has become a symlink shows no bytes any more, whatever its head is.
  const isRetyped = attributes.type !== local.attributes.type;
  if ((isContentMoved || isRetyped) && local.content !== null) {
    const { content } = local;
    isContentAgreed = !isRetyped && content.hash !== null && content.hash === node.contentHash;
    const isChangedHere = !view.isFollower && !isInOrder(view, local) && differs(view, content, base);
    // The change waits for a writer that has changed the content; in the end, its content becomes a conflict copy. A
    // writer that has changed nothing keeps the bytes, without the name.
    if (view.writers > 0 && !isContentAgreed) {
      if (isUnknown(view, content) || (isChangedHere && !view.hasWaited)) {
        return isPlaceAdopted ? { do: "adoptPlace", node } : wait("writer");
      }
      if (!isChangedHere && view.mayHaveWritten) return wait("look");
    }
    if (content.state === "open" && view.writers === 0) return { do: "snapshot" };
    // Clean content is a version of the gateway, even if that tells no hashes. So it can be kept beside without a hash.
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

/** True: the writer of one content had seen the other content, so neither has to be kept beside. */
function isInOrder({ linkOrder }: View, { content }: Local): boolean {
  return content?.state === "clean" && (linkOrder === "newer" || linkOrder === "behind");
}

function judgeAttributes(view: View, local: Local, node: Node, base: Base): Attributes {
  // The local attributes differ from base because of changes that came in with other names, perhaps beside changes by
  // programs here. So the remote ones take precedence.
  if (view.isFollower || isInOrder(view, local)) {
    return mergeAttributes(base.attributes, node.attributes, local.attributes, false);
  }
  return mergeAttributes(base.attributes, local.attributes, node.attributes, view.kind === "folder");
}

function judgeDeletion(view: View, base: Base): Step {
  if (view.local === null) return { do: "forget" };
  // A root that is not visible any more says nothing of the nodes in it.
  if (view.isRoot) return wait("parent");
  if (view.kind === "folder") {
    if (view.dirtyEntries > 0) return { do: "recreate" };
    return view.cleanEntries > 0 ? wait("children") : { do: "removeLocal" };
  }
  const { content } = view.local;
  if (content === null) return { do: "removeLocal" };
  // The other names go on with the content.
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
 * True: the content may have changed since it was a version or a snapshot. Where the gateway tells no hashes, a null
 * hash does not mean that: there, a writer that has changed the content has made it dirty.
 */
function mayBeWritten({ features }: View, { state, hash }: LocalContent): boolean {
  return hash === null && (state === "dirty" || features.hashes);
}

/** True: a writer may have changed the content, and it is not known whether it has. */
const isUnknown = (view: View, content: LocalContent) => content.state === "open" && mayBeWritten(view, content);

/** True: the content is not base's. Content of which that is not known does not count as different. */
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

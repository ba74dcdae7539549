/**
 * The heart: from what the mount shows (local), what was last agreed on (base) and what the gateway
 * last told (seen) of one node, the next step towards agreement. Pure: no rows, no clock, no
 * network; when a step may run (debounce, retries) is the loop's business. Any order of crashes,
 * lag and edits only changes the three states, so it only changes which step comes next.
 */
import { type Attributes, attributesDifference, sameAttributes, sameValue } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { type Base, isSameContent, type Seen } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";
import { mergeAttributes, withTimeOf } from "./merge-attributes.ts";

export interface LocalContent {
  /** open: a writable handle may have changed it and it was not looked at since; while its hash is known, nothing was written. */
  readonly state: "clean" | "open" | "dirty";
  /** Null while not known: the content must be cut first. */
  readonly hash: string | null;
  readonly size: number;
  /** The version it is (clean) or grew from. */
  readonly originNode: string | null;
  readonly originVersion: string | null;
  /** Its bytes can be sent: a cut of the newest content exists, or it is empty. */
  readonly hasSnapshot: boolean;
}

export interface Local {
  /** Node id of the folder; null: unborn. Of the root: null too. */
  readonly parent: string | null;
  readonly name: string;
  readonly attributes: Attributes;
  /** Null for a folder. */
  readonly content: LocalContent | null;
}

export interface Partner {
  readonly nodeId: string;
  readonly revision: number;
  /** A request about it whose answer is not known. */
  readonly hasAttempt: boolean;
}

export interface View {
  readonly kind: "file" | "folder";
  readonly isRoot: boolean;
  /** Null: unborn. */
  readonly nodeId: string | null;
  readonly base: Base | null;
  readonly seen: Seen | null;
  /** Null: a program removed the name. */
  readonly local: Local | null;
  /** A request whose answer is not known. */
  readonly hasAttempt: boolean;
  /** A request was given up a moment ago and may still arrive. */
  readonly hasAbandoned: boolean;
  /** Open writable handles of the inode. */
  readonly writers: number;
  /** Nodes that are, in base, in this folder. */
  readonly below: number;
  /** Entries in this folder: those that agree with the gateway, and those it does not have like this. */
  readonly cleanEntries: number;
  readonly dirtyEntries: number;
  /** One of several names of a file that were not changed here: what its node lacks, others bring. */
  readonly isFollower: boolean;
  /** Of a linked file, what is seen against what it shows; null: it is of no group, or of another. */
  readonly linkOrder: "same" | "behind" | "newer" | "apart" | null;
  /** The file has other names: its content does not go with this one. */
  readonly hasOtherNames: boolean;
  /** The kernel writes for them, and nobody has looked yet whether it has. */
  readonly mayHaveWritten: boolean;
  /** A remote change has waited long enough for what the writers have written, or is to wait for none. */
  readonly hasWaited: boolean;
  /** Another node is, in base, at the place this one wants. */
  readonly isPlaceOccupied: boolean;
  /** That one wants the place this one has in base, and the gateway can exchange the two. */
  readonly partner: Partner | null;
  /** What waits for the name this one has in base is, by way of others, what this one waits for itself. */
  readonly isCycle: boolean;
  /** The wanted folder is, in base, below this node. */
  readonly isInsideItself: boolean;
  /** Some other inode still has this node's version as its only content at the gateway. */
  readonly isReferenced: boolean;
  /** The workspace has room for the content, as far as is known. */
  readonly fits: boolean;
  /** What the gateway can do. */
  readonly features: Features;
  /** What the token may do. */
  readonly may: { readonly create: boolean; readonly update: boolean; readonly delete: boolean };
}

/** "look": nothing but a look at what a writer, of whom nobody hears, may have done by now. */
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
  /** Make a generation of the content, so that its hash is known; of a clean one too, so that its bytes can be sent. */
  | { readonly do: "cut" }
  | { readonly do: "send"; readonly request: Request }
  /** Move the node to a name nobody uses, so that a ring of moves opens. */
  | { readonly do: "breakCycle"; readonly ifRevision: number }
  /** Take over what was seen; what stays different is sent afterwards. */
  | {
      readonly do: "adopt";
      readonly node: Node;
      readonly attributes: Attributes;
      readonly isPlaceAdopted: boolean;
      readonly isContentAdopted: boolean;
      /** The content here is the one seen: it becomes the clean version it is. */
      readonly isContentAgreed: boolean;
    }
  /** Moved there while what else is new of it has to wait: the place alone is taken over. */
  | { readonly do: "adoptPlace"; readonly node: Node }
  /** Removed here, edited there: the name comes back. */
  | { readonly do: "undelete"; readonly node: Node }
  /** Removed there: the name goes. */
  | { readonly do: "removeLocal" }
  /** Removed there, changed here: it becomes a new node. */
  | { readonly do: "recreate" }
  /** Both changed the content: the local one moves aside, the remote one takes the name. */
  | { readonly do: "conflict"; readonly node: Node };

const wait = (reason: Waiting): Step => ({ do: "wait", for: reason });

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
  // What is in it, or needs it, may itself wait for this name.
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
  if (isBorrowed(view, content)) return cut(view, content);
  if (!view.fits) return wait("quota");
  if (view.features.references && isVersion(view, content) && originNode !== null && originVersion !== null) {
    const request = { do: "copy", parent, name, copyOf: originNode, version: originVersion, hash, size } as const;
    return { do: "send", request: { ...request, attributes } };
  }
  if (hash === null || !isReady(content)) return cut(view, content);
  return { do: "send", request: { do: "upload", parent, name, hash, size, attributes } };
}

/** Who writes leaves a cut in the end; not who has written nothing since a version, or since a cut that is not there any more. */
function cut(view: View, { hash }: LocalContent): Step {
  return view.writers > 0 && hash === null ? wait("writer") : { do: "cut" };
}

/** The content is the version it comes from. What nobody holds open any more is looked at first. */
function isVersion(view: View, { state, hash }: LocalContent): boolean {
  return state === "clean" || (state === "open" && hash !== null && view.writers > 0);
}

/**
 * A version of another node, and the gateway takes no references: with bytes of its own it does not
 * hold back the deletion of that node, which may be what makes room for it.
 */
const isBorrowed = (view: View, content: LocalContent) =>
  isVersion(view, content) && !view.features.references && !isReady(content);

/** Its bytes can be sent: they are cut, or there are none, whatever version that is; a symlink has none either. */
function isReady({ state, hash, size, hasSnapshot }: LocalContent): boolean {
  return hash !== null && hasSnapshot && (state === "dirty" || size === 0);
}

/** Whoever changed the other names has his turn first. */
function planFollower(view: View, local: Local, base: Base): Step {
  const isSame = local.content === null || !differs(local.content, base);
  const isLike = !view.features.attributes || sameAttributes(base.attributes, local.attributes);
  return isSame && isLike ? { do: "nothing" } : wait("names");
}

function planChange(view: View, local: Local, nodeId: string, base: Base): Step {
  const contentDiffers = local.content !== null && differs(local.content, base);
  const place = isSamePlace(view, local, base) ? undefined : planMove(view, local);
  // Attributes travel with the content when that is sent too: mtime belongs to the version.
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

/** The place alone: whatever else is new of either is sent by itself afterwards. */
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
  if (isBorrowed(view, content)) return cut(view, content);
  if (!view.fits) return wait("quota");
  // The version others still need could not be read any more.
  if (view.isReferenced && !view.features.versions) return wait("reference");
  const { originNode, originVersion, hash, size } = content;
  const attributes = changedAttributes(base.attributes, local.attributes);
  const common = { nodeId, ifHead: base.head, size, attributes };
  if (view.features.references && isVersion(view, content) && originNode !== null && originVersion !== null) {
    return { do: "send", request: { do: "reference", ...common, hash, copyOf: originNode, version: originVersion } };
  }
  if (hash === null || !isReady(content)) return cut(view, content);
  return { do: "send", request: { do: "content", ...common, hash } };
}

/**
 * What goes with new content: only what was changed here, because the request's condition is on the
 * head alone and somebody may have changed other attributes. What was removed is a patch afterwards.
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

/** What the gateway told is newer than base: merge it. Nothing is sent before that. */
function judge(view: View, seen: Seen, base: Base): Step {
  if ("deleted" in seen) return judgeDeletion(view, base);
  const { node } = seen;
  const { local } = view;
  const { head, contentHash: hash } = node;
  const isContentMoved = view.kind === "file" && !isSameContent({ head, hash }, base);
  const isPlaceAdopted = !view.isRoot && (node.parentId !== base.parent || node.name !== base.name);
  if (local === null) {
    // Delete against a remote edit: the edit wins. Against a mere move it does not.
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
  // A file that is a symlink now has no bytes any more, whatever its head is.
  const isRetyped = attributes.type !== local.attributes.type;
  if ((isContentMoved || isRetyped) && local.content !== null) {
    const { content } = local;
    isContentAgreed = !isRetyped && content.hash !== null && content.hash === node.contentHash;
    const isChangedHere = !view.isFollower && !isInOrder(view, local) && differs(content, base);
    // What a writer has changed goes its own way in the end. One who has changed nothing keeps the bytes, without the name.
    if (view.writers > 0 && !isContentAgreed) {
      if (isUnknown(view, content) || (isChangedHere && !view.hasWaited)) {
        return isPlaceAdopted ? { do: "adoptPlace", node } : wait("writer");
      }
      if (!isChangedHere && view.mayHaveWritten) return wait("look");
    }
    if (content.state === "open" && view.writers === 0) return { do: "cut" };
    // A version needs no hash to be kept beside: a gateway that tells none has it all the same.
    if (!isContentAgreed && isChangedHere && content.hash === null && content.state !== "clean") return { do: "cut" };
    // The same bytes by another version: what was changed here was changed of them.
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

/** One of the two came after the other, so who wrote it has seen that: neither has to be kept beside. */
function isInOrder({ linkOrder }: View, { content }: Local): boolean {
  return content?.state === "clean" && (linkOrder === "newer" || linkOrder === "behind");
}

function judgeAttributes(view: View, local: Local, node: Node, base: Base): Attributes {
  // It differs from base by what came in with its other names, not, or not only, by what a program did here.
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
  const isChangedHere = differs(content, base);
  if (view.writers > 0) {
    if (isUnknown(view, content) || (isChangedHere && !view.hasWaited)) return wait("writer");
    if (!isChangedHere && view.mayHaveWritten) return wait("look");
  }
  if (content.state === "open" && view.writers === 0) return { do: "cut" };
  if (content.state === "dirty" && content.hash === null) return { do: "cut" };
  return isChangedHere ? { do: "recreate" } : { do: "removeLocal" };
}

/** Whether a writer has changed it nobody can say; where the gateway tells no hashes one that has says so. */
function isUnknown({ features }: View, { state, hash }: LocalContent): boolean {
  return state === "open" && hash === null && features.hashes;
}

/** The content here is not the one base names. */
function differs({ state, hash, originVersion }: LocalContent, base: Base): boolean {
  if (hash !== null && hash === base.hash) return false;
  if (state === "dirty") return true;
  if (state === "open" && hash === null) return false;
  return originVersion !== null && originVersion !== base.head;
}

function isSamePlace(view: View, local: Local, base: Base): boolean {
  return view.isRoot || (local.parent === base.parent && local.name === base.name);
}

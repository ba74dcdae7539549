/**
 * The gateway as plain values, for the planner's property test: nodes, versions, revisions and the
 * conditions of docs/gateway/api.md, and who made what, so that a test can say what was overwritten unseen.
 */
import { type Attributes, type AttributesPatch, patchAttributes } from "../../../src/contract/attributes.ts";
import type { Features } from "../../../src/contract/features.ts";
import type { Node } from "../../../src/contract/resources.ts";
import type { Request } from "../../../src/engine/core/index.ts";

export const ROOT = "root";
const TIME = "2026-01-01T00:00:00.000Z";

/** What a gateway can do that the plan minds: besides its features, whether it takes these two requests. */
export interface Abilities extends Features {
  readonly references: boolean;
  readonly exchanges: boolean;
}

export type News = { readonly node: Node } | { readonly deleted: string; readonly revision: number };

/** invalid: a folder into itself. */
type Refusal = "changed" | "conflict" | "notFound" | "invalid";

export type Answer =
  | { readonly ok: true; readonly node: Node; readonly position: number }
  | { readonly ok: false; readonly code: Refusal; readonly node?: Node };

interface Stored {
  node: Node;
  isDeleted: boolean;
  readonly versions: Map<string, string>;
}

export interface Change {
  readonly parentId?: string;
  readonly name?: string;
  readonly attributes?: Attributes;
  readonly content?: string;
  readonly isDeleted?: boolean;
}

/** `repeats`: what a request repeated with its key is answered: the first answer, or the node as it is by now. */
export function createGateway(repeats: "first" | "current", features: Abilities) {
  const stored = new Map<string, Stored>();
  const answers = new Map<string, Answer>();
  const ours = new Set<string>();
  /** Nodes whose place was chosen by a request of the mount. */
  const placedByUs = new Set<string>();
  const news: News[] = [];
  let position = 0;
  let ids = 0;

  const held = (attributes: Attributes): Attributes => (features.attributes ? attributes : {});
  const live = (id: string | null): Node | undefined => {
    const found = id === null ? undefined : stored.get(id);
    return found === undefined || found.isDeleted ? undefined : found.node;
  };
  const at = (parent: string | null, name: string): Node | undefined =>
    [...stored.values()].find((s) => !s.isDeleted && s.node.parentId === parent && s.node.name === name)?.node;
  const children = (id: string): Node[] =>
    [...stored.values()].filter((s) => !s.isDeleted && s.node.parentId === id).map((s) => s.node);
  const isWithin = (id: string, ancestor: string): boolean => {
    for (let at: string | null = id; at !== null; at = stored.get(at)?.node.parentId ?? null) {
      if (at === ancestor) return true;
    }
    return false;
  };

  function create(
    parent: string | null,
    name: string,
    content: string | null,
    attributes: Attributes,
    key: string | null,
  ): Node {
    const id = parent === null ? ROOT : `n${++ids}`;
    const head = content === null ? null : `v${++ids}`;
    const node: Node = {
      id,
      kind: content === null ? "folder" : "file",
      path: "",
      name,
      parentId: parent,
      mimeType: null,
      size: content?.length ?? 0,
      head,
      contentHash: content,
      lastKey: key,
      revision: 1,
      createdAt: TIME,
      modifiedAt: TIME,
      attributes: held(attributes),
    };
    const versions = new Map(head === null || content === null ? [] : [[head, content]]);
    stored.set(id, { node, isDeleted: false, versions });
    if (key !== null && head !== null) ours.add(head);
    if (key !== null) placedByUs.add(id);
    position += 1;
    news.push({ node });
    return node;
  }

  function change(id: string, to: Change, key: string | null, isOurs: boolean): Node {
    const found = stored.get(id);
    if (found === undefined) throw new Error(`no node ${id}`);
    const { content, isDeleted, ...place } = to;
    let node: Node = { ...found.node, ...place, revision: found.node.revision + 1, lastKey: key };
    if (content !== undefined) {
      const head = `v${++ids}`;
      found.versions.set(head, content);
      if (isOurs) ours.add(head);
      node = { ...node, head, contentHash: content, size: content.length };
    }
    found.node = { ...node, attributes: held(node.attributes) };
    if (isDeleted !== undefined) found.isDeleted = isDeleted;
    if (to.parentId !== undefined && isOurs) placedByUs.add(id);
    else if (to.parentId !== undefined) placedByUs.delete(id);
    position += 1;
    news.push(isDeleted ? { deleted: id, revision: node.revision } : { node: found.node });
    return found.node;
  }

  const done = (node: Node): Answer => ({ ok: true, node, position });
  const refuse = (code: Refusal, node?: Node): Answer =>
    node === undefined ? { ok: false, code } : { ok: false, code, node };

  function copied(copyOf: string, version: string): string {
    if (!features.references) throw new Error("content by reference was asked for, which is not known here");
    const content = stored.get(copyOf)?.versions.get(version);
    if (content === undefined) throw new Error(`copy of ${copyOf} ${version}, which never was`);
    return content;
  }

  /** A version as §7 has it: attributes merge by key, mtime is the version's own. */
  function versioned(node: Node, attributes: Attributes): Attributes {
    const { mtime: _, ...kept } = node.attributes;
    return patchAttributes(kept, attributes);
  }

  function effect(request: Request, key: string, bytes: string): Answer {
    switch (request.do) {
      case "folder":
      case "upload":
      case "copy": {
        if (live(request.parent)?.kind !== "folder") return refuse("notFound");
        const taken = at(request.parent, request.name);
        if (taken !== undefined) return refuse(request.do === "upload" ? "changed" : "conflict", taken);
        const content =
          request.do === "folder" ? null : request.do === "copy" ? copied(request.copyOf, request.version) : bytes;
        return done(create(request.parent, request.name, content, request.attributes, key));
      }
      case "content":
      case "reference": {
        const node = live(request.nodeId);
        if (node === undefined) return refuse("notFound");
        if (request.ifHead !== null && node.head !== request.ifHead) return refuse("changed", node);
        const content = request.do === "reference" ? copied(request.copyOf, request.version) : bytes;
        return done(change(node.id, { content, attributes: versioned(node, request.attributes) }, key, true));
      }
      case "patch": {
        const node = live(request.nodeId);
        if (node === undefined) return refuse("notFound");
        if (node.revision !== request.ifRevision) return refuse("changed", node);
        return patch(node, request.parent, request.name, request.attributes, true);
      }
      case "exchange": {
        if (!features.exchanges) throw new Error("an exchange was asked for, which is not known here");
        const [node, other] = [live(request.nodeId), live(request.with)];
        if (node === undefined || other === undefined) return refuse("notFound");
        if (node.revision !== request.ifRevision) return refuse("changed", node);
        if (other.revision !== request.withRevision) return refuse("changed", other);
        if (isWithin(node.id, other.id) || isWithin(other.id, node.id)) return refuse("invalid");
        const isMeant = other.parentId === request.parent && other.name === request.name;
        if (!isMeant || node.parentId !== request.withParent || node.name !== request.withName) {
          throw new Error("an exchange was asked for of places they do not have");
        }
        change(other.id, { parentId: request.withParent, name: request.withName }, key, true);
        return done(change(node.id, { parentId: request.parent, name: request.name }, key, true));
      }
      case "delete": {
        const node = live(request.nodeId);
        if (node === undefined) return refuse("notFound");
        if (node.revision !== request.ifRevision) return refuse("changed", node);
        if (children(node.id).length > 0) return refuse("conflict");
        return done(change(node.id, { isDeleted: true }, null, true));
      }
    }
  }

  function patch(
    node: Node,
    parent: string | undefined,
    name: string | undefined,
    attributes: AttributesPatch | undefined,
    isOurs: boolean,
  ): Answer {
    const to = { parentId: parent ?? node.parentId ?? "", name: name ?? node.name };
    if (node.id !== ROOT && (to.parentId !== node.parentId || to.name !== node.name)) {
      if (live(to.parentId)?.kind !== "folder") return refuse("notFound");
      if (isWithin(to.parentId, node.id)) return refuse("invalid");
      const taken = at(to.parentId, to.name);
      if (taken !== undefined && taken.id !== node.id) return refuse("conflict", taken);
    }
    const moves = to.parentId !== node.parentId || to.name !== node.name;
    const place = node.id === ROOT || !moves ? {} : to;
    const merged = attributes === undefined ? {} : { attributes: patchAttributes(node.attributes, attributes) };
    return done(change(node.id, { ...place, ...merged }, null, isOurs));
  }

  create(null, "", null, {}, null);
  return {
    news,
    live,
    at,
    children,
    isWithin,
    isDeleted: (id: string) => stored.get(id)?.isDeleted ?? false,
    revisionOf: (id: string) => stored.get(id)?.node.revision ?? 0,
    /** Written by a request of the mount. */
    isOurs: (version: string) => ours.has(version),
    /** Who put it where it is no longer counts: the mount took it for two nodes meanwhile. */
    forgetPlacing: (id: string) => placedByUs.delete(id),
    /** It is where a request of the mount put it. */
    isPlacedByUs: (node: Node) => {
      const now = stored.get(node.id)?.node;
      return placedByUs.has(node.id) && now?.parentId === node.parentId && now.name === node.name;
    },
    nodes: (): Node[] => [...stored.values()].filter((s) => !s.isDeleted).map((s) => s.node),
    contents: () => new Set([...stored.values()].flatMap((s) => [...s.versions.values()])),
    /** What a request of the mount does. By its key it is done once. */
    apply(request: Request, key: string, bytes: string): Answer {
      const before = answers.get(key);
      if (before?.ok) {
        const now = live(before.node.id);
        return repeats === "first" || now === undefined ? before : { ...before, node: now };
      }
      const answer = effect(request, key, bytes);
      if (answer.ok) answers.set(key, answer);
      return answer;
    },
    /** What somebody else does. Undefined or a refusal: it could not be done. */
    theirs: {
      create: (parent: string, name: string, content: string | null, attributes: Attributes): Node | undefined =>
        live(parent)?.kind === "folder" && at(parent, name) === undefined
          ? create(parent, name, content, attributes, null)
          : undefined,
      write: (node: Node, content: string) =>
        change(node.id, { content, attributes: versioned(node, {}) }, null, false),
      patch(node: Node, parent: string | undefined, name: string | undefined, attributes?: AttributesPatch) {
        if (parent !== undefined && isWithin(parent, node.id)) return;
        patch(node, parent, name, attributes, false);
      },
      /** Any change at once, whatever the conditions; the whole has to be a tree afterwards. */
      become: (id: string, to: Change) => change(id, to, null, false),
      remove(node: Node): void {
        if (children(node.id).length === 0 && node.id !== ROOT) change(node.id, { isDeleted: true }, null, false);
      },
    },
  };
}

export type Gateway = ReturnType<typeof createGateway>;

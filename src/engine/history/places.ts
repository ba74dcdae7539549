/** What lies where in the history folder: the places in a place, found by name or listed. Asks the gateway, changes nothing. */

import type { ListedNode, Node, Version } from "../../contract/resources.ts";
import { parseMoment } from "../../lib/moment.ts";
import { isoToTimeText } from "../../lib/time.ts";
import { kindOf } from "../../metadata/nodes.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { isSettled, type PastLists, type Which } from "./past-lists.ts";
import { deletedName, unique, versionName } from "./past-names.ts";
import type { Content, FolderView, Place } from "./place.ts";

/** Listed in at/, so that a person who looks sees how moments are written. Every other moment is found by name. */
const MOMENTS = ["10m", "1h", "1d", "1w", "yesterday"];
const ABSOLUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A gateway that tells of more folders above a node is taken to tell of a circle. */
const DEPTH_MAX = 1000;

type Needs = Pick<Rows, "metadata"> & Remote & Host;

export interface Places {
  /**
   * Undefined: there is no such name. Rejects with an FsError: EOPNOTSUPP where the gateway keeps no history, ENOTDIR, EIO
   * where that cannot be known while the gateway is away.
   */
  child(parent: Place, name: string, signal: AbortSignal): Promise<Place | undefined>;
  /** By name, sorted. The same errors. */
  list(parent: Place, signal: AbortSignal): Promise<ReadonlyMap<string, Place>>;
  /** The root of the mount as it was at the moment (ISO 8601, UTC). */
  root(at: string): Place;
}

export function createPlaces(context: Needs, lists: PastLists): Places {
  const { client, runtime, workspace } = context;
  const root = workspace.rootId;

  function requireHistory(view: "versions" | "at" | "deleted"): void {
    if (client.features.isFull) return;
    throw new FsError("EOPNOTSUPP", `${view}/: this gateway keeps no history that can be read`);
  }

  const rootAt = (at: string) => folder({ show: "at", at }, root, at);

  function momentOf(name: string): Place | undefined {
    if (ABSOLUTE.test(name) && !Number.isNaN(Date.parse(name))) return rootAt(name);
    const now = runtime.wallClock();
    try {
      // Colons are awkward in names: 2026-11-27 10.22.31, as versions are called, means the same.
      const at = parseMoment(name.replace(/^(\d{4}-\d\d-\d\d[ T]\d\d)\.(\d\d)(?:\.(\d\d))?$/, spellTime), now);
      return at > now ? undefined : link(new Date(at).toISOString(), now);
    } catch {
      return undefined;
    }
  }

  async function versions({ node, name }: Extract<Place, { is: "versions" }>, signal: AbortSignal) {
    requireHistory("versions");
    const all = await lists.versions(node, signal);
    const last = all.at(-1)?.number ?? 0;
    return new Map(
      all.map((version): [string, Place] => [versionName(version, name, last), contentOfVersion(version)]),
    );
  }

  async function inFolder({ view, node, isDeleted }: Extract<Place, { is: "folder" }>, signal: AbortSignal) {
    const found = new Map<string, Place>();
    const { show } = view;
    if (show !== "now") requireHistory(show);
    const which: Which = show === "at" ? { at: view.at } : {};
    // A folder that is deleted has no children: they were deleted before it.
    const children = isDeleted ? [] : await lists.children(node, which, signal);
    for (const child of children) {
      const place = placeOf(child, view);
      if (isShown(child.name) && place !== undefined) found.set(child.name, place);
    }
    if (show !== "deleted") return found;
    const taken = new Set(found.keys());
    for (const gone of await lists.children(node, { deleted: true }, signal)) {
      const place = gone.kind === "folder" ? folderOf(gone, view, true) : contentOf(gone);
      if (!isShown(gone.name) || place === undefined) continue;
      found.set(unique(deletedName(gone.name, gone.deletedAt, gone.deletedBy), taken), place);
    }
    return found;
  }

  async function list(parent: Place, signal: AbortSignal): Promise<Map<string, Place>> {
    switch (parent.is) {
      case "top":
        return new Map(Object.entries(TOP))
          .set("versions", folder({ show: "versions" }, root))
          .set("deleted", folder({ show: "deleted" }, root));
      case "moments":
        requireHistory("at");
        return new Map(MOMENTS.flatMap((name) => entry(name, momentOf(name))));
      case "nodes":
        return new Map();
      case "versions":
        return versions(parent, signal);
      case "folder":
        return inFolder(parent, signal);
      default:
        throw new FsError("ENOTDIR", "no folder of the past");
    }
  }

  return {
    root: rootAt,
    async list(parent, signal) {
      const all = await list(parent, signal);
      return new Map([...all].toSorted(([a], [b]) => (a < b ? -1 : 1)));
    },
    async child(parent, name, signal) {
      if (parent.is === "moments") {
        requireHistory("at");
        return momentOf(name);
      }
      if (parent.is !== "nodes") {
        const place = (await list(parent, signal)).get(name);
        // A kept list may be older than the name.
        if (place === undefined && !context.network.isOnline && mayHaveChanged(parent)) {
          throw new FsError("EIO", "the gateway does not answer, and the list that was kept lacks the name");
        }
        return place;
      }
      const node = await ask(name, signal);
      if (!(await isMounted(node, signal))) return undefined;
      return node.kind === "folder" ? folderOf(node, { show: "now" }, false) : contentOf(node);
    },
  };

  function mayHaveChanged(parent: Place): boolean {
    if (parent.is !== "folder") return parent.is === "versions";
    const { view } = parent;
    return view.show !== "at" || !isSettled(view.at, runtime);
  }

  function ask(id: string, signal: AbortSignal): Promise<Node> {
    return context.network.ask(signal, (limit) => client.getNode(id, { signal: limit }));
  }

  /** Whether the node is in the folder that is mounted. Known nodes are; for others the folders above are asked for. */
  async function isMounted(node: Node, signal: AbortSignal): Promise<boolean> {
    const isKnown = (id: string) => context.metadata.nodes.ofNodeId(id) !== undefined;
    let above = node;
    for (let depth = 0; !isKnown(above.id); depth += 1) {
      if (above.parentId === null || depth === DEPTH_MAX) return false;
      above = await ask(above.parentId, signal);
    }
    return true;
  }

  function folder(view: FolderView, node: string, mtime = new Date(0).toISOString()): Place {
    return { is: "folder", view, node, mtime: isoToTimeText(mtime), isDeleted: false };
  }
}

const TOP: Readonly<Record<string, Place>> = {
  at: { is: "moments" },
  nodes: { is: "nodes" },
  README: { is: "text", text: "readme" },
  "status.json": { is: "text", text: "status" },
};

function entry(name: string, place: Place | undefined): [string, Place][] {
  return place === undefined ? [] : [[name, place]];
}

function spellTime(_all: string, day: string, minutes: string, seconds: string | undefined): string {
  return seconds === undefined ? `${day}:${minutes}` : `${day}:${minutes}:${seconds}`;
}

function link(target: string, now: number): Place {
  return { is: "link", target, mtime: isoToTimeText(new Date(now).toISOString()) };
}

/** Names that a program cannot open, as in the mount itself. */
function isShown(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !name.includes("/");
}

function placeOf(node: ListedNode, view: FolderView): Place | undefined {
  if (node.kind === "folder") return folderOf(node, view, false);
  if (view.show === "deleted") return undefined;
  if (view.show === "versions" && kindOf(node) === "file") {
    return { is: "versions", node: node.id, name: node.name, mtime: isoToTimeText(node.modifiedAt) };
  }
  return contentOf(node);
}

function folderOf(node: Node, view: FolderView, isDeleted: boolean): Place {
  return { is: "folder", view, node: node.id, mtime: isoToTimeText(node.modifiedAt), isDeleted };
}

/** Undefined: a pipe, a socket or a device has no content to show. */
function contentOf(node: Node): Place | undefined {
  const { attributes, head } = node;
  const mtime = attributes.mtime ?? isoToTimeText(node.modifiedAt);
  const kind = kindOf(node);
  if (kind === "symlink") return { is: "link", target: attributes.target ?? "", mtime };
  if (kind !== "file" || head === null) return undefined;
  const { id, size, contentHash: hash } = node;
  return { is: "content", node: id, version: head, size, hash, mtime, mode: attributes.mode ?? 0o644 };
}

function contentOfVersion({ nodeId, id, size, contentHash, createdAt, attributes }: Version): Content {
  return {
    is: "content",
    node: nodeId,
    version: id,
    size,
    hash: contentHash,
    mtime: attributes?.mtime ?? isoToTimeText(createdAt),
    mode: attributes?.mode ?? 0o644,
  };
}

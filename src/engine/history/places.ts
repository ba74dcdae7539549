/** The tree of the history folder: finds and lists the places in a place. Asks the gateway, changes nothing. */

import { LRUCache } from "lru-cache";
import type { ListedNode, Node, Version } from "../../contract/resources.ts";
import { type ElapsedTime, earlierOf, plus, type WallTime } from "../../lib/clocks.ts";
import { parseMoment } from "../../lib/moment.ts";
import { isoToTimeText } from "../../lib/time.ts";
import { kindOf } from "../../metadata/nodes.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { isPastSettleTime, type PastLists, type Which } from "./past-lists.ts";
import { deletedName, nameBeforeDeletion, versionName } from "./past-names.ts";
import type { Content, FolderView, HistoryPlace } from "./place.ts";

/** The moments that at/ lists, as examples for people. Every other moment is found by name. */
const MOMENTS = ["10m", "1h", "1d", "1w", "yesterday"];
/**
 * A relative moment such as "10m" stands still while it is used: until STANDS_MS after the last use, and for at most
 * STANDS_MAX_MS. So a program that walks through it sees one tree. The kernel asks for its name every second.
 */
const STANDS_MS = 2_000;
const STANDS_MAX_MS = 60_000;
const STANDING_MAX = 100;
const ABSOLUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** More folders above a node than this count as a circle, which a faulty gateway may tell of. */
const DEPTH_MAX = 1000;

type Needs = Pick<Rows, "metadata"> & Remote & Host;
type Named = [string, HistoryPlace];
type Nodes = readonly ListedNode[];
const NONE: Nodes = [];

interface Places {
  /**
   * Undefined: there is no such name. Rejects with an FsError: EOPNOTSUPP if the gateway keeps no history, ENOTDIR if
   * `parent` is no folder, EIO if the gateway is away and the name may have come since, else as toFsError says.
   */
  child(parent: HistoryPlace, name: string, signal: AbortSignal): Promise<HistoryPlace | undefined>;
  /** The places by name, sorted. Rejects as `child` does. */
  list(parent: HistoryPlace, signal: AbortSignal): Promise<ReadonlyMap<string, HistoryPlace>>;
  /** The root of the mount as it was at the moment (ISO 8601, UTC). */
  root(at: string): HistoryPlace;
}

/** A relative moment, and the moment for which it stands for a while. */
interface Standing {
  readonly place: HistoryPlace;
  readonly since: ElapsedTime;
  usedAt: ElapsedTime;
}

export function createPlaces(context: Needs, lists: PastLists): Places {
  const { client, runtime, workspace } = context;
  const root = workspace.rootId;
  const once = createMaker();
  const standing = new LRUCache<string, Standing>({ max: STANDING_MAX });

  function requireHistory(view: "versions" | "at" | "deleted"): void {
    if (client.features.isFull) return;
    throw new FsError("EOPNOTSUPP", `${view}/: this gateway keeps no history that can be read`);
  }

  const rootAt = (at: string) => folder({ show: "at", at }, root, at);

  function momentOf(name: string): HistoryPlace | undefined {
    if (ABSOLUTE.test(name) && !Number.isNaN(Date.parse(name))) return rootAt(name);
    const known = standing.get(name);
    const elapsed = runtime.elapsed();
    if (known !== undefined && elapsed < earlierOf(plus(known.usedAt, STANDS_MS), plus(known.since, STANDS_MAX_MS))) {
      known.usedAt = elapsed;
      return known.place;
    }
    const now = runtime.wallClock();
    try {
      // Colons are awkward in names. So 2026-11-27 10.22.31, as in the names of versions, means 2026-11-27 10:22:31.
      const at = parseMoment(name.replace(/^(\d{4}-\d\d-\d\d[ T]\d\d)\.(\d\d)(?:\.(\d\d))?$/, spellTime), now);
      if (at > now) return undefined;
      const place = link(new Date(at).toISOString(), now);
      standing.set(name, { place, since: elapsed, usedAt: elapsed });
      return place;
    } catch {
      return undefined;
    }
  }

  async function versions({ node, name }: Extract<HistoryPlace, { is: "versions" }>, signal: AbortSignal) {
    requireHistory("versions");
    const all = await lists.versions(node, signal);
    return once(all, NONE, name, () => {
      const last = all.at(-1)?.number ?? 0;
      return all.map((version): Named => [versionName(version, name, last), contentOfVersion(version)]);
    });
  }

  /** The places in a folder. With `name`, places of other names may be left out. */
  async function inFolder(
    { view, node, isDeleted }: Extract<HistoryPlace, { is: "folder" }>,
    signal: AbortSignal,
    name?: string,
  ) {
    const { show } = view;
    if (show !== "now") requireHistory(show);
    const which: Which = show === "at" ? { at: view.at } : {};
    // A deleted folder has no children: they were deleted before it.
    const children = isDeleted ? NONE : await lists.children(node, which, signal, name);
    if (show !== "deleted") return once(children, NONE, show, () => shown(children, view));
    const before = name === undefined ? undefined : nameBeforeDeletion(name);
    const gone = await lists.children(node, { deleted: true }, signal, before);
    return once(gone, children, show, () => {
      const there = shown(children, view);
      const taken = new Set(there.map(([one]) => one));
      return [...there, ...deleted(gone, view, taken)];
    });
  }

  /** The places in a place, sorted. With `name`, places of other names may be left out. */
  async function list(
    parent: HistoryPlace,
    signal: AbortSignal,
    name?: string,
  ): Promise<ReadonlyMap<string, HistoryPlace>> {
    switch (parent.is) {
      case "top":
        return sorted([
          ...Object.entries(TOP),
          ["versions", folder({ show: "versions" }, root)],
          ["deleted", folder({ show: "deleted" }, root)],
        ]);
      case "moments":
        requireHistory("at");
        return sorted(MOMENTS.flatMap((moment) => entry(moment, momentOf(moment))));
      case "nodes":
        return new Map();
      case "versions":
        return versions(parent, signal);
      case "folder":
        return inFolder(parent, signal, name);
      default:
        throw new FsError("ENOTDIR", "no folder of the past");
    }
  }

  return {
    root: rootAt,
    list: (parent, signal) => list(parent, signal),
    async child(parent, name, signal) {
      if (parent.is === "moments") {
        requireHistory("at");
        return momentOf(name);
      }
      if (parent.is !== "nodes") {
        const place = (await list(parent, signal, name)).get(name);
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

  function mayHaveChanged(parent: HistoryPlace): boolean {
    if (parent.is !== "folder") return parent.is === "versions";
    const { view } = parent;
    return view.show !== "at" || !isPastSettleTime(view.at, client);
  }

  function ask(id: string, signal: AbortSignal): Promise<Node> {
    return context.network.ask(signal, (limit) => client.getNode(id, { signal: limit }));
  }

  /**
   * True: the node is in the folder that is mounted. A node that the rows know is. For any other, the gateway is asked
   * for the folders above it, until one of them is known.
   */
  async function isMounted(node: Node, signal: AbortSignal): Promise<boolean> {
    const isKnown = (id: string) => context.metadata.nodes.ofNodeId(id) !== undefined;
    let above = node;
    for (let depth = 0; !isKnown(above.id); depth += 1) {
      if (above.parentId === null || depth === DEPTH_MAX) return false;
      above = await ask(above.parentId, signal);
    }
    return true;
  }

  function folder(view: FolderView, node: string, mtime = new Date(0).toISOString()): HistoryPlace {
    return { is: "folder", view, node, mtime: isoToTimeText(mtime), isDeleted: false };
  }
}

const TOP: Readonly<Record<string, HistoryPlace>> = {
  at: { is: "moments" },
  nodes: { is: "nodes" },
  README: { is: "text", text: "readme" },
  "status.json": { is: "text", text: "status" },
};

/**
 * Returns a function that makes places of two lists, and remembers the places as long as the first list exists. A
 * program looks up every name that it has listed, so the lists must not be walked each time.
 */
function createMaker() {
  type Items = readonly unknown[];
  type Ways = Map<string, { beside: Items; places: ReadonlyMap<string, HistoryPlace> }>;
  const made = new WeakMap<Items, Ways>();
  return (
    items: Items,
    beside: Items,
    how: string,
    make: () => readonly Named[],
  ): ReadonlyMap<string, HistoryPlace> => {
    const ways: Ways = made.get(items) ?? new Map();
    made.set(items, ways);
    const known = ways.get(how);
    if (known?.beside === beside) return known.places;
    const places = sorted(make());
    ways.set(how, { beside, places });
    return places;
  };
}

function sorted(all: readonly Named[]): ReadonlyMap<string, HistoryPlace> {
  return new Map(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function entry(name: string, place: HistoryPlace | undefined): Named[] {
  return place === undefined ? [] : [[name, place]];
}

function spellTime(_all: string, day: string, minutes: string, seconds: string | undefined): string {
  return seconds === undefined ? `${day}:${minutes}` : `${day}:${minutes}:${seconds}`;
}

function link(target: string, now: WallTime): HistoryPlace {
  return { is: "link", target, mtime: isoToTimeText(new Date(now).toISOString()) };
}

function shown(nodes: Nodes, view: FolderView): Named[] {
  return nodes.filter(({ name }) => isShown(name)).flatMap((node) => entry(node.name, placeOf(node, view)));
}

function deleted(nodes: Nodes, view: FolderView, taken: Set<string>): Named[] {
  const found: Named[] = [];
  for (const gone of nodes) {
    const place = gone.kind === "folder" ? folderOf(gone, view, true) : contentOf(gone);
    if (!isShown(gone.name) || place === undefined) continue;
    found.push([deletedName(gone.name, gone.deletedAt, gone.deletedBy, taken), place]);
  }
  return found;
}

/** False: a program could not open a file of this name. The mount itself hides such names too. */
function isShown(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !name.includes("/");
}

function placeOf(node: ListedNode, view: FolderView): HistoryPlace | undefined {
  if (node.kind === "folder") return folderOf(node, view, false);
  if (view.show === "deleted") return undefined;
  if (view.show === "versions" && kindOf(node) === "file") {
    return { is: "versions", node: node.id, name: node.name, mtime: mtimeOf(node) };
  }
  return contentOf(node);
}

function folderOf(node: Node, view: FolderView, isDeleted: boolean): HistoryPlace {
  return { is: "folder", view, node: node.id, mtime: mtimeOf(node), isDeleted };
}

/** The modification time as programs saw it. */
function mtimeOf({ attributes, modifiedAt }: Node): string {
  return attributes.mtime ?? isoToTimeText(modifiedAt);
}

/** The place of a file or a symlink. Undefined: a pipe, a socket or a device has no content to show. */
function contentOf(node: Node): HistoryPlace | undefined {
  const { attributes, head } = node;
  const mtime = mtimeOf(node);
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

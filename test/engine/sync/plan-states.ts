/** Any three states of a small workspace, whether or not a history leads there (for the planner's property test). */
import { type Gateway, ROOT } from "./plan-gateway.ts";
import type { Mount } from "./plan-mount.ts";
import { ATTRIBUTES, type Choose, NAMES, pick } from "./plan-programs.ts";
import { type Entry, fileInode, folderInode, type Inode } from "./plan-tree.ts";

interface Place<T> {
  readonly item: T;
  readonly parent: T | undefined;
  readonly name: string;
}

/** Some of the items as a tree, each below the root (undefined) or a folder placed before it. */
function arrange<T>(choose: Choose, items: readonly T[], isFolder: (item: T) => boolean): Place<T>[] {
  const left = [...items];
  const folders: (T | undefined)[] = [undefined];
  const places: Place<T>[] = [];
  while (left.length > 0) {
    const [item] = left.splice(choose(left.length), 1);
    if (item === undefined || choose(6) === 1) continue;
    const parent = pick(choose, folders);
    const start = choose(NAMES.length);
    const isFree = (name: string) => !places.some((place) => place.parent === parent && place.name === name);
    const name = [...NAMES.slice(start), ...NAMES, "e", "f", "g", "h", "i", "j"].find(isFree);
    if (name === undefined) continue;
    places.push({ item, parent, name });
    if (isFolder(item)) folders.push(item);
  }
  return places;
}

/** Base and seen: what is there is known, then everything is somewhere else, of which nobody has heard. */
export function scatterGateway(gateway: Gateway, choose: Choose): void {
  const nodes = gateway.nodes().filter((node) => node.id !== ROOT);
  const places = new Map(arrange(choose, nodes, (node) => node.kind === "folder").map((place) => [place.item, place]));
  // All step aside first, so that each finds its name free.
  for (const node of nodes) {
    const place = places.get(node);
    if (place === undefined) {
      gateway.theirs.become(node.id, { isDeleted: true });
      continue;
    }
    if (choose(3) === 0) continue;
    const content = node.kind === "file" && choose(2) === 1 ? { content: `same${choose(4)}` } : {};
    const attributes = choose(2) === 1 ? { attributes: { ...pick(choose, ATTRIBUTES) } } : {};
    gateway.theirs.become(node.id, { ...content, ...attributes });
  }
  for (const { item, parent, name } of places.values()) {
    gateway.theirs.become(item.id, { parentId: parent?.id ?? ROOT, name });
  }
}

/** Local: every name anywhere, some gone, some new, with any content. */
export function scatterMount(mount: Mount, gateway: Gateway, choose: Choose): void {
  for (let count = choose(4); count > 0; count -= 1) {
    const inode = choose(2) === 1 ? folderInode({}) : { ...fileInode("", {}), finished: null };
    mount.addRow({ kind: inode.kind, entry: mount.addEntry(mount.root, `new${count}`, inode) });
  }
  const all = [...mount.entries].filter((entry) => entry !== mount.root);
  const places = arrange(choose, all, (entry) => entry.inode.kind === "folder");
  const kept = new Set(places.map((place) => place.item));
  for (const entry of all) if (!kept.has(entry)) drop(mount, entry);
  for (const { item, parent, name } of places) Object.assign(item, { parent: parent ?? mount.root, name });
  for (const { inode } of kept) if (inode.kind === "file") change(gateway, inode, choose);
}

function drop(mount: Mount, entry: Entry): void {
  const row = mount.rowOf(entry);
  mount.entries.delete(entry);
  if (row?.nodeId == null) mount.rows.delete(row ?? fail());
  else row.entry = null;
}

function fail(): never {
  throw new Error("an entry without a row");
}

function change(gateway: Gateway, inode: Inode, choose: Choose): void {
  const bytes = choose(2) === 1 ? `same${choose(4)}` : `own${choose(1000)}`;
  const changed = { bytes, changes: inode.changes + 1 };
  switch (choose(6)) {
    case 1:
      Object.assign(inode, changed, { state: "dirty", hash: bytes, hasSnapshot: true, finished: bytes });
      return;
    case 2:
      Object.assign(inode, changed, { state: "dirty", hash: null, hasSnapshot: false, finished: bytes });
      return;
    case 3:
      Object.assign(inode, changed, { state: "open", hash: null, hasSnapshot: false, writers: 1, finished: null });
      return;
    case 4: {
      const other = pick(
        choose,
        gateway.nodes().filter((node) => node.kind === "file"),
      );
      if (other === undefined) return;
      const content = {
        state: "clean",
        hash: other.contentHash,
        bytes: other.contentHash ?? "",
        hasSnapshot: true,
      } as const;
      Object.assign(inode, content, { originNode: other.id, originVersion: other.head, finished: other.contentHash });
      return;
    }
    case 5:
      inode.attributes = { ...inode.attributes, ...pick(choose, ATTRIBUTES) };
      return;
    default:
  }
}

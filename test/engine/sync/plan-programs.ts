/**
 * What programs on the mount and other clients of the gateway do, for the planner's property test.
 * Every decision is drawn from `choose`, so that a history can be made smaller. Who gets which node
 * when a program renames is src/engine/tree/names.ts, here as values.
 */
import type { Attributes } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { type Gateway, ROOT } from "./plan-gateway.ts";
import type { Mount } from "./plan-mount.ts";
import { type Entry, fileInode, folderInode, type Overtaken, type Row } from "./plan-tree.ts";

/** A number below the limit. */
export type Choose = (limit: number) => number;

export const NAMES = ["a", "b", "c", "d"] as const;
export const ATTRIBUTES: readonly Attributes[] = [
  { mode: 0o600 },
  { mode: 0o755 },
  { uid: 1 },
  { xattrs: { x: "AA==" } },
  { xattrs: { y: "AQ==", z: "AA==" } },
  { mtime: "5.000000000" },
  { mtime: "7.500000000" },
];

export function pick<T>(choose: Choose, values: readonly T[]): T | undefined {
  return values[choose(values.length)];
}

export function createPrograms(mount: Mount, gateway: Gateway, choose: Choose, tell: (line: string) => void) {
  let tokens = 0;
  /** Mostly bytes nobody wrote before, at times what others may write too. */
  const freshBytes = () => (choose(4) === 1 ? `same${choose(2)}` : `bytes${++tokens}`);
  const name = () => pick(choose, NAMES) ?? "a";
  const files = () => [...mount.entries].filter((entry) => entry.inode.kind === "file");
  const folders = () => [...mount.entries].filter((entry) => entry.inode.kind === "folder");

  function addName(folder: Entry, at: string, inode: Entry["inode"]): void {
    tell(`make ${inode.kind} ${folder.name}/${at}`);
    const entry = mount.addEntry(folder, at, inode);
    if (inode.kind === "folder" || !claimName(entry)) mount.addRow({ kind: inode.kind, entry });
  }

  function claimName(entry: Entry): boolean {
    if (entry.parent === null) return false;
    const own = mount.rowOf(entry);
    const parentId = mount.nodeIdOf(entry.parent);
    const removed =
      parentId === null
        ? undefined
        : mount.rowsAt(parentId, entry.name).find((r) => r.entry === null && r.kind === "file" && r.attempt === null);
    const left = [...mount.rows].filter(
      (r) => r.left?.parent === entry.parent && r.left.name === entry.name && r.nodeId !== null,
    );
    const heir =
      left.find((r) => r.entry === null && r.attempt === null) ?? removed ?? left.find((r) => r.entry !== null);
    if (heir === undefined || heir === own) return false;
    const former = heir.entry;
    if (own !== undefined) own.entry = null;
    Object.assign(heir, { entry, left: null });
    if (former !== null) mount.addRow({ kind: "file", entry: former });
    if (own !== undefined) orphan(own);
    return true;
  }

  function orphan(row: Row): void {
    row.entry = null;
    if (row.nodeId === null && row.attempt === null) mount.dropRow(row);
  }

  function remove(entry: Entry): void {
    tell(`remove ${entry.id} ${entry.name}`);
    const row = mount.rowOf(entry);
    mount.entries.delete(entry);
    if (row?.kind === "file" && row.nodeId !== null && entry.parent !== null) {
      row.left = { parent: entry.parent, name: entry.name };
    }
    if (row !== undefined) orphan(row);
  }

  function write(entry: Entry, bytes: string): void {
    tell(`write ${entry.id} ${entry.name} ${bytes}`);
    const { inode } = entry;
    const row = mount.rowOf(entry);
    if (row !== undefined && choose(2) === 1) mount.giveUp(row);
    const state = { state: "open", hash: null, hasSnapshot: false, finished: null } as const;
    Object.assign(inode, state, { bytes, changes: inode.changes + 1, writers: Math.max(1, inode.writers) });
  }

  /** Programs go on with what has lost its name: they write, and a snapshot is taken while it is open; or they close it. */
  function useOvertaken(one: Overtaken): void {
    const { inode, name: was } = one;
    tell(`go on with ${was}, which is elsewhere by now`);
    const bytes = freshBytes();
    if (choose(2) === 1) Object.assign(inode, { state: "open", hash: null, bytes, changes: inode.changes + 1 });
    if (choose(2) === 1 && inode.hash === null) {
      Object.assign(inode, { state: "dirty", hash: inode.bytes, hasSnapshot: true, finished: inode.bytes });
      mount.nameOvertaken(one);
    } else if (choose(2) === 1) closeOvertaken(one);
  }

  function closeOvertaken(one: Overtaken): void {
    const { inode } = one;
    inode.writers = 0;
    if (inode.hash === null) Object.assign(inode, { state: "dirty", hasSnapshot: false, finished: inode.bytes });
    mount.nameOvertaken(one);
  }

  function close(entry: Entry): void {
    const { inode } = entry;
    inode.writers = Math.max(0, inode.writers - 1);
    if (inode.writers > 0 || inode.state !== "open") return;
    if (inode.hash === null) Object.assign(inode, { state: "dirty", finished: inode.bytes });
    else inode.state = inode.originVersion === null ? "dirty" : "clean";
  }

  function rename(source: Entry, folder: Entry, to: string): void {
    const target = mount.find(folder, to);
    tell(`rename ${source.id} ${source.name} to ${folder.name}/${to}`);
    if (source.parent === null || target === source || mount.isInside(folder, source)) return;
    if (target === undefined) {
      const row = mount.rowOf(source);
      if (row?.kind === "file" && row.nodeId !== null) row.left = { parent: source.parent, name: source.name };
      Object.assign(source, { parent: folder, name: to });
      if (row?.kind === "file") claimName(source);
    } else if (choose(3) === 1) {
      if (target.parent === null || mount.isInside(source.parent, target)) return;
      const place = { parent: source.parent, name: source.name };
      Object.assign(source, { parent: folder, name: to });
      Object.assign(target, place);
    } else if (source.inode.kind !== target.inode.kind) {
      return;
    } else if (source.inode.kind === "folder") {
      if (mount.inFolder(target).length > 0) return;
      remove(target);
      rename(source, folder, to);
    } else {
      const row = mount.rowOf(source);
      mount.entries.delete(source);
      target.inode = source.inode;
      if (row !== undefined) orphan(row);
    }
  }

  const locals: readonly (() => void)[] = [
    () => {
      const folder = pick(choose, folders());
      const at = name();
      if (folder === undefined || mount.find(folder, at) !== undefined) return;
      if (choose(3) === 1) addName(folder, at, folderInode({ mode: 0o700 }));
      else addName(folder, at, { ...fileInode("", { mode: 0o644 }), finished: null });
    },
    () => {
      const entry = pick(choose, files());
      if (entry === undefined) return;
      write(entry, freshBytes());
      if (choose(2) === 0) close(entry);
    },
    () => {
      const entry = pick(choose, files());
      if (entry === undefined) return;
      entry.inode.writers += 1;
      if (entry.inode.state === "clean") entry.inode.state = "open";
    },
    () => {
      const entry = pick(choose, files());
      if (entry !== undefined && entry.inode.writers > 0) close(entry);
    },
    () => {
      const one = pick(choose, [...mount.overtaken]);
      if (one !== undefined) useOvertaken(one);
    },
    () => {
      const entry = pick(choose, [...mount.entries]);
      if (entry !== undefined && entry.parent !== null && mount.inFolder(entry).length === 0) remove(entry);
    },
    // A file against a folder, and the other way round.
    () => {
      const entry = pick(choose, [...mount.entries]);
      if (entry === undefined || entry.parent === null || mount.inFolder(entry).length > 0) return;
      remove(entry);
      if (entry.inode.kind === "file") addName(entry.parent, entry.name, folderInode({ mode: 0o700 }));
      else addName(entry.parent, entry.name, { ...fileInode("", { mode: 0o644 }), finished: null });
    },
    () => {
      const source = pick(choose, [...mount.entries]);
      const folder = pick(choose, folders());
      if (source !== undefined && folder !== undefined) rename(source, folder, name());
    },
    () => {
      const entry = pick(choose, [...mount.entries]);
      const attributes = pick(choose, ATTRIBUTES);
      if (entry !== undefined) entry.inode.attributes = { ...entry.inode.attributes, ...attributes };
    },
    () => {
      // Time passes.
      for (const row of mount.rows)
        Object.assign(row, { left: row.entry === null ? row.left : null, waitedFor: row.seen });
    },
  ];

  const node = (kind?: Node["kind"]) =>
    pick(
      choose,
      gateway.nodes().filter((n) => kind === undefined || n.kind === kind),
    );

  const remotes: readonly (() => void)[] = [
    () => {
      const folder = node("folder");
      const content = choose(3) === 1 ? null : freshBytes();
      if (folder !== undefined) gateway.theirs.create(folder.id, name(), content, pick(choose, ATTRIBUTES) ?? {});
    },
    () => {
      const file = node("file");
      if (file !== undefined) gateway.theirs.write(file, freshBytes());
    },
    () => {
      const moved = node();
      const folder = node("folder");
      if (moved !== undefined && moved.id !== ROOT && folder !== undefined)
        gateway.theirs.patch(moved, folder.id, name());
    },
    () => {
      const changed = node();
      if (changed !== undefined) gateway.theirs.patch(changed, undefined, undefined, pick(choose, ATTRIBUTES));
    },
    () => {
      const gone = node();
      if (gone !== undefined) gateway.theirs.remove(gone);
    },
    () => {
      const gone = node();
      if (gone === undefined || gone.parentId === null || gateway.children(gone.id).length > 0) return;
      gateway.theirs.remove(gone);
      gateway.theirs.create(gone.parentId, gone.name, gone.kind === "file" ? null : freshBytes(), {});
    },
  ];

  /** Something told a while ago, or just now, comes in. */
  function hear(): void {
    const news = pick(choose, gateway.news);
    if (news === undefined) return;
    tell(`heard ${JSON.stringify(news)}`);
    if ("node" in news) mount.observeNode(news.node);
    else mount.observeDeletion(news.deleted, news.revision);
  }

  return {
    local: () => pick(choose, locals)?.(),
    remote(): void {
      const before = gateway.news.length;
      pick(choose, remotes)?.();
      for (const news of gateway.news.slice(before)) tell(`elsewhere ${JSON.stringify(news)}`);
    },
    hear,
    closeAll(): void {
      for (const one of [...mount.overtaken]) closeOvertaken(one);
      for (const entry of files()) while (entry.inode.writers > 0) close(entry);
    },
  };
}

export type Programs = ReturnType<typeof createPrograms>;

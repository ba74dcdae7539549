/**
 * A record of the gateway's rows after every request: an oracle for all that is shown of the past later. Of the
 * gateway's own history only the author and the time of a change are read.
 */
import type { Attributes } from "../../../src/contract/attributes.ts";
import { type Author, author } from "../../../src/contract/resources.ts";
import { formatTime, timeFromMilliseconds } from "../../../src/lib/time.ts";
import type { Tree } from "./tree.ts";
import { Fault, type World } from "./world.ts";

export interface NodeThen {
  readonly id: string;
  readonly kind: "file" | "folder";
  readonly parent: string | null;
  readonly name: string;
  readonly isDeleted: boolean;
  /** Shown by its path. */
  readonly isProvisioned: boolean;
  readonly hash: string | null;
  readonly size: number | null;
  /** How many it has had. */
  readonly versions: number;
  /** Without `link`, which is of the other names of a file as they are now; with the mtime that is shown. */
  readonly attributes: Attributes;
  /** Of its latest change. */
  readonly position: number;
}

export interface Moment {
  /** Milliseconds. */
  readonly time: number;
  /** Of the last change. */
  readonly position: number;
  readonly nodes: ReadonlyMap<string, NodeThen>;
}

export interface Change {
  readonly position: number;
  readonly node: string;
  readonly time: number;
  readonly kind: string;
  readonly key: string | null;
  readonly by: Author | null;
}

export interface PastRecord {
  /** To be called after every request that the gateway has carried out. */
  note(): void;
  readonly moments: readonly Moment[];
  /** As of a time (milliseconds), what was changed at that very time included. */
  at(time: number): Moment;
  /** After the last change so far. */
  now(): Moment;
  /** Of all nodes, in their order. */
  changes(): readonly Change[];
  /** The node before the change; undefined: it was not there yet. Throws when that is not known. */
  before(change: Change): NodeThen | undefined;
}

interface Row extends Omit<NodeThen, "attributes" | "isDeleted" | "isProvisioned"> {
  readonly deleted: number;
  readonly provisioned: number;
  readonly attributes: string;
  readonly headTime: number | null;
}

const NODES = `SELECT id, kind, parent, name, deleted, provisioned, hash, size, versions, attributes, position, head_time AS headTime FROM node`;
const CHANGES = `SELECT position, node, time, kind, key, by FROM change WHERE activity = 0 ORDER BY position`;

export function createPastRecord({ store, clock, position }: Pick<World, "store" | "clock" | "position">): PastRecord {
  const rows = store.prepare(NODES);
  const changes = store.prepare(CHANGES);
  const moments: Moment[] = [];
  const read = (): Moment => ({
    time: clock.wallClock(),
    position: position(),
    nodes: new Map((rows.all() as Row[]).map((row) => [row.id, nodeOf(row)])),
  });
  const first = read();
  moments.push(first);
  const at = (time: number) => moments.findLast((moment) => moment.time <= time) ?? first;
  const now = () => moments.at(-1) ?? first;

  return {
    moments,
    at,
    now,
    note() {
      if (position() !== now().position) moments.push(read());
    },
    changes: () =>
      (changes.all() as (Omit<Change, "by"> & { by: string | null })[]).map((row) => ({
        ...row,
        by: row.by === null ? null : author.parse(JSON.parse(row.by)),
      })),
    before({ node, position: changed }) {
      const index = moments.findIndex((moment) => moment.position >= changed);
      const earlier = moments[index - 1];
      if (earlier === undefined) throw new Fault(`a change was not recorded: ${changed}`);
      const between = this.changes().filter(
        (one) => one.node === node && one.position > earlier.position && one.position < changed,
      );
      if (between.length > 0) throw new UnknownBetween();
      return earlier.nodes.get(node);
    },
  };
}

/** One request changed the node several times: what it was in between was seen by nobody. */
export class UnknownBetween extends Error {}

function nodeOf({ attributes: json, headTime, deleted, provisioned, ...row }: Row): NodeThen {
  const { link: _, ...own } = JSON.parse(json) as Attributes;
  const mtime = own.mtime ?? (headTime === null ? undefined : formatTime(timeFromMilliseconds(headTime)));
  const attributes = mtime === undefined ? own : { ...own, mtime };
  return { ...row, attributes, isDeleted: deleted === 1, isProvisioned: provisioned === 1 };
}

/** Which nodes are in a folder, in folders of it and so on; itself not. */
export function nodesWithin({ nodes }: Moment, folder: string, isMeant = (_: NodeThen) => true): ReadonlySet<string> {
  const found = new Set<string>();
  const folders = [folder];
  for (const parent of folders) {
    for (const node of nodes.values()) {
      if (node.parent !== parent || node.isDeleted || found.has(node.id) || !isMeant(node)) continue;
      found.add(node.id);
      if (node.kind === "folder") folders.push(node.id);
    }
  }
  return found;
}

/** What is shown in a folder and below, by path. */
export function pathsThen(moment: Moment, root: string): ReadonlyMap<string, NodeThen> {
  const within = nodesWithin(moment, root, ({ isProvisioned }) => isProvisioned);
  const pathOf = ({ parent, name }: NodeThen): string => {
    const folder = parent === null || parent === root ? undefined : moment.nodes.get(parent);
    return folder === undefined ? name : `${pathOf(folder)}/${name}`;
  };
  return new Map(
    [...within].flatMap((id) => {
      const node = moment.nodes.get(id);
      return node === undefined ? [] : [[pathOf(node), node]];
    }),
  );
}

/** As the history folder shows it: read only, without extended attributes. */
export function shownThen(moment: Moment, root: string): Tree {
  return new Map([...pathsThen(moment, root)].map(([path, node]) => [path, shownNode(node)]));
}

export function shownNode({ kind: of, hash, attributes }: NodeThen) {
  const kind = of === "folder" ? of : (attributes.type ?? "file");
  const [content, mode] =
    kind === "folder"
      ? ["", 0o555]
      : kind === "symlink"
        ? [attributes.target ?? "", 0o777]
        : [hash ?? "", (attributes.mode ?? 0o644) & 0o555];
  return { kind, content, mode, mtime: kind === "folder" ? "" : (attributes.mtime ?? ""), tag: "", links: undefined };
}

/** `wsfs list [PATH]`: lists a folder of the workspace as it is or was at a moment, or nodes deleted from it. */
import type { Gateway, ListedNode, Node } from "../../client/index.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { type ListLook, print, printList } from "../service.ts";
import { showTime } from "../table.ts";
import { formatSize } from "../wording.ts";
import { findDeleted } from "./deleted.ts";
import { noteUnsent } from "./settle.ts";
import { findNode, notThere, pageSizeFor } from "./target.ts";
import { fromOf, whoOf } from "./versions.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

export function list(values: Values<"list">): Promise<number> {
  const { "at-time": at, deleted, recursive, json, limit } = values;
  if (deleted && at !== undefined) throw new Failure("--deleted and --at exclude each other", EXIT.usage);
  const word = values.optional.PATH ?? (values["in-workspace"] === undefined ? "." : "/");
  return atWorkspace(values, [word], ["getNodeByPath", "listNodes"], async ({ gateway, mount, paths }) => {
    const [path = "/"] = paths;
    if (deleted || at !== undefined) await requireHistory(gateway);
    const node = await findFolder(gateway, path, { at, deleted });
    if (at === undefined) await noteUnsent(mount);
    const look = deleted ? DELETED : PRESENT;
    if (node.kind === "file") return print(json, node, `${look.row(node).join("  ")}\n`);
    const pageSize = pageSizeFor(limit);
    const orderBy = deleted ? "-deletedAt" : recursive ? "path" : undefined;
    const nodes = gateway.nodes.list({ parentId: node.id, at, deleted, recursive, pageSize, orderBy });
    const isBelow = `${node.path === "/" ? "" : node.path}/`.length;
    const nameOf = (one: ListedNode) => (recursive ? one.path.slice(isBelow) : one.name);
    await printList(nodes, { ...look, row: (one) => look.row(one, nameOf(one)), json, limit });
    return EXIT.ok;
  });
}

type Look = Pick<ListLook<ListedNode>, "heads" | "none"> & {
  readonly row: (node: ListedNode, name?: string) => readonly string[];
};

const PRESENT: Look = {
  heads: ["SIZE", "MODIFIED", "NAME"],
  row: (node, name = node.name) => [sizeOf(node), showTime(modifiedAt(node)), shownName(node, name)],
  none: "The folder is empty.",
};

const DELETED: Look = {
  heads: ["SIZE", "DELETED", "BY", "FROM", "NAME"],
  row: (node, name = node.name) => [
    sizeOf(node),
    showTime(node.deletedAt ?? null),
    whoOf(node.deletedBy),
    fromOf(node.deletedBy),
    shownName(node, name),
  ],
  none: "Nothing was deleted from it that can be restored.",
};

/** With --deleted, the path may be that of a deleted node or of a folder that nodes were deleted from. */
async function findFolder(
  gateway: Gateway,
  path: string,
  { at, deleted }: { readonly at: Date | undefined; readonly deleted: boolean },
): Promise<ListedNode> {
  const node = await findNode(gateway, path, at);
  if (node?.kind === "folder" || (node !== undefined && !deleted)) return node;
  const gone = deleted ? await findDeleted(gateway, path) : undefined;
  if (gone !== undefined) return gone;
  throw at === undefined ? notThere(path) : new Failure(`${path} was not there at ${showTime(at.toISOString())}`);
}

const sizeOf = ({ kind, size }: Node) => (kind === "folder" ? "" : formatSize(size));

function shownName({ kind, attributes }: Node, name: string): string {
  if (kind === "folder") return `${name}/`;
  return attributes.type === "symlink" ? `${name} -> ${attributes.target ?? ""}` : name;
}

/** The time that programs see: the node's mtime attribute, if it was set. */
function modifiedAt({ attributes, modifiedAt }: Node): string {
  const seconds = Number(attributes.mtime ?? Number.NaN);
  const at = new Date(seconds * 1000);
  return Number.isNaN(at.getTime()) ? modifiedAt : at.toISOString();
}

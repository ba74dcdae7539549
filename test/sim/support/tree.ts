/** A whole tree as text, one line for each path, for comparing: a mount's, the model's, the gateway's. */
import { createHash } from "node:crypto";
import type { Client } from "../../../src/client/client.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { savesOfLink } from "../../../src/contract/saves.ts";
import { formatTime, timeFromMilliseconds } from "../../../src/lib/time.ts";
import { type Calls, codeOf } from "./calls.ts";

/** Path to what is there. */
export type Tree = ReadonlyMap<string, Line>;

export interface Line {
  readonly kind: string;
  /** Hash of a file's content, target of a symlink. */
  readonly content: string;
  readonly mode: number;
  /** Empty: not to be compared. */
  readonly mtime: string;
  readonly tag: string;
  readonly links: number | undefined;
}

export const TAG = "user.tag";
const READ_MAX = 1 << 24;

export function hashOf(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Everything programs can see while nobody changes it: no call may fail. Files are read in full, or only their size is looked at. */
export async function treeOf(
  calls: Calls,
  { withContent }: { withContent: boolean },
  path = "",
): Promise<Map<string, Line>> {
  const tree = new Map<string, Line>();
  let folders = 0;
  for (const name of await calls.list(path)) {
    const child = path === "" ? name : `${path}/${name}`;
    const { kind, mode, mtime, links, size } = await calls.stat(child);
    const isFolder = kind === "folder";
    if (isFolder) folders += 1;
    const contentOf = async () => (withContent ? hashOf(await readFile(calls, child)) : `${size} bytes`);
    const content = kind === "symlink" ? await calls.readlink(child) : isFolder ? "" : await contentOf();
    const tag = await calls.getxattr(child, TAG).catch((error: unknown) => {
      if (codeOf(error) !== "ENODATA") throw error;
      return "";
    });
    tree.set(child, { kind, content, mode, mtime: isFolder ? "" : mtime, tag, links: isFolder ? undefined : links });
    if (isFolder) for (const [below, line] of await treeOf(calls, { withContent }, child)) tree.set(below, line);
  }
  const { links } = await calls.stat(path);
  if (links !== 2 + folders) throw new Error(`"${path}" has ${links} links, and ${folders} folders are in it`);
  return tree;
}

/** What a program gets at a name that went, or is something else, since it was listed. */
const GONE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR"]);

/** Looks into every folder once. Others are at work meanwhile: what goes under its eyes is passed over, as `find` does. */
export async function lookAround(calls: Calls, path = ""): Promise<void> {
  for (const name of await calls.list(path)) {
    const child = path === "" ? name : `${path}/${name}`;
    try {
      const { kind } = await calls.stat(child);
      if (kind === "folder") await lookAround(calls, child);
    } catch (error) {
      if (!GONE.has(codeOf(error))) throw error;
    }
  }
}

export async function readFile(calls: Calls, path: string): Promise<Buffer> {
  const fd = await calls.open(path, {});
  try {
    return await calls.read(fd, 0, READ_MAX);
  } finally {
    await calls.close(fd);
  }
}

/** The authoritative tree, as any other client sees it. */
export async function gatewayTree(client: Client, folder: string, path = ""): Promise<Map<string, Line>> {
  const tree = new Map<string, Line>();
  const { items } = await client.listFolder(folder, { pageSize: 1000 });
  for (const node of items) {
    const child = path === "" ? node.name : `${path}/${node.name}`;
    tree.set(child, lineOf(node));
    if (node.kind === "folder") {
      for (const [below, line] of await gatewayTree(client, node.id, child)) tree.set(below, line);
    }
  }
  return tree;
}

/** Paths of linked files whose node at the gateway has what another name of the same file has left behind, or other attributes. */
export async function behindLinks(client: Client, root: string): Promise<string[]> {
  const linked: { path: string; group: string; hash: string; saves: readonly string[]; rest: string }[] = [];
  async function gather(folder: string, above: string): Promise<void> {
    for (const node of (await client.listFolder(folder, { pageSize: 1000 })).items) {
      const path = `${above}${node.name}`;
      if (node.kind === "folder") await gather(node.id, `${path}/`);
      const { link, ...attributes } = node.attributes;
      // With other content than its link says it has left the group.
      if (node.kind === "folder" || link === undefined || link.hash !== node.contentHash) continue;
      const { group, hash } = link;
      linked.push({ path, group, hash, saves: savesOfLink(link), rest: JSON.stringify(attributes) });
    }
  }
  await gather(root, "");
  const isBehind = (one: (typeof linked)[number]) =>
    linked.some(({ group, hash, saves, rest }) => {
      if (group !== one.group) return false;
      return hash === one.hash ? rest !== one.rest : saves.includes(one.saves[0] ?? "");
    });
  return linked.filter(isBehind).map(({ path }) => path);
}

function lineOf(node: Node): Line {
  const { attributes } = node;
  const kind = node.kind === "folder" ? "folder" : (attributes.type ?? "file");
  const mode = attributes.mode ?? (kind === "folder" ? 0o755 : kind === "symlink" ? 0o777 : 0o644);
  const tag = attributes.xattrs?.[TAG];
  return {
    kind,
    content: kind === "folder" ? "" : kind === "symlink" ? (attributes.target ?? "") : (node.contentHash ?? "?"),
    mode,
    mtime: kind === "folder" ? "" : (attributes.mtime ?? formatTime(timeFromMilliseconds(Date.parse(node.modifiedAt)))),
    tag: tag === undefined ? "" : Buffer.from(tag, "base64").toString(),
    links: undefined,
  };
}

/** What is different, one line each; empty when nothing is. */
export function differences(a: Tree, b: Tree, names: readonly [string, string]): string[] {
  const found: string[] = [];
  for (const path of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const [left, right] = [a.get(path), b.get(path)];
    if (left === undefined || right === undefined) {
      const [has, lacks] = left === undefined ? [names[1], names[0]] : names;
      found.push(`${path}: ${has} has it, ${lacks} does not`);
      continue;
    }
    for (const key of ["kind", "content", "mode", "mtime", "tag", "links"] as const) {
      const [x, y] = [left[key], right[key]];
      const isCompared = !(key === "mtime" && (x === "" || y === "")) && x !== undefined && y !== undefined;
      if (isCompared && x !== y) found.push(`${path}: ${key} is ${x} for ${names[0]}, ${y} for ${names[1]}`);
    }
  }
  return found;
}

/** Without what only attributes tell. */
export function plain(tree: Tree): Tree {
  return new Map([...tree].map(([path, line]) => [path, { ...line, mode: 0, mtime: "", tag: "" }]));
}

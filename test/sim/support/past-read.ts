/** The history folder as programs read it, for comparing with the record. */
import { type Calls, codeOf } from "./calls.ts";
import { type Moment, type NodeThen, pathsThen, shownNode } from "./past-record.ts";
import { hashOf, type Line, readFile, type Tree } from "./tree.ts";

export const atMoment = (time: number) => `.wsfs/at/${new Date(time).toISOString()}`;

/** Instead of the hash of a content that cannot be had. */
export const LACKING = "?";

/** Everything below a folder of it, files read in full, by the path below the folder. `mayLack`: their bytes may be out of reach. */
export async function readTree(calls: Calls, folder: string, mayLack = false): Promise<Tree> {
  const tree = new Map<string, Line>();
  async function walk(above: string): Promise<void> {
    for (const name of await calls.list(`${folder}/${above}`)) {
      const path = above === "" ? name : `${above}/${name}`;
      const whole = `${folder}/${path}`;
      const { kind, mode, mtime, size } = await calls.stat(whole);
      const isFolder = kind === "folder";
      const contentOf = async () => {
        const bytes = await readFile(calls, whole);
        if (bytes.length !== size) throw new Error(`${whole} is said to have ${size} bytes, and has ${bytes.length}`);
        return hashOf(bytes);
      };
      const orLacking = (error: unknown) => {
        if (mayLack && codeOf(error) === "EIO") return LACKING;
        throw error;
      };
      const content = isFolder
        ? ""
        : kind === "file"
          ? await contentOf().catch(orLacking)
          : await calls.readlink(whole);
      tree.set(path, { kind, content, mode, mtime: isFolder ? "" : mtime, tag: "", links: undefined });
      if (isFolder) await walk(path);
    }
  }
  await walk("");
  return tree;
}

const STAMP = /^(.*) \((\d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d)\)( \d+)?(\.[^.]*)?$/;

/** `deleted/` without the numbers of names that are the same: as lines, sorted. */
export function deletedLines(tree: Tree): string[] {
  return [...tree].map(([path, { kind, content }]) => {
    const names = path.split("/").map((name) => {
      const [, stem, stamp, , extension = ""] = STAMP.exec(name) ?? [];
      return stem === undefined ? name : `${stem}${extension} ${stamp}`;
    });
    return `${names.join("/")}: ${kind} ${content}`;
  });
}

/** What it must show. `deletedAt`: when, of a node that is deleted, milliseconds. */
export function deletedThen({ nodes }: Moment, root: string, deletedAt: (id: string) => number): string[] {
  const lines: string[] = [];
  const walk = (folder: string, above: string) => {
    for (const node of nodes.values()) {
      const { id, parent, name, kind, isDeleted, isProvisioned } = node;
      if (parent !== folder || (!isDeleted && (kind === "file" || !isProvisioned))) continue;
      const path = `${above}${isDeleted ? `${name} ${stampOf(deletedAt(id))}` : name}`;
      const { kind: shown, content } = shownNode(node);
      lines.push(`${path}: ${shown} ${content}`);
      if (kind === "folder") walk(id, `${path}/`);
    }
  };
  walk(root, "");
  return lines;
}

function stampOf(time: number): string {
  const at = new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString();
  return `${at.slice(0, 10)} ${at.slice(11, 19).replaceAll(":", ".")}`;
}

/** `versions/` as lines: which versions with which bytes each file has, symlinks as they are. */
export function versionLines(tree: Tree): string[] {
  return [...tree].flatMap(([path, { kind, content }]) => {
    if (kind === "folder") return [];
    const version = /^(.*)\/(\d{4,}) \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d(\.[^./]*)?$/.exec(path);
    return [
      kind === "file" && version !== null ? `${version[1]} ${Number(version[2])}: ${content}` : `${path}: ${kind}`,
    ];
  });
}

/** What it must show. `contents`: every content that a node has had, in their order. */
export function versionsThen(moment: Moment, root: string, contents: (node: NodeThen) => readonly string[]): string[] {
  return [...pathsThen(moment, root)].flatMap(([path, node]) => {
    if (node.kind === "folder") return [];
    const { kind } = shownNode(node);
    return kind === "file"
      ? contents(node).map((hash, index) => `${path} ${index + 1}: ${hash}`)
      : [`${path}: ${kind}`];
  });
}

/** Describes journal entries in words, and finds the paths of their nodes. */
import type { Gateway, JournalEntry } from "../../client/index.ts";
import { showTime } from "../table.ts";
import { unlessMissing } from "./target.ts";
import { fromOf, whoOf } from "./versions.ts";

export interface Paths {
  /** The path of a node with this name in a folder. */
  of(parentId: string | null, name: string): Promise<string>;
}

/** Folders have their present paths, deleted folders their last ones. The gateway is asked for each folder once. */
export function pathsOf(gateway: Gateway): Paths {
  const folders = new Map<string, Promise<string>>();
  const within = async (parentId: string | null, name: string): Promise<string> => {
    if (parentId === null) return "/";
    const folder = folders.get(parentId) ?? find(parentId);
    folders.set(parentId, folder);
    const path = await folder;
    return path === "/" ? `/${name}` : `${path}/${name}`;
  };
  async function find(folder: string): Promise<string> {
    const node = await unlessMissing(gateway.nodes.get(folder));
    if (node !== undefined) return node.path;
    const { items } = await gateway.journal.list({ nodeId: folder, orderBy: "-position", pageSize: 1 }).page(1);
    const [last] = items;
    return last === undefined ? "/…" : within(last.parentId, last.name);
  }
  return { of: within };
}

/** Describes the change of an entry in words. `path`: the path of its node after the change. */
export async function describeEntry(entry: JournalEntry, path: string, paths: Paths): Promise<string> {
  const { kind, head, before, key } = entry;
  const shown = head === null ? `${path === "/" ? "" : path}/` : path;
  const mark = key?.startsWith("undo-") === true ? " (undo)" : "";
  switch (kind) {
    case "created":
      return `created ${shown}${mark}`;
    case "updated":
      return `saved ${shown}${mark}`;
    case "moved": {
      const from = before == null ? "" : ` from ${await paths.of(before.parentId, before.name)}`;
      return `moved${from} to ${shown}${mark}`;
    }
    case "changed":
      return `changed attributes of ${shown}${mark}`;
    case "deleted":
    case "restored":
      return `${kind} ${shown}${mark}`;
    default:
      return `${kind}: ${shown}`;
  }
}

/** Time, account, and mount or execution: three columns of a table. */
export const describeAuthor = ({ time, by }: Pick<JournalEntry, "time" | "by">): [string, string, string] => [
  showTime(time),
  whoOf(by),
  fromOf(by),
];

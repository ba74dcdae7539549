/** `wsfs versions FILE`. */
import type { Author, Version } from "../../client/index.ts";
import { showMountName } from "../../contract/mount-name.ts";
import { EXIT } from "../failure.ts";
import type { Values } from "../options.ts";
import { printList } from "../service.ts";
import { showTime } from "../table.ts";
import { formatSize } from "../wording.ts";
import { noteUnsent } from "./settle.ts";
import { findNode, notThere, requireFile, versionsOf } from "./target.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

export function versions(values: Values<"versions">): Promise<number> {
  const { json, limit } = values;
  return atWorkspace(values, [values.positionals.FILE], ["getNodeByPath", "listVersions"], async (at) => {
    const { gateway, mount, paths } = at;
    const [path = "/"] = paths;
    await requireHistory(gateway);
    const node = await findNode(gateway, path);
    if (node === undefined) throw notThere(path);
    requireFile(node);
    await noteUnsent(mount);
    const page = await printList(versionsOf(gateway, node, limit), {
      json,
      limit,
      heads: ["VERSION", "SAVED", "SIZE", "BY", "FROM"],
      row: (version) => [
        version.id === node.head ? `${version.number} (newest)` : String(version.number),
        ...describeVersion(version),
      ],
      none: "It has no version.",
    });
    const { thinned = 0 } = page ?? {};
    if (thinned > 0 && json) process.stdout.write(`${JSON.stringify({ thinned })}\n`);
    else if (thinned > 0) process.stderr.write(`${thinned} more were given up by the workspace's policy\n`);
    return EXIT.ok;
  });
}

/** Time, size, account, and mount or execution: four columns of a table. */
export function describeVersion({ createdAt, size, by }: Version): [string, string, string, string] {
  return [showTime(createdAt), formatSize(size), whoOf(by), fromOf(by)];
}

export const whoOf = (by: Author | null | undefined) => by?.account ?? "";

/** The mount or the execution that made a change. */
export function fromOf(by: Author | null | undefined): string {
  if (by?.execution !== undefined) return `execution ${by.execution}`;
  return by?.mount === undefined ? "" : showMountName(by.mount);
}

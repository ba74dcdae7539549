/** `wsfs restore FILE@V`: makes an earlier version the newest one, by reference. */
import { type Gateway, RemoteError } from "../../client/index.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { print } from "../service.ts";
import { showTime } from "../table.ts";
import { formatSize, printable } from "../wording.ts";
import { restoreAt } from "./restore-tree.ts";
import { awaitShown, settle } from "./settle.ts";
import { findTarget, findVersion, meantBy, requireFile, type Target } from "./target.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = ["getNodeByPath", "listVersions", "getContent", "writeReference"] as const;

export function restore(values: Values<"restore">): Promise<number> {
  const { "at-time": at, exact, yes } = values;
  if (at !== undefined) return restoreAt(values, at);
  if (exact || yes) throw new Failure("--exact and --yes go with --at", EXIT.usage);
  return atWorkspace(values, [values.positionals.FILE], OPERATIONS, async ({ gateway, mount, paths }) => {
    const [path = "/"] = paths;
    await requireHistory(gateway);
    await settle(mount, meantBy(path), values["settle-timeout"]);
    const target = await findTarget(gateway, path, values["file-version"]);
    const shown = (position: number) => awaitShown(mount, position, values["settle-timeout"]);
    return restoreVersion(gateway, target, values.json, shown);
  });
}

/** `shown`: waits until the change at this position of the journal is shown. */
export async function restoreVersion(
  gateway: Gateway,
  { node, selector }: Target,
  json: boolean,
  shown: (position: number) => Promise<void>,
): Promise<number> {
  requireFile(node);
  if (selector === undefined) {
    throw new Failure(
      `which version of ${node.path}? @3 behind its name, or --version 3; wsfs versions lists them`,
      EXIT.usage,
    );
  }
  const version = await findVersion(gateway, node, selector);
  const what = `version ${version.number} of ${printable(node.path)} (${showTime(version.createdAt)}, ${formatSize(version.size)})`;
  if (version.id === node.head) {
    return print(json, { node, version, isChanged: false }, `It is the newest already: ${what}.\n`);
  }
  const source = { copyOf: node.id, version: version.id };
  const options = { ifHead: node.head ?? undefined, attributes: version.attributes ?? undefined };
  const written = await gateway.files.writeCopy(node.id, source, options).catch((cause) => {
    if (!(cause instanceof RemoteError) || cause.code !== "changed") throw cause;
    throw new Failure(`${node.path} was saved from elsewhere at this moment; nothing was changed`, EXIT.failure, {
      cause,
    });
  });
  const code = print(json, { node: written, version, isChanged: true }, `Restored: ${what} is the newest now.\n`);
  await shown(written.position);
  return code;
}

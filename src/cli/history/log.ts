/** `wsfs log [PATH]`: the journal in words. */
import type { Gateway, JournalEntry } from "../../client/index.ts";
import { parseMountName } from "../../contract/mount-name.ts";
import { EXIT } from "../failure.ts";
import type { Values } from "../options.ts";
import { table, terminalWidth } from "../table.ts";
import { printable } from "../wording.ts";
import { findDeleted } from "./deleted.ts";
import { describeAuthor, describeEntry, type Paths, pathsOf } from "./entries.ts";
import { noteUnsent } from "./settle.ts";
import { findNode, isWithin, notThere, pageSizeFor } from "./target.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = ["getNodeByPath", "getNode", "listNodes", "readJournal", "streamJournal"] as const;
/** The number of earlier entries that --follow shows first. */
const LINES_BEFORE = 10;

export function log(values: Values<"log">): Promise<number> {
  const { since, by, "follow-journal": follow, json, limit } = values;
  const word = values.optional.PATH ?? (values["in-workspace"] === undefined ? "." : "/");
  return atWorkspace(values, [word], OPERATIONS, async ({ gateway, mount, paths: [path = "/"] }) => {
    await requireHistory(gateway);
    if (!follow) await noteUnsent(mount);
    const paths = pathsOf(gateway);
    const scope = await scopeOf(gateway, path);
    const filter = { ...scope.filter, ...authorFilter(by), since };
    const shown: Shown[] = [];
    const most = follow ? LINES_BEFORE : limit;
    let asOf = 0;
    const pages = gateway.journal.list({ ...filter, before: true, orderBy: "-position", pageSize: pageSizeFor(most) });
    reading: for await (const page of pages.pages()) {
      asOf = page.asOf;
      for (const entry of page.items) {
        if (most !== 0 && shown.length >= most) break reading;
        const one = await look(entry, scope, paths);
        if (one !== undefined) shown.push(one);
      }
    }
    if (!follow) {
      if (json) process.stdout.write(shown.map(jsonLine).join(""));
      else
        process.stdout.write(
          shown.length === 0 ? "The journal has no entry for it.\n" : table(HEADS, shown.map(rowOf), terminalWidth()),
        );
      return EXIT.ok;
    }
    const print = (one: Shown) =>
      process.stdout.write(json ? jsonLine(one) : `${rowOf(one).map(printable).join("  ")}\n`);
    for (const one of shown.reverse()) print(one);
    const isBy = authorTest(by);
    for await (const entry of gateway.journal.follow({ after: asOf })) {
      // A folder may have moved since the last entry, so that remembered paths may be wrong.
      const one = isBy(entry) ? await look(entry, scope, pathsOf(gateway)) : undefined;
      if (one !== undefined) print(one);
    }
    return EXIT.ok;
  });
}

interface Shown {
  readonly entry: JournalEntry;
  readonly path: string;
  readonly words: string;
}

const HEADS = ["WHEN", "WHO", "FROM", "WHAT"];
const rowOf = ({ entry, words }: Shown) => [...describeAuthor(entry), words];
const jsonLine = ({ entry, path }: Shown) => `${JSON.stringify({ ...entry, path })}\n`;

interface Scope {
  readonly filter: { readonly nodeId?: string };
  /** True if a path is the folder's or lies below it. Undefined: every entry of the filter counts. */
  readonly holds: ((path: string) => boolean) | undefined;
  readonly nodeId: string | undefined;
}

/**
 * All entries of a file count, wherever the file was. For a folder, the entries of its present nodes count, and those
 * of nodes that were deleted in it.
 */
async function scopeOf(gateway: Gateway, path: string): Promise<Scope> {
  if (path === "/") return { filter: {}, holds: undefined, nodeId: undefined };
  const node = (await findNode(gateway, path)) ?? (await findDeleted(gateway, path));
  if (node === undefined) throw notThere(path);
  if (node.kind === "file") return { filter: { nodeId: node.id }, holds: undefined, nodeId: node.id };
  return { filter: {}, holds: (other) => isWithin(other, path), nodeId: node.id };
}

async function look(entry: JournalEntry, { holds, nodeId }: Scope, paths: Paths): Promise<Shown | undefined> {
  if (nodeId !== undefined && holds === undefined && entry.nodeId !== nodeId) return undefined;
  const path = await paths.of(entry.parentId, entry.name);
  const { before } = entry;
  const isMeant = async () =>
    holds === undefined ||
    entry.nodeId === nodeId ||
    holds(path) ||
    (entry.kind === "moved" && before != null && holds(await paths.of(before.parentId, before.name)));
  return (await isMeant()) ? { entry, path, words: await describeEntry(entry, path, paths) } : undefined;
}

function authorFilter(by: string | undefined): { readonly by?: string; readonly mount?: string } {
  if (by === undefined) return {};
  const mount = parseMountName(by);
  return mount === undefined ? { by } : { mount };
}

function authorTest(by: string | undefined): (entry: JournalEntry) => boolean {
  const wanted = authorFilter(by);
  return ({ by: author }) =>
    (wanted.by === undefined || author?.account === wanted.by) &&
    (wanted.mount === undefined || author?.mount === wanted.mount);
}

/**
 * The versions of a file, oldest first, also of a deleted file; with branch= the versions written on that branch.
 * Versions whose content was thinned are left out, but counted.
 */
import type { Attributes } from "../contract/attributes.ts";
import type { Version } from "../contract/resources.ts";
import { shownAuthor } from "./access.ts";
import { stateAt } from "./attribute-states.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange, lastChangeOf } from "./lag.ts";
import { attributesOf, MAIN } from "./node-rows.ts";
import { pageOfList } from "./paging.ts";
import { inBatches, type Row } from "./sorted-lists.ts";
import type { Store } from "./store.ts";
import { visibleNode } from "./workspaces.ts";

interface VersionRow extends Omit<Version, "createdAt" | "by" | "attributes"> {
  readonly createdAt: number;
  readonly position: number;
  /** The attributes that the change of the version stored (attribute-states.ts). */
  readonly attributes: string;
  /** For a version of another branch than main: its own mtime. */
  readonly mtime: string | null;
  /** JSON of an Author: that of the change which made the version. */
  readonly by: string | null;
}

/** Fields of a version, and their SQL. */
const FIELDS = {
  id: "id",
  nodeId: "NULL",
  number: "number",
  branch: "branch",
  size: "size",
  contentHash: "hash",
  mimeType: "mime_type",
  createdAt: "created_at",
  by: "(SELECT by ->> 'account' FROM change WHERE change.position = version.position)",
  attributes: "(SELECT attributes FROM change WHERE change.position = version.position)",
} as const satisfies Record<keyof Version, string>;
type Field = keyof typeof FIELDS;

const BATCH = 2000;

export async function listVersions(context: Context, call: Call<"listVersions">): Promise<GatewayAnswer> {
  const { store } = context;
  const { branch } = call.query;
  const row = visibleNode(context, call.caller, call.parameters.nodeId);
  const thinned = countThinned(store, row.id, branch);
  const page = await pageOfList(context.lists, call.query, {
    // Thinning makes no change of the journal, but each thinning makes another list.
    key: ["versions", row.id, branch ?? null, thinned],
    fields: Object.keys(FIELDS) as Field[],
    fallback: "number",
    asOf: lastChange(store).position,
    changedAt: (asOf) => lastChangeOf(store, row.workspace, asOf),
    rows(field, asOf) {
      const next = store.prepare<Row & { readonly number: number }>(
        `SELECT rowid AS row, id, number, ${FIELDS[field]} AS value FROM version
         WHERE node = :node AND number > :number AND content <> 0 AND position <= :asOf AND (:branch IS NULL OR branch = :branch)
         ORDER BY number LIMIT ${BATCH}`,
      );
      const after = (number: number) => next.all({ node: row.id, number, asOf, branch: branch ?? null });
      return inBatches(BATCH, 0, after, ({ number }) => number);
    },
    show: (rows) =>
      store
        .prepare<VersionRow>(
          `SELECT v.id, v.node AS nodeId, v.number, v.branch, v.size, v.hash AS contentHash, v.mime_type AS mimeType,
                  v.created_at AS createdAt, v.position, v.mtime, c.by, c.attributes
           FROM json_each(?) j CROSS JOIN version v ON v.rowid = j.value JOIN change c ON c.position = v.position`,
        )
        .all(JSON.stringify(rows))
        .map(
          ({ position, mtime, ...version }): Version => ({
            ...version,
            createdAt: new Date(version.createdAt).toISOString(),
            by: shownAuthor(version.by),
            attributes: attributesWith(stateAt(store, row.id, position, version.attributes), version.branch, mtime),
          }),
        ),
  });
  return jsonAnswer(200, thinned === 0 ? page : { ...page, thinned });
}

function countThinned(store: Store, node: string, branch: string | undefined): number {
  const counted = store
    .prepare<number>(
      "SELECT count(*) FROM version WHERE node = :node AND content = 0 AND (:branch IS NULL OR branch = :branch)",
    )
    .pluck();
  return counted.get({ node, branch: branch ?? null }) ?? 0;
}

/** Returns the attributes of a version: with its own mtime, without those that belong only to the node. */
function attributesWith(state: string, branch: string, own: string | null): Attributes {
  const { link: _, mtime: ofMain, ...common } = attributesOf({ attributes: state });
  const mtime = branch === MAIN ? ofMain : (own ?? undefined);
  return mtime === undefined ? common : { ...common, mtime };
}

/** The versions of a file, oldest first; also of a deleted one. */
import type { Version } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange } from "./lag.ts";
import { pageOf, sortAndSlice } from "./paging.ts";
import { visibleNode } from "./workspaces.ts";

interface VersionRow extends Omit<Version, "createdAt"> {
  readonly createdAt: number;
}

export function listVersions(context: Context, call: Call<"listVersions">): GatewayAnswer {
  const row = visibleNode(context, call.caller, call.parameters.nodeId);
  const versions: Version[] = context.store
    .prepare<VersionRow>(
      `SELECT id, node AS nodeId, number, branch, size, hash AS contentHash, mime_type AS mimeType,
              created_at AS createdAt FROM version WHERE node = ? ORDER BY number`,
    )
    .all(row.id)
    .map((version) => ({ ...version, createdAt: new Date(version.createdAt).toISOString() }));
  const fields = ["id", "nodeId", "number", "branch", "size", "contentHash", "mimeType", "createdAt"] as const;
  const slice = sortAndSlice(versions, call.query, fields, "number");
  return jsonAnswer(200, pageOf(slice, call.query, lastChange(context.store).position));
}

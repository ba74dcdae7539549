/** The bytes of versions: read whole and in ranges, and referred to by new versions and copies. */
import type { Attributes } from "../contract/attributes.ts";
import type { Content } from "./changes.ts";
import { isKnown, parseRange, quoted } from "./conditions.ts";
import type { Context } from "./context.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { positionAt } from "./lag.ts";
import { attributesOf, type NodeRow, nodeAt, onBranch } from "./node-rows.ts";
import { invalid, notFound, ProblemError, thinned } from "./problems.ts";
import { THINNED_CONTENT } from "./retention/index.ts";
import type { Caller } from "./tokens.ts";
import { relatedNode, visibleNode } from "./workspaces.ts";

interface VersionContent {
  readonly id: string;
  readonly number: number;
  readonly content: number;
  readonly size: number;
  readonly hash: string;
  readonly mimeType: string;
  readonly blob: string | null;
  readonly bytes: Buffer | null;
}

function findVersion(context: Context, node: string, version: string): VersionContent {
  const row = context.store
    .prepare<VersionContent>(
      `SELECT v.id, v.number, v.content, v.size, v.hash, v.mime_type AS mimeType, k.blob, k.bytes
       FROM version v LEFT JOIN content k ON k.id = v.content WHERE v.id = ? AND v.node = ?`,
    )
    .get(version, node);
  if (row === undefined) throw notFound(`The node has no version ${JSON.stringify(version)}.`);
  if (row.content === THINNED_CONTENT) {
    throw thinned(`The content of version ${row.number} was thinned by the workspace's policy of retention.`);
  }
  return row;
}

/** Without version= and at=, the head of a node that exists. Versions of deleted nodes stay readable. */
function versionAsked(context: Context, call: Call<"getContent">, row: NodeRow): VersionContent {
  const { version, branch, at } = call.query;
  if (row.kind !== "file") throw invalid("nodeId", "nodeId: a folder has no content");
  if (version !== undefined) {
    if (branch !== undefined || at !== undefined) {
      throw invalid("version", "version: not with branch or at, which choose the content as well");
    }
    return findVersion(context, row.id, version);
  }
  // Reads by id never lag.
  const asOf = at === undefined ? Number.MAX_SAFE_INTEGER : positionAt(context.store, Date.parse(at));
  const state = nodeAt(context.store, row.id, asOf);
  if (state === undefined || state.deleted === 1) {
    throw notFound(`The node ${JSON.stringify(row.id)} ${at === undefined ? "is deleted" : "was not there then"}.`);
  }
  const { head } = onBranch(context.store, state, branch, asOf);
  if (head === null) throw new Error(`The file ${row.id} has no head.`);
  return findVersion(context, row.id, head);
}

export function getContent(context: Context, call: Call<"getContent">): GatewayAnswer {
  const row = visibleNode(context, call.caller, call.parameters.nodeId);
  const version = versionAsked(context, call, row);
  const etag = quoted(version.id);
  if (isKnown(call.headers["if-none-match"], version.id)) return { status: 304, headers: { etag } };
  const condition = call.headers["if-range"];
  const range = condition === undefined || condition === etag ? parseRange(call.headers.range, version.size) : "whole";
  if (range === "unsatisfiable") {
    throw new ProblemError(416, `Nothing of the range lies within the ${version.size} bytes.`, {
      field: "Range",
      headers: { "content-range": `bytes */${version.size}`, etag },
    });
  }
  const { start, end } = range === "whole" ? { start: 0, end: version.size } : range;
  return {
    status: range === "whole" ? 200 : 206,
    headers: {
      "content-type": version.mimeType,
      "content-length": String(end - start),
      "accept-ranges": "bytes",
      etag,
      // The uploader chose the type: a browser must not guess another one, and a page that it shows must not act in
      // this gateway's name.
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox",
      ...(range === "whole" ? {} : { "content-range": `bytes ${start}-${end - 1}/${version.size}` }),
    },
    body: { kind: "bytes", stream: readVersion(context, version, start, end) },
  };
}

function readVersion(context: Context, version: VersionContent, start: number, end: number): AsyncIterable<Uint8Array> {
  if (version.blob !== null) return context.blobs.read(version.blob, start, end);
  return only(version.bytes?.subarray(start, end) ?? new Uint8Array());
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

interface CopySource {
  readonly content: Content;
  /**
   * The attributes of the source, without those that belong to it alone: its `link`, and its mtime when another version
   * is copied.
   */
  readonly attributes: Attributes;
}

/**
 * The content for a copy or a new version by reference, also of a deleted node. Without a version it is the head of the
 * branch, or of main if the branch has none.
 */
export function sourceOfCopy(
  context: Context,
  caller: Caller,
  workspace: string,
  nodeId: string,
  version: string | undefined,
  branch?: string,
): CopySource {
  const row = relatedNode(context, caller, workspace, nodeId, "copyOf");
  if (row.kind !== "file" || row.head === null) throw invalid("copyOf", "copyOf: expected a file, got a folder");
  const shown = onBranch(context.store, row, branch, Number.MAX_SAFE_INTEGER);
  const found = findVersion(context, row.id, version ?? shown.head ?? row.head);
  const { link: _, ...attributes } = attributesOf(row);
  if (found.id !== row.head) delete attributes.mtime;
  return {
    content: { content: found.content, size: found.size, hash: found.hash, mimeType: found.mimeType },
    attributes,
  };
}

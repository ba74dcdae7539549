/**
 * Writes of content: uploads of files by path, together with their parents; new versions of a known file, by bytes or
 * by reference. The body is received first. Then one transaction looks at the store as it is by then, so conditions,
 * names and keys are judged at the moment of the effect.
 */
import { createHash } from "node:crypto";
import { type Attributes, patchAttributes } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";
import { changeOf } from "./access.ts";
import { checkAttributes } from "./attribute-states.ts";
import { beginChange, type Change, type Content, changeNodeRow, createNodeRow, reread } from "./changes.ts";
import { isKnown, matches, nodeTag } from "./conditions.ts";
import { sourceOfCopy } from "./content.ts";
import type { Context } from "./context.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { once } from "./idempotency.ts";
import { attributesOf, findChild, findNode, MAIN, type NodeRow, showCurrent } from "./node-rows.ts";
import { decodePath } from "./paths.ts";
import { changed, conflict, invalid, notFound } from "./problems.ts";
import { type Destination, headSize, requireQuota } from "./quota.ts";
import { mayJournal } from "./scopes.ts";
import { commitUpload, stageUpload } from "./staging.ts";
import { callWorkspace, liveNode, visibleNode } from "./workspaces.ts";

export async function upload(context: Context, call: Call<"upload">): Promise<GatewayAnswer> {
  const names = decodePath(call.parameters.path);
  const name = names.at(-1);
  if (name === undefined) throw invalid("path", "path: expected the path of a file, got the root");
  const start = startFolder(context, call);
  const staged = await stageUpload(context, call, () => destinationOf(context, start, names));
  const { metadata } = staged;
  return commitUpload(context, staged, () => {
    const request = {
      workspace: start.workspace,
      key: metadata.idempotencyKey,
      same: ["upload", start.id, names.join("/"), staged.hash, ...otherBranch(metadata.branch)],
    };
    return once(context, call.caller, request, () => {
      const change = beginChange(context, changeOf(call.caller, metadata.idempotencyKey, mayJournal(call.caller)));
      const { parent, missing } = walk(context, start.id, names.slice(0, -1));
      const existing = missing.length === 0 ? findChild(context.store, parent.id, name) : undefined;
      checkConditions(context, call.headers, existing, metadata.branch);
      if (existing !== undefined) {
        if (existing.kind !== "file") {
          throw conflict("The name belongs to a folder.", showCurrent(context.store, existing));
        }
        requireRoomFor(context, existing, staged.size, metadata.branch);
        const position = writeVersion(context, change, existing, staged.keep, metadata);
        return { status: 200, written: { id: existing.id, position, branch: metadata.branch } };
      }
      requireQuota(context, start.workspace, staged.size);
      checkAttributes(metadata.attributes ?? {});
      const folder = makeFolders(context, change, parent, missing);
      const place = { workspace: start.workspace, parent: folder, name };
      const { id, position } = createFile(context, change, place, staged.keep(), metadata);
      return { status: 201, written: { id, position, branch: metadata.branch } };
    });
  });
}

/** The destination before the body has come. The path may lead elsewhere by the time of the effect. */
function destinationOf(context: Context, start: NodeRow, names: readonly string[]): Destination {
  let row: NodeRow | undefined = start;
  for (const name of names) row = row === undefined ? undefined : findChild(context.store, row.id, name);
  return { workspace: start.workspace, existing: row };
}

/** Checked before anything is written, so that a refusal leaves nothing to roll back. */
function requireRoomFor(context: Context, row: NodeRow, size: number, branch: string | undefined): void {
  requireQuota(context, row.workspace, size - headSize(context.store, row, branch));
}

/** Returns the folder at which the path begins. */
function startFolder(context: Context, call: Call<"upload">): NodeRow {
  const { parentId, workspace } = call.query;
  const id = parentId ?? callWorkspace(context, call.caller, workspace).root;
  const row = visibleNode(context, call.caller, id);
  if (row.kind !== "folder") throw invalid("parentId", "parentId: expected a folder, got a file");
  return row;
}

/**
 * Returns the last folder of the path that exists in the authoritative store, and the names below it that do not exist.
 */
export function walk(
  context: Context,
  start: string,
  names: readonly string[],
): { parent: NodeRow; missing: readonly string[] } {
  let parent = reread(context, start);
  // The folder may have been deleted while the body came in.
  if (parent.deleted === 1) throw notFound(`The folder ${JSON.stringify(start)} is deleted.`);
  for (const [index, name] of names.entries()) {
    const child = findChild(context.store, parent.id, name);
    if (child === undefined) return { parent, missing: names.slice(index) };
    if (child.kind !== "folder") {
      throw conflict(`${JSON.stringify(name)} on the way is a file.`, showCurrent(context.store, child));
    }
    parent = child;
  }
  return { parent, missing: [] };
}

/** Makes folders below a folder, one in the other. Returns the id of the last. */
export function makeFolders(context: Context, change: Change, parent: NodeRow, names: readonly string[]): string {
  let id = parent.id;
  for (const name of names) {
    id = createNodeRow(context, change, {
      workspace: parent.workspace,
      kind: "folder",
      parent: id,
      name,
      attributes: {},
    }).id;
  }
  return id;
}

function checkConditions(
  context: Context,
  headers: Call<"upload">["headers"],
  existing: NodeRow | undefined,
  branch: string | undefined,
): void {
  const node = existing === undefined ? undefined : showCurrent(context.store, existing, branch);
  // The ETag of this address is that of the node; the ETag of its content is the head.
  const tags = node === undefined ? [] : [nodeTag(node), String(node.revision), ...headOf(node)];
  if (isKnown(headers["if-none-match"], ...tags)) throw changed("The file is already there.", node);
  if (!matches(headers["if-match"], ...tags)) throw changed("The file is not the one expected.", node);
}

const headOf = ({ head }: Pick<Node, "head">) => (head === null ? [] : [head]);

/** Distinguishes requests of other branches than main. */
const otherBranch = (branch: string | undefined) => (branch === undefined || branch === MAIN ? [] : [branch]);

interface Wanted {
  readonly branch?: string | undefined;
  readonly attributes?: Attributes | undefined;
}

/**
 * Attributes are merged by key; an mtime belongs to the version it came with. `keep`: called once nothing can be
 * refused.
 */
function writeVersion(context: Context, change: Change, row: NodeRow, keep: () => Content, wanted: Wanted): number {
  const { branch = MAIN, attributes: given = {} } = wanted;
  const { mtime: own, ...kept } = attributesOf(row);
  const { mtime, ...common } = given;
  const attributes =
    branch === MAIN
      ? patchAttributes(kept, given)
      : patchAttributes(own === undefined ? kept : { ...kept, mtime: own }, common);
  checkAttributes(attributes, kept);
  return changeNodeRow(context, change, row, "updated", {
    content: keep(),
    attributes,
    ...(branch === MAIN ? {} : { branch: { name: branch, mtime } }),
  });
}

/** A file that begins on another branch is empty on main: the file exists on all branches, its content does not. */
function createFile(
  context: Context,
  change: Change,
  place: { readonly workspace: string; readonly parent: string; readonly name: string },
  content: Content,
  wanted: Wanted,
): { readonly id: string; readonly position: number } {
  const { branch = MAIN, attributes = {} } = wanted;
  if (branch === MAIN) return createNodeRow(context, change, { ...place, kind: "file", attributes, content });
  const empty = { ...emptyContent(context), mimeType: content.mimeType };
  const { id } = createNodeRow(context, change, { ...place, kind: "file", attributes: {}, content: empty });
  return { id, position: writeVersion(context, change, reread(context, id), () => content, wanted) };
}

function emptyContent(context: Context): Pick<Content, "content" | "size" | "hash"> {
  const { lastInsertRowid } = context.store
    .prepare("INSERT INTO content (blob, bytes) VALUES (NULL, ?)")
    .run(Buffer.alloc(0));
  return { content: Number(lastInsertRowid), size: 0, hash: createHash("sha256").digest("hex") };
}

export async function writeContent(context: Context, call: Call<"writeContent">): Promise<GatewayAnswer> {
  const row = fileAsked(context, call);
  const staged = await stageUpload(context, call, () => ({
    workspace: row.workspace,
    existing: findNode(context.store, row.id),
  }));
  const { metadata } = staged;
  return commitUpload(context, staged, () => {
    const request = {
      workspace: row.workspace,
      key: metadata.idempotencyKey,
      same: ["writeContent", row.id, staged.hash, ...otherBranch(metadata.branch)],
    };
    return once(context, call.caller, request, () => {
      const current = currentHead(context, call, row.id, metadata.branch);
      const change = beginChange(context, changeOf(call.caller, metadata.idempotencyKey));
      requireRoomFor(context, current, staged.size, metadata.branch);
      const position = writeVersion(context, change, current, staged.keep, metadata);
      return { status: 200, written: { id: row.id, position, branch: metadata.branch } };
    });
  });
}

/** A repeated request gets its first answer even when the node is deleted by now. */
function fileAsked(context: Context, { caller, parameters }: Call<"writeContent" | "writeReference">): NodeRow {
  const row = visibleNode(context, caller, parameters.nodeId);
  if (row.kind !== "file") throw invalid("nodeId", "nodeId: a folder has no content");
  return row;
}

export function writeReference(context: Context, call: Call<"writeReference">): GatewayAnswer {
  const reference = call.json;
  if (reference === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  return context.store.transaction(() => {
    const { id, workspace } = fileAsked(context, call);
    const request = {
      workspace,
      key: reference.idempotencyKey,
      same: ["writeReference", id, reference.copyOf, reference.version ?? null, ...otherBranch(reference.branch)],
    };
    return once(context, call.caller, request, () => {
      const current = currentHead(context, call, id, reference.branch);
      const source = sourceOfCopy(
        context,
        call.caller,
        workspace,
        reference.copyOf,
        reference.version,
        reference.branch,
      );
      const change = beginChange(context, changeOf(call.caller, reference.idempotencyKey));
      const position = writeVersion(context, change, current, () => source.content, reference);
      return { status: 200, written: { id, position, branch: reference.branch } };
    });
  });
}

/** Returns the file as it is at the moment of the effect. Throws a 412 when its head is not the one of If-Match. */
function currentHead(
  context: Context,
  call: Call<"writeContent" | "writeReference">,
  id: string,
  branch: string | undefined,
): NodeRow {
  const row = liveNode(context, call.caller, id);
  const shown = showCurrent(context.store, row, branch);
  if (!matches(call.headers["if-match"], ...headOf(shown))) {
    throw changed("The file's head is not the one expected.", shown);
  }
  return row;
}

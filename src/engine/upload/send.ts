/** Carries out one attempt: the request as it is stored, and what its answer or silence means. */
import type { Client } from "../../client/client.ts";
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { patchAttributes, sameValue } from "../../contract/attributes.ts";
import type { ContentSource } from "../../contract/http.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import type { Node, WrittenNode } from "../../contract/resources.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import {
  type Context,
  type Host,
  isKeyed,
  type LocalFiles,
  type Remote,
  type Request,
  type Rows,
  scopesOf,
  type Uploads,
} from "../core/index.ts";
import { giveUpUnreadable, snapshotSource } from "../files/index.ts";
import { acknowledge, isStaleRead, observeNode, refused, type Verdict, withHash, withRevision } from "../sync/index.ts";

const RETRY = { firstMs: 1_000, maxMs: 5 * 60_000 };
/** So often the bytes of a cut are tried to be read; a disk may fail for a moment. */
const UNREADABLE_TRIES = 5;
/** Whether a node is gone that was to be deleted is looked up at least so often. */
const TOLD_MS = 10_000;
/** Overtaken so often in a row, something else is wrong. */
const OVERTAKEN = 3;

const TOO_MUCH: readonly RemoteErrorCode[] = ["throttled", "silent", "server"];

const NOTHING: ContentSource = { size: 0, async *read() {} };

/** tooMuch: the gateway has more to do than it can, or seems to. failed: this says nothing of how fast it is. */
export type Outcome = "answered" | "tooMuch" | "failed";

/** What is told while it is under way. */
export interface Watcher {
  /** It is safe in the rows. Resolves to whether it is its turn; false: it is left for later, or for good. */
  turn(): Promise<boolean>;
  /** Bytes handed to the network so far. */
  progress(sent: number): void;
  /** Nothing more is asked of the gateway; what the answer means is not in the rows yet. Only the first one counts. */
  over(outcome: Outcome): void;
}

/** Never rejects: whatever happens is in the rows afterwards. */
export async function send(
  context: Context,
  attempt: Attempt<Request>,
  signal: AbortSignal,
  watcher: Watcher,
): Promise<void> {
  // Where a scope was refused, this is what it is tried by: whatever ends it without an answer says nothing of that.
  const undecided = () => context.network.undecided(scopesOf(attempt.request.do));
  try {
    // Forgotten by power loss, what it did would be taken for somebody else's.
    await context.syncRows();
    context.runtime.step("attempt: safe");
    if (!(await watcher.turn())) {
      undecided();
      return;
    }
    // Settled, or given up for a writer, meanwhile.
    if (signal.aborted || context.metadata.attempts.openOf(attempt.node)?.id !== attempt.id) {
      undecided();
      return;
    }
    if (isUncertain(context, attempt) && (await resolveByReading(context, attempt, signal))) {
      undecided();
      return;
    }
    if (!context.client.features.revisions) {
      await requireUnchanged(context, attempt, signal);
      if ("nodeId" in attempt.request && attempt.tries === 0) context.readOrder.writing(attempt.request.nodeId);
    }
    context.runtime.step(`request: ${attempt.request.do}`);
    const node = await call(context, attempt, signal, watcher.progress);
    requireKind(context, attempt, node);
    context.runtime.step("request: answered");
    context.network.answered();
    watcher.over("answered");
    await context.groupCommit(() => acknowledge(context, attempt, node, node.position));
    context.runtime.step("request: settled");
    context.network.granted(scopesOf(attempt.request.do));
  } catch (error) {
    const failure = await withContentHash(context, attempt, error, signal);
    failed(context, attempt, failure);
    if (!signal.aborted && isUnreadable(failure)) giveUpIfOften(context, attempt);
    watcher.over(error instanceof RemoteError && TOO_MUCH.includes(error.code) ? "tooMuch" : "failed");
  }
}

/** Sent before without an answer, and without a key by which the gateway would know it again. */
function isUncertain({ client }: Remote, { tries, request }: Attempt<Request>): boolean {
  const { features } = client;
  // Where conditions are only looked at, the first try would stand in the way of the second.
  const isLookedAt = !features.conditions || (!features.revisions && "ifRevision" in request);
  return tries > 0 && (isLookedAt || !isKeyed(request, features));
}

/** Broken off by the client itself: what was to be sent could not be read. */
function isUnreadable(error: unknown): boolean {
  return error instanceof RemoteError && error.code === "aborted";
}

function giveUpIfOften(
  context: Rows & LocalFiles & Uploads & Host,
  { id, node, generation: snapshot, tries }: Attempt<Request>,
): void {
  const attempt = context.metadata.attempts.openOf(node);
  if (snapshot !== null && attempt?.id === id && tries + 1 >= UNREADABLE_TRIES) giveUpUnreadable(context, attempt);
}

function failed(context: Context, attempt: Attempt<Request>, error: unknown): void {
  const { metadata, network, runtime, log } = context;
  network.failed(error);
  const fields = {
    attempt: attempt.id,
    node: attempt.node,
    request: attempt.request.do,
    tries: attempt.tries,
    err: error,
  };
  if (error instanceof RemoteError) {
    const verdict = arrivedMeanwhile(context, attempt, error) ? readAgain(attempt) : refused(context, attempt, error);
    if (!verdict.retry) {
      network.undecided(scopesOf(attempt.request.do));
      log.info(fields, "refused");
      return;
    }
    if (error.code === "aborted" && metadata.attempts.openOf(attempt.node)?.id !== attempt.id) return;
    metadata.attempts.failed(
      attempt.id,
      runtime.now() + (verdict.afterMs ?? retryPause(context, attempt.tries)),
      error.message,
    );
    log.info(fields, "will be sent again");
  } else {
    // The local disk, or a mistake of ours: the rows are as before, it is tried again.
    const message = error instanceof Error ? error.message : String(error);
    metadata.attempts.failed(attempt.id, runtime.now() + retryPause(context, attempt.tries), message);
    log.error(fields, "sending failed here");
  }
  runtime.step("request: will be sent again");
  context.activity.progressed();
}

/** The pause after the first try, and after so many more. */
export function retryPause({ runtime }: Pick<Host, "runtime">, tries: number): number {
  return backoff(RETRY, tries + 1, runtime);
}

/**
 * A request without a key is not repeated blindly: the gateway is read to see whether it took
 * effect. False: not yet, but an earlier sending may still arrive. Sent again just as it was, only
 * one of the two can take effect where conditions are kept, for both ask for the same state.
 */
async function resolveByReading(context: Context, attempt: Attempt<Request>, signal: AbortSignal): Promise<boolean> {
  const { request } = attempt;
  if ("nodeId" in request) return resolveByNode(context, attempt, request, signal);
  const { items } = await context.client.listFolder(request.parent, { name: request.name, signal });
  context.network.answered();
  const [found] = items;
  if (found === undefined || context.metadata.nodes.ofNodeId(found.id) !== undefined) return false;
  // Deleted since: an old list, which does not show yet what this request may have made.
  if (isStaleRead(context, withRevision(context, found, "others"))) return false;
  const node = await hashed(context, request, found, signal);
  if (request.do === "folder" ? node.kind !== "folder" : node.contentHash !== request.hash) {
    throw new RemoteError("conflict", `${request.do}: the name is taken`, { node });
  }
  // Made by this request, or by somebody else with the same content, which comes to the same.
  acknowledge(context, attempt, node, 0);
  return true;
}

async function resolveByNode(
  context: Context,
  attempt: Attempt<Request>,
  request: Extract<Request, { nodeId: string }>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await context.client.getNode(request.nodeId, { signal });
    context.network.answered(OPERATIONS.getNode.scopes);
    requireKind(context, attempt, found);
    const isVersion = request.do === "content" || request.do === "reference";
    if (isVersion && found.head === request.ifHead) return false;
    const node = isVersion ? await hashed(context, request, found, signal) : found;
    if (isEffectOf(context, request, node)) {
      acknowledge(context, attempt, node, 0);
      return true;
    }
    const { revision } = withRevision(context, node, "id");
    // Where revisions are the gateway's, one from before the request's is of another past: its data were set back.
    const isOfOther = context.client.features.revisions && "ifRevision" in request && revision < request.ifRevision;
    if ("ifRevision" in request && revision <= request.ifRevision && !isOfOther) return false;
    context.metadata.transaction(() => {
      context.metadata.attempts.remove(attempt.id);
      // It had no effect and can have none any more: what is seen is judged, and the plan asks again.
      observeNode(context, node, "id");
      const row = context.metadata.nodes.get(attempt.node);
      if (row !== undefined) context.metadata.nodes.update(row.id, { due: context.runtime.now() });
    });
    context.activity.wake();
  } catch (error) {
    if (!(error instanceof RemoteError) || error.code !== "notFound" || request.do !== "delete") throw error;
    context.network.answered();
    notFoundToDelete(context, attempt, request.nodeId, error);
  }
  return true;
}

/**
 * Carried out, or the node is so new that its id is not found yet: the journal tells which, or time. Until then the
 * request stays open, so that what is made in its place is no version of a node that may be gone.
 */
function notFoundToDelete(context: Context, attempt: Attempt<Request>, nodeId: string, error: RemoteError): void {
  const { metadata, runtime } = context;
  const seen = metadata.nodes.get(attempt.node)?.seen;
  if (seen != null && "deleted" in seen) {
    refused(context, attempt, error);
    return;
  }
  metadata.rereads.add(nodeId);
  const wait = Math.min(retryPause(context, attempt.tries), TOLD_MS);
  metadata.attempts.failed(attempt.id, runtime.now() + wait, error.message);
}

/**
 * Without revisions no request can carry one: the node is looked at just before it is moved or
 * deleted. What happens in between is not noticed.
 */
async function requireUnchanged(context: Context, attempt: Attempt<Request>, signal: AbortSignal): Promise<void> {
  const { request } = attempt;
  if (request.do !== "patch" && request.do !== "delete") return;
  const told = await context.client.getNode(request.nodeId, { signal });
  context.network.answered(OPERATIONS.getNode.scopes);
  const { revision } = withRevision(context, told, "id");
  const base = context.metadata.nodes.get(attempt.node)?.base;
  if (base == null || revision <= Math.max(base.revision, request.ifRevision)) return;
  observeNode(context, told, "id");
  throw new RemoteError("changed", `${request.do}: the node was changed`);
}

/** No node changes its kind: an answer of another one is none. Believed of a folder, all that is in it could not be reached. */
function requireKind({ metadata }: Rows, { node: id, request }: Attempt<Request>, { kind }: Node): void {
  // What was deleted there is nothing left to tell of.
  const row = request.do === "delete" ? undefined : metadata.nodes.get(id);
  if (row !== undefined && row.kind !== kind)
    throw new RemoteError("malformed", `${request.do}: answered of a ${kind}`);
}

/** Where the gateway tells no hash, the one of the node's content, if that can be what was sent. */
async function hashed(context: Remote, request: Request, node: Node, signal: AbortSignal): Promise<Node> {
  if (node.kind === "folder" || node.contentHash !== null || !("size" in request)) return node;
  if (node.size !== request.size || request.hash === null) return node;
  return withHash(context, node, signal);
}

/** A refusal with the node in the way, its content's hash known if that can be known. */
async function withContentHash(
  context: Remote,
  attempt: Attempt<Request>,
  error: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (!(error instanceof RemoteError) || error.details.node === undefined) return error;
  try {
    const node = await hashed(context, attempt.request, error.details.node, signal);
    return node === error.details.node ? error : new RemoteError(error.code, error.message, { ...error.details, node });
  } catch (failure) {
    return failure;
  }
}

function readAgain({ tries }: Attempt<Request>): Verdict {
  return tries < OVERTAKEN ? { retry: true, afterMs: 0 } : { retry: true };
}

/** The earlier sending arrived between the reading and the repetition: the node is read again. */
function arrivedMeanwhile(context: Remote, attempt: Attempt<Request>, error: RemoteError): boolean {
  if (!isUncertain(context, attempt) || !("nodeId" in attempt.request)) return false;
  return error.code === "changed" || (error.code === "notFound" && attempt.request.do === "delete");
}

/** The node shows what the request asked for, and was changed since the request was made. */
function isEffectOf(context: Remote, request: Extract<Request, { nodeId: string }>, node: Node): boolean {
  if (request.do === "delete") return false;
  if ("hash" in request) return node.contentHash !== null && node.contentHash === request.hash;
  if (context.client.features.revisions && node.revision <= request.ifRevision) return false;
  if (request.parent !== undefined && request.parent !== node.parentId) return false;
  if (request.name !== undefined && request.name !== node.name) return false;
  const attributes = "attributes" in request ? request.attributes : undefined;
  return attributes === undefined || sameValue(patchAttributes(node.attributes, attributes), node.attributes);
}

function call(
  context: Rows & LocalFiles & Remote & Host,
  attempt: Attempt<Request>,
  signal: AbortSignal,
  onProgress: (sent: number) => void,
): Promise<WrittenNode> {
  const client: Client = context.client;
  const { request, key: idempotencyKey } = attempt;
  const common = { signal, idempotencyKey };
  switch (request.do) {
    case "folder":
      return client.createFolder(request.parent, request.name, { ...common, attributes: request.attributes });
    case "copy": {
      const { parent, name, copyOf, version, attributes } = request;
      return client.copyNode(parent, name, { copyOf, version }, { ...common, attributes });
    }
    case "reference": {
      const { nodeId, copyOf, version, attributes, ifHead } = request;
      const condition = ifHead === null ? {} : { ifHead };
      return client.writeContentByReference(nodeId, { copyOf, version }, { ...common, ...condition, attributes });
    }
    case "upload": {
      const options = { ...common, contentHash: request.hash, attributes: request.attributes, onProgress };
      return client.upload(request.parent, request.name, sourceOf(context, attempt), options);
    }
    case "content": {
      const condition = request.ifHead === null ? {} : { ifHead: request.ifHead };
      const options = {
        ...common,
        ...condition,
        contentHash: request.hash,
        attributes: request.attributes,
        onProgress,
      };
      return client.writeContent(request.nodeId, sourceOf(context, attempt), options);
    }
    case "patch": {
      const { nodeId, ifRevision, parent, name, attributes } = request;
      const patch = {
        ...(parent === undefined ? {} : { parentId: parent }),
        ...(name === undefined ? {} : { name }),
        ...(attributes === undefined ? {} : { attributes }),
      };
      return client.patchNode(nodeId, patch, { ...common, ifRevision });
    }
    case "exchange": {
      const { nodeId, ifRevision, withRevision: otherRevision } = request;
      return client.exchangeNodes(nodeId, request.with, { ...common, ifRevision, otherRevision });
    }
    case "delete":
      return client.deleteNode(request.nodeId, { ...common, ifRevision: request.ifRevision });
  }
}

function sourceOf(context: Rows & LocalFiles & Host, attempt: Attempt<Request>): ContentSource {
  if (attempt.generation === null) return NOTHING;
  const snapshot = context.metadata.snapshots.get(attempt.generation);
  if (snapshot === undefined) throw new Error(`attempt ${attempt.id} has lost its generation ${attempt.generation}`);
  return snapshotSource(context, snapshot);
}

/** Sends the stored request of one attempt. Its answer, or the lack of one, is carried over to the rows. */
import type { Client } from "../../client/client.ts";
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { patchAttributes, sameValue } from "../../contract/attributes.ts";
import type { ContentSource } from "../../contract/http.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import { knownPosition, type Node, type WrittenNode } from "../../contract/resources.ts";
import { backoff } from "../../lib/backoff.ts";
import { plus } from "../../lib/clocks.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import {
  type Host,
  type LocalFiles,
  type Remote,
  type Request,
  type Rows,
  scopesOf,
  type Uploads,
} from "../core/index.ts";
import type { Sync, Verdict } from "../sync/index.ts";

const RETRY = { firstMs: 1_000, maxMs: 5 * 60_000 };
/** Tries to read the bytes of a snapshot. A disk may fail for a moment. */
const UNREADABLE_TRIES = 5;
/** While a deletion is in doubt, the node is read at least this often. */
const IN_DOUBT_READ_MS = 10_000;
/** After so many tries, an earlier sending cannot be the reason of the refusals any more: pauses are as usual. */
const TRIES_AT_ONCE = 3;

const TOO_MUCH: readonly RemoteErrorCode[] = ["throttled", "silent", "server"];

const NOTHING: ContentSource = { size: 0, async *read() {} };

/** tooMuch: the gateway has, or seems to have, too much work. failed: this says nothing about its speed. */
type Outcome = "answered" | "tooMuch" | "failed";

/** The caller's view of an attempt's progress. */
interface Watcher {
  /** Called when the attempt is durable. True: the request may go out. False: it is left for later, or for good. */
  turn(): Promise<boolean>;
  /** Bytes of this attempt that were handed to the network so far. */
  progress(sent: number): void;
  /** The gateway is not asked any more. The answer is not in the rows yet. Only the first call counts. */
  over(outcome: Outcome): void;
}

/** Sends an attempt. Never rejects, unless the rows cannot be changed: the result is in the rows afterwards. */
export async function send(
  context: Rows & LocalFiles & Remote & Uploads & Host & Sync,
  attempt: Attempt<Request>,
  signal: AbortSignal,
  watcher: Watcher,
): Promise<void> {
  // If a scope was refused before, this request is the trial of that scope. If it ends without an answer, the trial
  // told nothing.
  const undecided = () => context.network.undecided(scopesOf(attempt.request.do));
  try {
    // If power loss took the attempt away, the effect of the request would look like a foreign change.
    await context.syncRows();
    context.runtime.step("attempt: durable");
    if (!(await watcher.turn())) {
      undecided();
      return;
    }
    // The attempt was closed meanwhile, for example for a writer.
    if (signal.aborted || context.metadata.attempts.openOf(attempt.node)?.id !== attempt.id) {
      undecided();
      return;
    }
    if (isUncertain(context, attempt) && (await resolveByReading(context, attempt, signal))) {
      undecided();
      return;
    }
    if (!context.client.features.isFull) {
      await requireUnchanged(context, attempt, signal);
      if ("nodeId" in attempt.request && attempt.tries === 0) context.readOrder.writing(attempt.request.nodeId);
    }
    context.runtime.step(`request: ${attempt.request.do}`);
    const node = await call(context, attempt, signal, watcher.progress);
    requireKind(context, attempt, node);
    context.runtime.step("request: answered");
    context.network.answered();
    watcher.over("answered");
    await context.groupCommit(() => context.answers.acknowledge(attempt, node, knownPosition(node.position)));
    context.runtime.step("request: closed");
    context.network.granted(scopesOf(attempt.request.do));
  } catch (error) {
    const failure = await withContentHash(context, attempt, error, signal);
    failed(context, attempt, failure);
    if (!signal.aborted && isUnreadable(failure)) giveUpIfOften(context, attempt);
    watcher.over(error instanceof RemoteError && TOO_MUCH.includes(error.code) ? "tooMuch" : "failed");
  }
}

/**
 * True: the attempt was sent before without an answer, and a repetition might fail by the effect of the first try. A
 * gateway without keys does not recognise a repetition. There conditions are checked only by a read before the request.
 */
function isUncertain({ client }: Remote, { tries }: Attempt<Request>): boolean {
  return tries > 0 && !client.features.isFull;
}

/** True: the client aborted the request. If no signal told it to, it could not read the bytes to send. */
function isUnreadable(error: unknown): boolean {
  return error instanceof RemoteError && error.code === "aborted";
}

function giveUpIfOften(context: Rows & LocalFiles, { id, node, snapshot, tries }: Attempt<Request>): void {
  const attempt = context.metadata.attempts.openOf(node);
  if (snapshot !== null && attempt?.id === id && tries + 1 >= UNREADABLE_TRIES)
    context.snapshotFiles.giveUpUnreadable(attempt);
}

function failed(context: Rows & Remote & Uploads & Host & Sync, attempt: Attempt<Request>, error: unknown): void {
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
    const verdict = arrivedMeanwhile(context, attempt, error)
      ? readAgain(attempt)
      : context.answers.refused(attempt, error);
    if (!verdict.retry) {
      network.undecided(scopesOf(attempt.request.do));
      log.info(fields, "refused");
      return;
    }
    if (error.code === "aborted" && metadata.attempts.openOf(attempt.node)?.id !== attempt.id) return;
    metadata.attempts.failed(
      attempt.id,
      plus(runtime.now(), verdict.afterMs ?? retryPause(context, attempt.tries)),
      error.message,
    );
    log.info(fields, "will be sent again");
  } else {
    // The local disk failed, or our code has a mistake. The rows are as before, and the attempt is tried again.
    const message = error instanceof Error ? error.message : String(error);
    metadata.attempts.failed(attempt.id, plus(runtime.now(), retryPause(context, attempt.tries)), message);
    log.error(fields, "sending failed here");
  }
  runtime.step("request: will be sent again");
  context.activity.progressed();
}

/** The pause in milliseconds after a try that failed. `tries`: how many tries failed before it. */
export function retryPause({ runtime }: Pick<Host, "runtime">, tries: number): number {
  return backoff(RETRY, tries + 1, runtime);
}

/**
 * Before a request is repeated on a plain gateway, a read shows whether the first try took effect. Returns true if the
 * attempt is closed by that. Returns false if there is no effect yet: then the same request is sent again, and the
 * earlier sending may still arrive.
 */
async function resolveByReading(
  context: Rows & Remote & Uploads & Host & Sync,
  attempt: Attempt<Request>,
  signal: AbortSignal,
): Promise<boolean> {
  const { request } = attempt;
  if ("nodeId" in request) return resolveByNode(context, attempt, request, signal);
  const { items } = await context.client.listFolder(request.parent, { name: request.name, signal });
  context.network.answered();
  const [found] = items;
  if (found === undefined || context.metadata.nodes.ofNodeId(found.id) !== undefined) return false;
  // The node was deleted since. So the list is old, and does not yet show a node that this request may have made.
  const shown = context.observer.withRevision(found, "others");
  if (shown === undefined || context.observer.isStaleRead(shown)) return false;
  const node = await hashed(context, request, found, signal);
  if (request.do === "folder" ? node.kind !== "folder" : node.contentHash !== request.hash) {
    throw new RemoteError("conflict", `${request.do}: the name is taken`, { node });
  }
  // This request made the node, or another request did with the same content. The result is the same.
  context.answers.acknowledge(attempt, node);
  return true;
}

async function resolveByNode(
  context: Rows & Remote & Uploads & Host & Sync,
  attempt: Attempt<Request>,
  request: Extract<Request, { nodeId: string }>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await context.client.getNode(request.nodeId, { signal });
    context.network.answered(OPERATIONS.getNode.scopes);
    requireKind(context, attempt, found);
    const isVersion = request.do === "content";
    if (isVersion && found.head === request.ifHead) return false;
    const node = isVersion ? await hashed(context, request, found, signal) : found;
    if (isEffectOf(request, node)) {
      context.answers.acknowledge(attempt, node);
      return true;
    }
    const revision = context.observer.withRevision(node, "id")?.revision;
    if ("ifRevision" in request && (revision === undefined || revision <= request.ifRevision)) return false;
    context.metadata.transaction(() => {
      context.metadata.attempts.remove(attempt.id);
      // The request had no effect and can have none any more, because the node has a newer revision. The node is
      // observed, and the plan decides anew.
      context.observer.node(node, "id");
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
 * The node that is to be deleted was not found. Either the deletion was carried out, or the node is so new that its id
 * is not found yet. The journal tells which of the two it is, or the settle time does. Until then the request stays
 * open, so that a file made in the node's place does not become a version of a node that may be gone.
 */
function notFoundToDelete(
  context: Rows & Host & Sync,
  attempt: Attempt<Request>,
  nodeId: string,
  error: RemoteError,
): void {
  const { metadata, runtime } = context;
  const seen = metadata.nodes.get(attempt.node)?.seen;
  if (seen != null && "deleted" in seen) {
    context.answers.refused(attempt, error);
    return;
  }
  metadata.rereads.add(nodeId);
  const wait = Math.min(retryPause(context, attempt.tries), IN_DOUBT_READ_MS);
  metadata.attempts.failed(attempt.id, plus(runtime.now(), wait), error.message);
}

/**
 * A plain gateway has no revisions that a request could name as its condition. So the node is read just before it is
 * moved or deleted. Throws RemoteError "changed" if it is not as expected. A change between the read and the request is
 * not noticed.
 */
async function requireUnchanged(
  context: Rows & Remote & Sync,
  attempt: Attempt<Request>,
  signal: AbortSignal,
): Promise<void> {
  const { request } = attempt;
  if (request.do !== "patch" && request.do !== "delete") return;
  const told = await context.client.getNode(request.nodeId, { signal });
  context.network.answered(OPERATIONS.getNode.scopes);
  const revision = context.observer.withRevision(told, "id")?.revision;
  const base = context.metadata.nodes.get(attempt.node)?.base;
  if (base == null || revision === undefined || revision <= Math.max(base.revision, request.ifRevision)) return;
  context.observer.node(told, "id");
  throw new RemoteError("changed", `${request.do}: the node was changed`);
}

/**
 * Throws RemoteError "malformed" if the answer is about another kind of node. No node changes its kind. If a folder
 * were taken for a file, nothing in it could be reached any more.
 */
function requireKind({ metadata }: Rows, { node: id, request }: Attempt<Request>, { kind }: Node): void {
  // The kind of a deleted node does not matter.
  const row = request.do === "delete" ? undefined : metadata.nodes.get(id);
  if (row !== undefined && row.kind !== kind)
    throw new RemoteError("malformed", `${request.do}: answered of a ${kind}`);
}

/**
 * The node with the hash of its content. If the gateway tells no hash and the sizes are the same, the hash is found
 * out. With another size, the content cannot be the one that was sent.
 */
async function hashed(context: Sync, request: Request, node: Node, signal: AbortSignal): Promise<Node> {
  if (node.kind === "folder" || node.contentHash !== null || !("size" in request)) return node;
  if (node.size !== request.size || request.hash === null) return node;
  return context.nodeReader.withHash(node, signal);
}

/** The refusal, with the hash of the node in the way if it can be found out; or the failure to find it out. */
async function withContentHash(
  context: Sync,
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

/** At once for the first times, later after the usual pause. */
function readAgain({ tries }: Attempt<Request>): Verdict {
  return tries < TRIES_AT_ONCE ? { retry: true, afterMs: 0 } : { retry: true };
}

/** True: an earlier sending seems to have arrived between the read and the repetition. Then the node is read again. */
function arrivedMeanwhile(context: Remote, attempt: Attempt<Request>, error: RemoteError): boolean {
  if (!isUncertain(context, attempt) || !("nodeId" in attempt.request)) return false;
  return error.code === "changed" || (error.code === "notFound" && attempt.request.do === "delete");
}

/** True: the node is as the request would leave it. */
function isEffectOf(request: Extract<Request, { nodeId: string }>, node: Node): boolean {
  if (request.do === "delete") return false;
  if ("hash" in request) return node.contentHash !== null && node.contentHash === request.hash;
  if (request.parent !== undefined && request.parent !== node.parentId) return false;
  if (request.name !== undefined && request.name !== node.name) return false;
  const attributes = "attributes" in request ? request.attributes : undefined;
  return attributes === undefined || sameValue(patchAttributes(node.attributes, attributes), node.attributes);
}

function call(
  context: Rows & LocalFiles & Remote,
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

function sourceOf(context: Rows & LocalFiles, attempt: Attempt<Request>): ContentSource {
  if (attempt.snapshot === null) return NOTHING;
  const snapshot = context.metadata.snapshots.get(attempt.snapshot);
  if (snapshot === undefined) throw new Error(`attempt ${attempt.id} has lost its snapshot ${attempt.snapshot}`);
  return context.snapshotFiles.source(snapshot);
}

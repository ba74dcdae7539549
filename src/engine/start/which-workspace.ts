/**
 * Finds out the workspace of a start, and whether it may start. The rows know the workspace after the first start. The
 * gateway is asked too, and counts if it answers. The use of the answer is not known here.
 */
import type { Client } from "../../client/client.ts";
import { RemoteError } from "../../client/errors.ts";
import type { Node, Workspace } from "../../contract/resources.ts";
import type { Scope } from "../../contract/scopes.ts";
import type { Logger } from "../../lib/log.ts";
import { formatTime, isoToTimeText } from "../../lib/time.ts";
import { withinLimits } from "../../metadata/attribute-limits.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import { born } from "../../metadata/nodes.ts";
import { StartError } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Request, Rows } from "../core/index.ts";
import type { RowClockRuntime } from "../host/index.ts";
import { contentOfNode, shownUpTo } from "../sync/index.ts";
import { atOnce, ONE_TRY, type RetryBudget, retryAtStart, type Waits } from "./retry-at-start.ts";
import { findRoot, type View, viewKey } from "./view.ts";

const READ_SCOPES = ["account.workspace.read", "node.node.read-all", "node.file.read"] as const satisfies Scope[];

/** The needed scopes that the token does not name. None if it names no scopes at all (undefined). */
export function missingScopes(scopes: ReadonlySet<string> | undefined, needed: readonly Scope[]): Scope[] {
  return scopes === undefined ? [] : needed.filter((scope) => !scopes.has(scope));
}

interface Start {
  /** `rootId` is the folder that is mounted, which may be one in the workspace. */
  readonly workspace: Workspace;
  /**
   * The error of the question to the gateway. The start goes on all the same, because the rows know enough. Undefined:
   * it answered, or has still to answer.
   */
  readonly trouble: unknown;
  /** The gateway's answer, if the start does not wait for it. */
  readonly asked?: Promise<Workspace | undefined>;
}

/**
 * For a takeover: programs go on with the rows as they are, as they would have with the earlier daemon, and without
 * waiting for the gateway or the token. Undefined: the rows know no workspace. Throws a StartError if the profile is of
 * another counting.
 */
export function goOn(metadata: Metadata<Request>, client: Client): Start | undefined {
  const known = knownWorkspace(metadata);
  if (known === undefined) return undefined;
  // A reload may have brought another profile.
  requireSameCounting(metadata, client, true);
  // By the id, because the workspace may have another name by now.
  const asked = client.findWorkspace(known.id);
  asked.catch(() => {});
  return { workspace: known, trouble: undefined, asked };
}

/**
 * For any other start. Waits for the gateway only if the rows do not know the workspace, or for a moment. Rejects with
 * a StartError, in words for a person, if the mount must not start.
 */
export async function findOut(
  metadata: Metadata<Request>,
  runtime: Waits & Pick<RowClockRuntime, "now" | "files">,
  client: Client,
  name: string,
  view: View,
  scopes: ReadonlySet<string> | undefined,
  log: Logger,
  patience: RetryBudget = ONE_TRY,
): Promise<Start> {
  const known = knownWorkspace(metadata);
  if (known !== undefined) requireSameTime(metadata, view);
  const counting = requireSameCounting(metadata, client, known !== undefined);
  const withRetries = <T>(ask: () => Promise<T>) =>
    retryAtStart(runtime, known === undefined ? patience : ONE_TRY, ask);
  const missing = missingScopes(scopes, READ_SCOPES);
  if (missing.length > 0)
    throw new StartError(`the token lacks ${missing.join(", ")}, without which nothing can be read`);
  if (known !== undefined && name !== known.id && name !== known.name) {
    throw new StartError(
      `the state dir belongs to workspace "${known.name}", not to "${name}": give another --state-dir`,
    );
  }
  try {
    const isRootAsked = known === undefined || view.path !== undefined || view.at !== undefined;
    const ask = async () => {
      const found = await withRetries(() => client.findWorkspace(name));
      if (found === undefined) return undefined;
      const root = isRootAsked ? await withRetries(() => findRoot(client, found, view)) : undefined;
      return { found: { ...found, rootId: root?.id ?? found.rootId }, root };
    };
    const asked = ask();
    const answer = known === undefined ? { value: await asked } : await atOnce(runtime, asked);
    if (known !== undefined && answer === undefined) {
      requireSamePath(metadata, view);
      return { workspace: known, trouble: undefined, asked: asked.then((later) => later?.found) };
    }
    if (answer?.value === undefined) throw await noWorkspace(client, name);
    const { found: workspace, root } = answer.value;
    if (known !== undefined && known.id !== workspace.id) {
      throw new StartError(
        `the state dir belongs to workspace "${known.name}" (${known.id}), not to "${workspace.name}" (${workspace.id})`,
      );
    }
    if (known !== undefined && known.rootId !== workspace.rootId) throw otherFolder(metadata, view);
    if (known === undefined && root !== undefined) {
      const begun = runtime.now();
      // A mount of a moment follows nothing.
      const { asOf } =
        view.at === undefined ? await withRetries(() => client.listFolder(root.id, { pageSize: 1 })) : { asOf: 0 };
      firstStart(metadata, runtime, workspace, root, shownUpTo({ client }, asOf, begun), counting);
    }
    metadata.settings.set("workspaceName", workspace.name);
    const key = viewKey(view);
    if (key !== undefined) metadata.settings.set("view", key);
    return { workspace, trouble: undefined };
  } catch (error) {
    if (error instanceof StartError || !(error instanceof RemoteError)) throw error;
    const isPassing = error.isTransient || error.code === "unauthorized" || error.code === "throttled";
    if (known === undefined || !isPassing) throw new StartError(startProblem(error, name), 1, { cause: error });
    requireSamePath(metadata, view);
    log.warn({ err: error }, "the gateway cannot be asked; going on from what is known here");
    return { workspace: known, trouble: error };
  }
}

const isPast = (key: string | undefined) => key?.startsWith("past ") === true;

/** Throws a StartError if the state dir is of a mount of now and a moment was asked for, or the other way round. */
function requireSameTime(metadata: Metadata<Request>, view: View): void {
  if (isPast(metadata.settings.get("view")) === isPast(viewKey(view))) return;
  const whose = view.at === undefined ? "mounts of the past (--at)" : "a mount of now";
  throw new StartError(`the state dir belongs to ${whose}: give another --state-dir`);
}

/**
 * For a start without the gateway, so that the node at a path cannot be asked for. Throws a StartError if the path is
 * not the one of the state dir.
 */
function requireSamePath(metadata: Metadata<Request>, view: View): void {
  if (metadata.settings.get("view") !== viewKey(view)) throw otherFolder(metadata, view);
}

function otherFolder(metadata: Metadata<Request>, { path }: View): StartError {
  const known = metadata.settings.get("view")?.replace(/^\w+ /, "") ?? "/";
  const [its, asked] = [known, path ?? "/"].map((one) => (one === "/" ? "all of the workspace" : `folder ${one}`));
  const not = its === asked ? "and that is another folder now" : `not to ${asked}`;
  return new StartError(`the state dir belongs to ${its}, ${not}: give another --state-dir`);
}

const NAMES_SHOWN = 10;

/**
 * The error for a workspace that is not visible to the token, by name or id. It names the visible ones. Rejects with
 * the RemoteError of the request.
 */
export async function noWorkspace(client: Pick<Client, "listWorkspaces">, name: string): Promise<StartError> {
  const names = (await client.listWorkspaces()).map((workspace) => `"${workspace.name}"`);
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : "";
  const visible = names.length === 0 ? "none is" : `visible: ${names.slice(0, NAMES_SHOWN).join(", ")}${more}`;
  return new StartError(`no workspace "${name}" is visible to this token; ${visible}`);
}

/** The message if the gateway gives no token for the workspace, or does not list it. It tells no more than that. */
export function notVisible(name: string): string {
  return `no workspace "${name}" is visible to this token; roles in it are given by its owners`;
}

/** Takes in the answer after the start. One that would have prevented the start now prevents sending. Never rejects. */
export async function hearLater(
  { network, readOnly, fileState, log, workspace, metadata }: Rows & LocalFiles & Remote & Host,
  asked: Promise<Workspace | undefined>,
): Promise<void> {
  try {
    const found = await asked;
    if (fileState.stopped.aborted) return;
    network.answered();
    if (found?.id === workspace.id) {
      metadata.settings.set("workspaceName", found.name);
      readOnly.shown(found);
      network.doubts(undefined);
      return;
    }
    network.doubts(
      found === undefined
        ? `no workspace "${workspace.name}" is visible to this token any more; mount again`
        : `"${found.name}" is another workspace now than that of the state dir; mount again`,
    );
    log.error({ workspace, told: found }, "the gateway does not know the workspace of the state dir by its name");
  } catch (error) {
    if (fileState.stopped.aborted) return;
    network.failed(error);
    network.doubts(undefined);
    log.warn({ err: error }, "the gateway cannot be asked; going on from what is known here");
  }
}

/** The value in the state dir for a gateway that counts revisions and positions. */
const COUNTED_THERE = "revisions there, positions there";
const COUNTED_HERE = "revisions here, positions here";

/**
 * Throws a StartError if revisions and positions were counted by the other side before, the gateway or this mount. The
 * two kinds cannot be compared.
 */
function requireSameCounting({ settings }: Metadata<Request>, { features }: Client, isKnown: boolean): string {
  const counting = features.isFull ? COUNTED_THERE : COUNTED_HERE;
  // A new state dir has counted nothing yet. Earlier releases also kept mixtures of the two, or nothing.
  const before = isKnown ? (settings.get("counting") ?? COUNTED_THERE) : counting;
  if (before !== counting) {
    throw new StartError(
      `the state dir was used with another profile (${before}, now ${counting}): give another --state-dir`,
    );
  }
  return counting;
}

function startProblem(error: RemoteError, name: string): string {
  switch (error.code) {
    case "unauthorized":
      return `the token was refused: ${error.message}`;
    case "forbidden":
      return error.details.scope === undefined ? error.message : `the token lacks ${error.details.scope}`;
    case "notFound":
      return notVisible(name);
    case "offline":
    case "silent":
      return `the gateway cannot be reached: ${error.message}`;
    default:
      return `the gateway answered: ${error.message}`;
  }
}

function knownWorkspace(metadata: Metadata<Request>): Workspace | undefined {
  const { settings } = metadata;
  const [id, name, rootId] = [settings.get("workspace"), settings.get("workspaceName"), settings.get("root")];
  return id === undefined || name === undefined || rootId === undefined ? undefined : { id, name, rootId };
}

/**
 * Makes the rows of the root folder, not listed yet. `asOf`: the position up to which a listing shows everything now;
 * the journal is followed from there.
 */
function firstStart(
  metadata: Metadata<Request>,
  runtime: Pick<RowClockRuntime, "files">,
  workspace: Workspace,
  told: Node,
  asOf: number,
  counting: string,
): void {
  const root = withinLimits(told);
  metadata.transaction(() => {
    const { settings, inodes, nodes } = metadata;
    settings.set("workspace", workspace.id);
    settings.set("workspaceName", workspace.name);
    settings.set("root", workspace.rootId);
    settings.set("counting", counting);
    settings.set("cursor", String(asOf));
    settings.set("indexed", String(asOf));
    const content = contentOfNode(root, formatTime(runtime.files.currentTime()));
    inodes.create({ kind: "folder", ...content, atime: isoToTimeText(root.modifiedAt) });
    nodes.create(born(metadata.createRootEntry(), root));
  });
}

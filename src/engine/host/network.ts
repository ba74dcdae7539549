/**
 * What is known of the gateway right now: whether it answers, what the token may do, and what has
 * been paused for that. Every answer and failure is reported here; flows ask before they wait.
 */
import type { Client } from "../../client/client.ts";
import { RemoteError, type RemoteErrorDetails } from "../../client/errors.ts";
import { OPERATIONS, type OperationName } from "../../contract/operations.ts";
import type { Scope } from "../../contract/scopes.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Timer } from "../../lib/runtime.ts";
import { FsError } from "../api/index.ts";
import type { RowClockRuntime } from "./row-clock.ts";

/** Once known to be offline, a program waits no longer than this for an answer. */
export const OFFLINE_PATIENCE_MS = 1000;
/** Between tries of a scope that was refused. */
const REFUSED = { firstMs: 5 * 60_000, maxMs: 60 * 60_000 };
/** Between trials that say nothing of the scope. */
const UNDECIDED = { firstMs: 1_000, maxMs: REFUSED.firstMs };
/** So many answers 5xx in a row, and it is not one request that they are about. */
const OUTAGE = 8;
const OUTAGE_PAUSES = { firstMs: 1_000, maxMs: 30_000 };
/** Whatever Retry-After says, the gateway is asked again after this. */
const RETRY_AFTER_MAX_MS = 5 * 60_000;

/** What one answer holds back: all changes, or one kind of question, for others may be answered meanwhile. */
export type RequestKind = "changes" | Exclude<OperationName, ChangeName>;
type ChangeName = {
  [Name in OperationName]: (typeof OPERATIONS)[Name]["method"] extends "GET" ? never : Name;
}[OperationName];

export interface Network {
  readonly isOnline: boolean;
  /** Since when it does not answer, time of the rows (even-time.ts); undefined while it does. */
  readonly offlineSince: number | undefined;
  /** The token was refused; nothing is sent until a new one works. */
  readonly loginNeeded: string | undefined;
  /** Why nothing must be sent at all: it is not the gateway, or the workspace, that this mount is of, or has not said so yet. */
  readonly doubt: string | undefined;
  doubts(reason: string | undefined): void;
  /** How long nothing of the kind is to be asked, milliseconds: the gateway said so, or fails each request of the kind. */
  pauseMs(kind: RequestKind): number;
  /** False: the token lacks it, or the gateway said so not long ago. */
  may(scope: Scope): boolean;
  /** Refused not long ago, each with what the gateway said. */
  readonly refusals: ReadonlyMap<string, string>;
  /** A request that needs these is about to be sent. Where one of them was refused, it goes alone: its answer counts for all. */
  needs(scopes: readonly Scope[]): void;
  /** A request that needs these was answered as asked. */
  granted(scopes: readonly Scope[]): void;
  /** It was refused: should that not have been for a scope, the next one that needs it tells, after a while. */
  undecided(scopes: readonly Scope[]): void;
  /** False: the gateway was asked to exchange two nodes, and did not understand. */
  readonly mayExchange: boolean;
  cannotExchange(): void;
  /** False: the gateway refused to take the content of this version for another node. Its bytes are sent instead. */
  mayRefer(version: string): boolean;
  cannotRefer(version: string): void;
  /** It is wanted tried again, or nobody has it as his content any more. */
  forgetReference(version: string): void;
  /** A scope that was refused is being tried again, or was by what said nothing of it: whether it is lacking is not known. */
  readonly isUndecided: boolean;
  /** Somebody wants what was refused tried again, and nothing held back. */
  retry(): void;
  /** What the token says it has; undefined as of createNetwork. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** Another token is in use; `scopes` as of createNetwork. */
  tokenChanged(scopes: ReadonlySet<string> | undefined): void;
  /** It answers, whatever that is: it can be reached. */
  isThere(): void;
  /** Something was answered as asked; `shown`: the scopes it took, should that be of interest. */
  answered(shown?: readonly Scope[]): void;
  /** Takes note of a failed call. */
  failed(error: unknown): void;
  /**
   * How long a program waits: known offline, `giveUp` is called after a second, unless something was answered by then.
   * To be cancelled when it waits no more.
   */
  patience(giveUp: () => void): Timer | undefined;
  /** Runs a call on behalf of a program, with that patience. Rejects with an FsError. */
  ask<T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

interface Refusal {
  readonly reason: string;
  readonly untilMs: number;
  /** So often in a row. */
  readonly times: number;
  /** It was asked for again, the answer is not here. */
  readonly isOnTrial: boolean;
  /** It came, and said nothing of the scope. */
  readonly isUndecided: boolean;
  /** So many trials have said nothing. */
  readonly undecidedTimes: number;
  /** When it was last tried before its time, since something else went that takes it. */
  readonly shownMs: number;
}

/**
 * `scopes`: what the token says it has; undefined: opaque, counts as having every one until a 403
 * says otherwise. `onChange`: with "scopes" when something may be done now that was refused, "token" by another token.
 */
export function createNetwork(
  runtime: RowClockRuntime,
  options: {
    scopes: ReadonlySet<string> | undefined;
    isOnline: boolean;
    /** A change was refused for want of a role. */
    onLacksRole: (grant: NonNullable<RemoteErrorDetails["grant"]>) => void;
    onChange: (what: "state" | "scopes" | "token") => void;
  },
): Network {
  const refused = new Map<string, Refusal>();
  let { scopes } = options;
  let isOnline = options.isOnline;
  let offlineSince = isOnline ? undefined : runtime.now();
  let loginNeeded: string | undefined;
  const pausedUntilMs = new Map<RequestKind, number>();
  /** Answers 5xx in a row. */
  const outages = new Map<RequestKind, number>();
  let mayExchange = true;
  const unreferable = new Set<string>();
  let doubt: string | undefined;

  function setState(online: boolean, login: string | undefined): void {
    if (online === isOnline && login === loginNeeded) return;
    if (online !== isOnline) offlineSince = online ? undefined : runtime.now();
    isOnline = online;
    loginNeeded = login;
    options.onChange("state");
  }

  function pauseMs(kind: RequestKind): number {
    return Math.max(0, (pausedUntilMs.get(kind) ?? 0) - runtime.elapsed());
  }

  function pause(kind: RequestKind, milliseconds: number): void {
    pausedUntilMs.set(kind, runtime.elapsed() + Math.max(pauseMs(kind), milliseconds));
  }

  /** For all of the kind: what fails whatever it is asked is not asked for one thing after the other. */
  function holdBack(error: RemoteError): void {
    const { code, details } = error;
    if (details.isOfNode === true) return;
    const kind = kindOf(details.operation);
    const asked = retryAfterOf(error);
    if ((code === "throttled" || code === "server") && asked !== undefined) pause(kind, asked);
    const failed = code === "server" ? (outages.get(kind) ?? 0) + 1 : 0;
    outages.set(kind, failed);
    if (failed < OUTAGE) return;
    pause(kind, backoff(OUTAGE_PAUSES, failed - OUTAGE + 1, runtime));
  }

  function refuse(scope: string, reason: string): void {
    const before = refused.get(scope);
    if (before !== undefined && !before.isOnTrial) return;
    const times = (before?.times ?? 0) + 1;
    refused.set(scope, {
      reason,
      times,
      untilMs: runtime.elapsed() + backoff(REFUSED, times),
      isOnTrial: false,
      isUndecided: false,
      undecidedTimes: 0,
      shownMs: before?.shownMs ?? Number.NEGATIVE_INFINITY,
    });
    options.onChange("state");
  }

  /** The scope let something be read: what was refused for it is tried now. Should the gateway refuse it all the same, not with each thing that is read. */
  function show(scope: Scope): void {
    const refusal = refused.get(scope);
    const now = runtime.elapsed();
    if (refusal === undefined || refusal.isOnTrial || now >= refusal.untilMs) return;
    if (now - refusal.shownMs < REFUSED.firstMs) return;
    refused.set(scope, { ...refusal, untilMs: now, shownMs: now });
    options.onChange("scopes");
  }

  const network: Network = {
    get isOnline() {
      return isOnline;
    },
    get offlineSince() {
      return offlineSince;
    },
    get loginNeeded() {
      return loginNeeded;
    },
    get doubt() {
      return doubt;
    },
    doubts(reason) {
      doubt = reason;
      options.onChange("state");
    },
    get mayExchange() {
      return mayExchange;
    },
    cannotExchange() {
      mayExchange = false;
    },
    mayRefer: (version) => !unreferable.has(version),
    cannotRefer(version) {
      unreferable.add(version);
    },
    forgetReference(version) {
      unreferable.delete(version);
    },
    pauseMs,
    may(scope) {
      if (scopes !== undefined && !scopes.has(scope)) return false;
      const refusal = refused.get(scope);
      return refusal === undefined || runtime.elapsed() >= refusal.untilMs;
    },
    get refusals() {
      const now = runtime.elapsed();
      return new Map([...refused].flatMap(([scope, { reason, untilMs }]) => (now < untilMs ? [[scope, reason]] : [])));
    },
    needs(needed) {
      for (const scope of needed) {
        const refusal = refused.get(scope);
        // Until its answer is here the others go on waiting.
        if (refusal === undefined || runtime.elapsed() < refusal.untilMs) continue;
        refused.set(scope, { ...refusal, untilMs: runtime.elapsed() + REFUSED.firstMs, isOnTrial: true });
      }
    },
    granted(needed) {
      if (refused.size === 0) return;
      const known = needed.filter((scope) => refused.delete(scope));
      if (known.length > 0) options.onChange("scopes");
    },
    undecided(needed) {
      for (const scope of needed) {
        const refusal = refused.get(scope);
        if (refusal?.isOnTrial !== true) continue;
        // Not at once: whoever looks then does not wait as he was told to, and may be the same one again.
        const undecidedTimes = refusal.undecidedTimes + 1;
        const waitMs = backoff(UNDECIDED, undecidedTimes);
        const untilMs = runtime.elapsed() + waitMs;
        refused.set(scope, { ...refusal, untilMs, isOnTrial: false, isUndecided: true, undecidedTimes });
        runtime.setTimer(waitMs, () => {
          if (refused.get(scope)?.untilMs === untilMs) options.onChange("scopes");
        });
      }
    },
    get isUndecided() {
      return [...refused.values()].some(({ isOnTrial, isUndecided }) => isOnTrial || isUndecided);
    },
    retry() {
      for (const [scope, refusal] of refused) refused.set(scope, { ...refusal, untilMs: runtime.elapsed() });
      outages.clear();
      pausedUntilMs.clear();
      options.onChange(refused.size > 0 ? "scopes" : "state");
    },
    get scopes() {
      return scopes;
    },
    tokenChanged(told) {
      scopes = told;
      refused.clear();
      options.onChange("token");
    },
    isThere: () => setState(true, loginNeeded),
    answered(shown = []) {
      outages.clear();
      setState(true, undefined);
      for (const scope of shown) show(scope);
    },
    failed(error) {
      if (!(error instanceof RemoteError)) return;
      if (error.code === "aborted") return;
      holdBack(error);
      if (error.code === "offline" || error.code === "silent") setState(false, loginNeeded);
      else if (error.code === "unauthorized") setState(true, error.message);
      else setState(true, loginNeeded);
      if (error.code !== "forbidden") return;
      const { scope, grant, operation } = error.details;
      if (scope !== undefined) refuse(scope, error.message);
      else if (grant !== undefined && kindOf(operation) === "changes") options.onLacksRole(grant);
    },
    patience(giveUp) {
      if (isOnline) return undefined;
      // Back by then, it is given the time of any other call.
      return runtime.setTimer(OFFLINE_PATIENCE_MS, () => {
        if (!isOnline) giveUp();
      });
    },
    async ask(signal, call) {
      const limit = new AbortController();
      const stop = () => limit.abort();
      signal.addEventListener("abort", stop, { once: true });
      const patience = network.patience(stop);
      try {
        if (signal.aborted) limit.abort();
        const answer = await call(limit.signal);
        network.answered();
        return answer;
      } catch (error) {
        network.failed(error);
        throw toFsError(error, signal);
      } finally {
        patience?.cancel();
        signal.removeEventListener("abort", stop);
      }
    },
  };
  return network;
}

/** Whether the gateway can be told to take the inode's content from the version it is. */
export function mayRefer(
  { client, network }: { readonly client: Pick<Client, "features">; readonly network: Network },
  { originVersion }: { readonly originVersion: string | null },
): boolean {
  return client.features.references && (originVersion === null || network.mayRefer(originVersion));
}

/** Without an operation it was none that changes anything. */
function kindOf(operation: OperationName = "getNode"): RequestKind {
  return isChange(operation) ? "changes" : operation;
}

function isChange(operation: OperationName): operation is ChangeName {
  return OPERATIONS[operation].method !== "GET";
}

/** How long the gateway asked to be left alone, milliseconds. */
export function retryAfterOf({ retryAfterMs }: RemoteError): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.min(RETRY_AFTER_MAX_MS, retryAfterMs);
}

/** What a program gets to hear of a failed call. */
export function toFsError(error: unknown, signal?: AbortSignal): FsError {
  if (error instanceof FsError) return error;
  if (signal?.aborted === true) return new FsError("EINTR", "interrupted", { cause: error });
  if (!(error instanceof RemoteError)) return new FsError("EIO", "unexpected failure", { cause: error });
  const code =
    error.code === "notFound"
      ? "ENOENT"
      : error.code === "forbidden" || error.code === "unauthorized"
        ? "EACCES"
        : error.code === "tooLarge"
          ? "EFBIG"
          : error.code === "overQuota"
            ? "EDQUOT"
            : "EIO";
  return new FsError(code, error.message, { cause: error });
}

/**
 * State of the gateway: whether it answers, the scopes of the token, and the pauses that follow from both. Every answer
 * and failure is reported here; flows ask before they wait.
 */
import type { Client } from "../../client/client.ts";
import { RemoteError, type RemoteErrorDetails } from "../../client/errors.ts";
import { OPERATIONS, type OperationName } from "../../contract/operations.ts";
import type { Scope } from "../../contract/scopes.ts";
import { backoff } from "../../lib/backoff.ts";
import { type ElapsedTime, minus, plus, type RowTime } from "../../lib/clocks.ts";
import type { Timer } from "../../lib/runtime.ts";
import { FsError } from "../api/index.ts";
import type { RowClockRuntime } from "./row-clock.ts";

/** While the gateway is known to be offline, a program waits no longer than this for an answer. */
export const OFFLINE_PATIENCE_MS = 1000;
/** Pauses between trials of a scope that was refused. */
const REFUSED = { firstMs: 5 * 60_000, maxMs: 60 * 60_000 };
/** Pauses after a trial that did not tell whether the scope is lacking. */
const UNDECIDED = { firstMs: 1_000, maxMs: REFUSED.firstMs };
/** After so many answers 5xx in a row the cause is not a single request. */
const OUTAGE = 8;
const OUTAGE_PAUSES = { firstMs: 1_000, maxMs: 30_000 };
/** The gateway is asked again after this, whatever Retry-After says. */
const RETRY_AFTER_MAX_MS = 5 * 60_000;

/** The requests that one answer pauses: all changes, or one kind of question. Other kinds may be answered meanwhile. */
type RequestKind = "changes" | Exclude<OperationName, ChangeName>;
type ChangeName = {
  [Name in OperationName]: (typeof OPERATIONS)[Name]["method"] extends "GET" ? never : Name;
}[OperationName];

export interface Network {
  readonly isOnline: boolean;
  /** Row time since which the gateway does not answer; undefined while it does. */
  readonly offlineSince: RowTime | undefined;
  /** The gateway's words when it refused the token. Nothing is sent until a token works again. */
  readonly loginNeeded: string | undefined;
  /** Why nothing at all must be sent: it is not confirmed that this is the gateway and the workspace of the mount. */
  readonly doubt: string | undefined;
  doubts(reason: string | undefined): void;
  /** Milliseconds for which no request of the kind is to be sent: the gateway said so, or fails every one. */
  pauseMs(kind: RequestKind): number;
  /** False: the token lacks the scope, or the gateway refused it not long ago. */
  may(scope: Scope): boolean;
  /** Scopes that were refused not long ago, each with the gateway's words. */
  readonly refusals: ReadonlyMap<string, string>;
  /**
   * A request that needs these scopes is about to be sent. If one of them was refused, this request is its only trial:
   * its answer counts for all others.
   */
  needs(scopes: readonly Scope[]): void;
  /** A request that needs these scopes succeeded. */
  granted(scopes: readonly Scope[]): void;
  /**
   * A request that needs these scopes ended without telling whether the token has them. If it was a trial, the next
   * request that needs the scope is the next trial, after a pause.
   */
  undecided(scopes: readonly Scope[]): void;
  /** False: the gateway was asked to exchange two nodes and did not understand. */
  readonly mayExchange: boolean;
  cannotExchange(): void;
  /** False: the gateway refused to take the content of this version for another node. The bytes are sent instead. */
  mayRefer(version: string): boolean;
  cannotRefer(version: string): void;
  /** A person wants the reference tried again, or no file has the version as its content any more. */
  forgetReference(version: string): void;
  /** A refused scope is being tried again, or its trial told nothing: it is not known whether the token lacks it. */
  readonly isUndecided: boolean;
  /** A person wants all that was refused or paused to be tried again. */
  retry(): void;
  /** The scopes that the token names; undefined: see createNetwork. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** Another token is in use. `scopes`: see createNetwork. */
  tokenChanged(scopes: ReadonlySet<string> | undefined): void;
  /** The gateway can be reached, whatever it answered. */
  isThere(): void;
  /** A request succeeded. `shown`: scopes that it needed, where one of them may have been refused before. */
  answered(shown?: readonly Scope[]): void;
  /** Takes note of a failed call. Anything but a RemoteError is ignored. */
  failed(error: unknown): void;
  /**
   * Limits how long a program waits. While the gateway is known to be offline, `giveUp` is called after a second,
   * unless the gateway has answered by then. Cancel the timer when the program does not wait any more.
   */
  patience(giveUp: () => void): Timer | undefined;
  /** Makes a call for a program, with that patience. Rejects with the FsError that toFsError makes. */
  ask<T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

interface Refusal {
  readonly reason: string;
  readonly until: ElapsedTime;
  /** Refusals in a row. */
  readonly times: number;
  /** A trial is under way. */
  readonly isOnTrial: boolean;
  /** The last trial told nothing of the scope. */
  readonly isUndecided: boolean;
  /** Trials in a row that told nothing. */
  readonly undecidedTimes: number;
  /** The last early trial, after another request that needs the scope succeeded. Undefined: there was none. */
  readonly shownAt: ElapsedTime | undefined;
}

/**
 * `scopes`: the scopes that the token names. Undefined: the token is opaque and counts as having every scope, until a
 * 403 says otherwise. `onChange`: called with "scopes" when a refused request may be tried now, with "token" when the
 * token was replaced, with "state" when anything else changed.
 */
export function createNetwork(
  runtime: RowClockRuntime,
  options: {
    scopes: ReadonlySet<string> | undefined;
    isOnline: boolean;
    /** A change was refused because the account lacks a role. */
    onLacksRole: (grant: NonNullable<RemoteErrorDetails["grant"]>) => void;
    onChange: (what: "state" | "scopes" | "token") => void;
  },
): Network {
  const refused = new Map<string, Refusal>();
  let { scopes } = options;
  let isOnline = options.isOnline;
  let offlineSince = isOnline ? undefined : runtime.now();
  let loginNeeded: string | undefined;
  const pausedUntil = new Map<RequestKind, ElapsedTime>();
  /** Answers 5xx in a row, by kind. */
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
    const until = pausedUntil.get(kind);
    return until === undefined ? 0 : Math.max(0, minus(until, runtime.elapsed()));
  }

  function pause(kind: RequestKind, milliseconds: number): void {
    pausedUntil.set(kind, plus(runtime.elapsed(), Math.max(pauseMs(kind), milliseconds)));
  }

  /**
   * Pauses the whole kind if the gateway asks for it, or after many failures in a row. A failure that all requests of
   * the kind meet must not be met anew for each node.
   */
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
      until: plus(runtime.elapsed(), backoff(REFUSED, times)),
      isOnTrial: false,
      isUndecided: false,
      undecidedTimes: 0,
      shownAt: before?.shownAt,
    });
    options.onChange("state");
  }

  /**
   * A request that needs the scope succeeded, so the requests that were refused for the scope are tried now. The
   * gateway may refuse them all the same. So this happens at most once per first pause, not with each further read.
   */
  function show(scope: Scope): void {
    const refusal = refused.get(scope);
    const now = runtime.elapsed();
    if (refusal === undefined || refusal.isOnTrial || now >= refusal.until) return;
    if (refusal.shownAt !== undefined && minus(now, refusal.shownAt) < REFUSED.firstMs) return;
    refused.set(scope, { ...refusal, until: now, shownAt: now });
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
      return refusal === undefined || runtime.elapsed() >= refusal.until;
    },
    get refusals() {
      const now = runtime.elapsed();
      return new Map([...refused].flatMap(([scope, { reason, until }]) => (now < until ? [[scope, reason]] : [])));
    },
    needs(needed) {
      for (const scope of needed) {
        const refusal = refused.get(scope);
        // Until the trial is answered, the others go on waiting.
        if (refusal === undefined || runtime.elapsed() < refusal.until) continue;
        refused.set(scope, { ...refusal, until: plus(runtime.elapsed(), REFUSED.firstMs), isOnTrial: true });
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
        // The next trial waits. Rows looked at at once would be tried before their own pauses end, and the first could
        // be the row of this trial again.
        const undecidedTimes = refusal.undecidedTimes + 1;
        const waitMs = backoff(UNDECIDED, undecidedTimes);
        const until = plus(runtime.elapsed(), waitMs);
        refused.set(scope, { ...refusal, until, isOnTrial: false, isUndecided: true, undecidedTimes });
        runtime.setTimer(waitMs, () => {
          if (refused.get(scope)?.until === until) options.onChange("scopes");
        });
      }
    },
    get isUndecided() {
      return [...refused.values()].some(({ isOnTrial, isUndecided }) => isOnTrial || isUndecided);
    },
    retry() {
      for (const [scope, refusal] of refused) refused.set(scope, { ...refusal, until: runtime.elapsed() });
      outages.clear();
      pausedUntil.clear();
      options.onChange(refused.size > 0 ? "scopes" : "state");
    },
    get scopes() {
      return scopes;
    },
    tokenChanged(newScopes) {
      scopes = newScopes;
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
      // If the gateway is back by then, the call gets the time of any other call.
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

/** True: the gateway can take the inode's content from its origin version, so that no bytes need to be sent. */
export function mayRefer(
  { client, network }: { readonly client: Pick<Client, "features">; readonly network: Network },
  { originVersion }: { readonly originVersion: string | null },
): boolean {
  return client.features.isFull && (originVersion === null || network.mayRefer(originVersion));
}

/** A failure without an operation counts as a failed read. */
function kindOf(operation: OperationName = "getNode"): RequestKind {
  return isChange(operation) ? "changes" : operation;
}

function isChange(operation: OperationName): operation is ChangeName {
  return OPERATIONS[operation].method !== "GET";
}

/** Milliseconds for which the gateway asked not to be called, at most RETRY_AFTER_MAX_MS. Undefined: it did not ask. */
export function retryAfterOf({ retryAfterMs }: RemoteError): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.min(RETRY_AFTER_MAX_MS, retryAfterMs);
}

/**
 * The error that a program gets for a failed call: EINTR when `signal` aborted; ENOENT, EACCES, EFBIG or EDQUOT as the
 * gateway's answer says; else EIO. An FsError stays as it is.
 */
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

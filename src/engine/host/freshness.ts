/**
 * The journal is live while all that it showed is applied, it was heard of a moment ago, and no time has passed
 * unnoticed since (as when the machine sleeps or the process is stopped). While it is live, the kernel is told of every
 * change and may trust answers for minutes; else for a second.
 */
import { HEARTBEAT_MS } from "../../contract/http.ts";
import { type ElapsedTime, millisecondsOf, minus, type WallTime } from "../../lib/clocks.ts";
import { inStep, type Runtime, type Timer } from "../../lib/runtime.ts";

/** Validity of answers while the journal is not live and the kernel cannot be told of remote changes. */
export const SHORT_MS = 1000;
/** Validity while the journal is live. It is limited because its end also repairs an invalidation that was lost. */
export const LIVE_MS = 5 * 60_000;
/**
 * Validity of names while the journal is live. A daemon may die after a remote removal was committed and before the
 * kernel was told. Its successor does not know of that name, so the name shows for this long.
 */
const LIVE_NAME_MS = 60_000;
/**
 * Three heartbeats of the gateway. The journal is not live after so long without a word from it, or with news that
 * waits to be applied.
 */
const SILENCE_MS = 3 * HEARTBEAT_MS;
const WATCH_MS = 5_000;
/** The wall clock and the monotonic clock may drift apart by this much between two looks. */
const DRIFT_MS = 2_000;
const SLEPT = "the machine slept, or its clock was set";

export interface Freshness {
  /** True while the journal is live. */
  isLive(): boolean;
  /** Returns how long the kernel may keep the attributes of an answer given now, in milliseconds. */
  validMs(): number;
  /** Returns how long the kernel may keep the name in an answer given now, in milliseconds. */
  nameValidMs(): number;
  /** Since when it is not live and why, for people; undefined while it is live. */
  readonly stale: { readonly since: WallTime; readonly why: string } | undefined;
  /** A heartbeat or a page of the journal came. */
  heard(): void;
  /** News came that is still to be applied. */
  came(): void;
  /** All the news that came was applied (`isAll`), or the oldest of it. */
  applied(isAll: boolean): void;
  /**
   * Called before the journal is asked. Its result is given to `caughtUp`, so that an answer to a request from before a
   * gap does not count.
   */
  asking(): number;
  /** All that the journal showed when it was asked is applied. `asked`: the result of `asking`. */
  caughtUp(asked: number): void;
  /** Earlier answers of the journal prove nothing any more. */
  lost(why: string): void;
  /** The journal was asked and the request failed. While the journal is not live, this is the reason shown. */
  inVain(why: string): void;
  /** `listener` is called when the journal stops being live. */
  onEnd(listener: () => void): void;
  start(): void;
  stop(): void;
}

export function createFreshness(runtime: Pick<Runtime, "wallClock" | "elapsed" | "setTimer">): Freshness {
  let isCaughtUp = false;
  let heardAt: ElapsedTime | undefined;
  /** The last time at which news began to wait or some of it was applied. Undefined: nothing waits. */
  let waitingSince: ElapsedTime | undefined;
  let lookedAt = runtime.elapsed();
  let offset = runtime.wallClock() - millisecondsOf(lookedAt);
  let stale: Freshness["stale"] = { since: runtime.wallClock(), why: "the journal has not been read yet" };
  let timer: Timer | undefined;
  let gaps = 0;
  let ended: () => void = () => {};

  /**
   * While the machine sleeps, the wall clock goes on and the monotonic one stops. This process looks every few seconds,
   * so a longer pause means that the process was stopped.
   */
  function hasSlept(): boolean {
    const elapsed = runtime.elapsed();
    const now = runtime.wallClock() - millisecondsOf(elapsed);
    const slept = Math.abs(now - offset) > DRIFT_MS || minus(elapsed, lookedAt) > 3 * WATCH_MS;
    offset = now;
    lookedAt = elapsed;
    return slept;
  }

  function end(why: string): void {
    isCaughtUp = false;
    gaps += 1;
    const wasLive = stale === undefined;
    stale = { since: stale?.since ?? runtime.wallClock(), why };
    if (wasLive) ended();
  }

  const isLongAgo = (time: ElapsedTime | undefined) =>
    time !== undefined && minus(runtime.elapsed(), time) > SILENCE_MS;

  function isLive(): boolean {
    if (hasSlept()) end(SLEPT);
    else if (isCaughtUp && isLongAgo(heardAt)) end("nothing is heard of the journal");
    else if (isCaughtUp && isLongAgo(waitingSince)) end("news of the journal cannot be read");
    return isCaughtUp;
  }

  function watch(): void {
    isLive();
    timer = runtime.setTimer(inStep(runtime, WATCH_MS), watch);
  }

  const validMs = () => (isLive() ? LIVE_MS : SHORT_MS);

  return {
    isLive,
    validMs,
    nameValidMs: () => Math.min(validMs(), LIVE_NAME_MS),
    get stale() {
      return isLive() ? undefined : stale;
    },
    heard() {
      if (hasSlept()) end(SLEPT);
      heardAt = runtime.elapsed();
    },
    came() {
      waitingSince ??= runtime.elapsed();
    },
    applied(isAll) {
      waitingSince = isAll ? undefined : runtime.elapsed();
    },
    asking: () => gaps,
    caughtUp(asked) {
      if (asked !== gaps) return;
      heardAt = runtime.elapsed();
      waitingSince = undefined;
      isCaughtUp = true;
      stale = undefined;
    },
    lost: end,
    inVain(why) {
      if (stale !== undefined) stale = { ...stale, why };
    },
    onEnd(listener) {
      ended = listener;
    },
    start: watch,
    stop: () => timer?.cancel(),
  };
}

/**
 * Whether the journal is live: everything it shows was applied, it was heard of a moment ago, and no
 * time has passed unnoticed since (the machine slept, the process stood still). While it is, the kernel
 * may remember for long what it is told, because it is told of every change; otherwise a second.
 */
import { HEARTBEAT_MS } from "../../contract/http.ts";
import { inStep, type Runtime, type Timer } from "../../lib/runtime.ts";

/** How long the kernel may keep what it was told while nobody can tell it of remote changes. */
export const SHORT_MS = 1000;
/** While the journal is live. Not for ever: a word to the kernel that was lost is made good after this. */
export const LIVE_MS = 5 * 60_000;
/**
 * The same of names that are there. A daemon that dies between a removal made elsewhere and its word to the
 * kernel leaves a name that its successor cannot know of: this is how long it shows.
 */
export const LIVE_NAME_MS = 60_000;
/** Without a word for so long (three heartbeats of the gateway), or without applying what it says, nobody knows. */
const SILENCE_MS = 3 * HEARTBEAT_MS;
const WATCH_MS = 5_000;
/** What two clocks may drift apart between two looks. */
const DRIFT_MS = 2_000;
const SLEPT = "the machine slept, or its clock was set";

export interface Freshness {
  /** Whether it is live now. */
  isLive(): boolean;
  /** Since when it is not, wall clock, and why, for people; undefined while it is. */
  readonly stale: { readonly since: number; readonly why: string } | undefined;
  /** Something came of the journal, a heartbeat or a page. */
  heard(): void;
  /** Something came that is to be applied. */
  came(): void;
  /** It was: all, or the oldest of it. */
  applied(isAll: boolean): void;
  /** Before the journal is asked: what `caughtUp` is given, so that an answer from before a gap counts for nothing. */
  asking(): number;
  /** Everything the journal showed when it was asked was applied. */
  caughtUp(asked: number): void;
  /** What was heard so far says nothing any more. */
  lost(why: string): void;
  /** The journal was asked in vain. While it is not live, this is why. */
  inVain(why: string): void;
  /** Called when it ends. */
  onEnd(listener: () => void): void;
  start(): void;
  stop(): void;
}

export function createFreshness(runtime: Pick<Runtime, "wallClock" | "elapsed" | "setTimer">): Freshness {
  let isCaughtUp = false;
  let heardAt = Number.NEGATIVE_INFINITY;
  /** Since when something waits, and nothing was applied. */
  let waitingSince = Number.POSITIVE_INFINITY;
  let lookedAt = runtime.elapsed();
  let offset = runtime.wallClock() - lookedAt;
  let stale: Freshness["stale"] = { since: runtime.wallClock(), why: "the journal has not been read yet" };
  let timer: Timer | undefined;
  let gaps = 0;
  let ended: () => void = () => {};

  /** The wall clock goes on while the machine sleeps, the other one does not; this process looks every few seconds. */
  function hasSlept(): boolean {
    const elapsed = runtime.elapsed();
    const now = runtime.wallClock() - elapsed;
    const slept = Math.abs(now - offset) > DRIFT_MS || elapsed - lookedAt > 3 * WATCH_MS;
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

  function isLive(): boolean {
    if (hasSlept()) end(SLEPT);
    else if (isCaughtUp && runtime.elapsed() - heardAt > SILENCE_MS) end("nothing is heard of the journal");
    else if (isCaughtUp && runtime.elapsed() - waitingSince > SILENCE_MS) end("what the journal tells cannot be read");
    return isCaughtUp;
  }

  function watch(): void {
    isLive();
    timer = runtime.setTimer(inStep(runtime, WATCH_MS), watch);
  }

  return {
    isLive,
    get stale() {
      return isLive() ? undefined : stale;
    },
    heard() {
      if (hasSlept()) end(SLEPT);
      heardAt = runtime.elapsed();
    },
    came() {
      waitingSince = Math.min(waitingSince, runtime.elapsed());
    },
    applied(isAll) {
      waitingSince = isAll ? Number.POSITIVE_INFINITY : runtime.elapsed();
    },
    asking: () => gaps,
    caughtUp(asked) {
      if (asked !== gaps) return;
      heardAt = runtime.elapsed();
      waitingSince = Number.POSITIVE_INFINITY;
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

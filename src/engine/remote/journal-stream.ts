/**
 * The journal as a stream: one connection on which the gateway tells each entry at once. After a break, the connection
 * is opened again after a pause. This file only collects entries. hear-journal.ts has them applied, and asks for pages
 * while there is no stream.
 */
import { hasNoStream } from "../../client/errors.ts";
import type { JournalEntry } from "../../contract/resources.ts";
import { backoff } from "../../lib/backoff.ts";
import { minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { Host, Kernel, Remote, Rows } from "../core/index.ts";

/** The most entries that are kept until they are applied. Further ones wait in the connection. */
const WAITING_MAX = 1_000;
/** The time between two looks for room. */
const FULL_MS = 100;
const PAUSES = { firstMs: 1_000, maxMs: 30_000 };
/** The end of a connection that lasted so long does not count as a failure. */
const LASTING_MS = 30_000;

export interface JournalStream {
  /** There is a connection, so news comes by itself. */
  readonly isOpen: boolean;
  /** The number of times that a connection opened or ended. */
  readonly changes: number;
  /** Entries that came and were not applied yet, oldest first. */
  readonly entries: readonly JournalEntry[];
  /** Call it when all entries up to this position are applied. */
  applied(upTo: number): void;
  /** Entries that came after one with a later position. If that is applied already, no page tells of these again. */
  readonly late: readonly JournalEntry[];
  /** Call it when the first `count` of the late entries are applied. */
  appliedLate(count: number): void;
  /**
   * Resolves when, since the last call, an entry came or the connection opened or ended; or when the signal aborts. One
   * call at a time. Never rejects.
   */
  news(signal: AbortSignal): Promise<void>;
  /** Makes a new connection at once. The present one may be dead without a sign. */
  renew(): void;
  start(): void;
  /** Resolves when the connection has ended. Never rejects: a connection that broke was logged. */
  stop(): Promise<void>;
}

/**
 * Resolves as `work` does, or to undefined once the signal aborts. Leaves no listener at the signal, which lasts as
 * long as the connection.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const abort = () => resolve(undefined);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** The stream connects after `start`. */
export function createJournalStream(context: Rows & Kernel & Remote & Host): JournalStream {
  const { client, runtime, metadata, network, fresh, workspace, log } = context;
  const stopped = new AbortController();
  let connection = new AbortController();
  let entries: JournalEntry[] = [];
  let late: JournalEntry[] = [];
  let isOpen = false;
  let changes = 0;
  /** There is news for the next call of `news`. */
  let isNews = false;
  let waiting: () => void = () => {};
  let loop: Promise<void> = Promise.resolve();
  let isOver = false;

  function wake(): void {
    isNews = true;
    waiting();
  }

  function news(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener("abort", done);
        waiting = () => {};
        isNews = false;
        resolve();
      };
      if (isNews || signal.aborted) return done();
      waiting = done;
      signal.addEventListener("abort", done, { once: true });
    });
  }

  /** Collects entries until the connection ends or breaks. Rejects when it breaks. */
  async function connect(signal: AbortSignal): Promise<void> {
    const onHeard = () => {
      fresh.heard();
      if (isOpen) return;
      isOpen = true;
      changes += 1;
      wake();
    };
    const begun = metadata.settings.getNumber("cursor");
    let position = begun;
    const stream = client.streamJournal(begun, { workspace: workspace.id, onHeard, signal });
    try {
      for (;;) {
        const next = await unlessAborted(stream.next(), signal);
        if (next === undefined || next.done === true) return;
        // Skips entries that a gateway repeats from before the asked position.
        if (next.value.position <= begun || next.value.position === position) continue;
        if (next.value.position < position) {
          log.warn({ entry: next.value, after: position }, "the stream of the journal told of a change out of order");
          late.push(next.value);
        } else {
          position = next.value.position;
          entries.push(next.value);
          fresh.came();
        }
        wake();
        while (entries.length + late.length >= WAITING_MAX && !signal.aborted) await sleep(runtime, FULL_MS, signal);
      }
    } finally {
      // The end of the generator may be long in coming on a broken connection, and does not matter.
      stream.return().catch(() => {});
      isOpen = false;
      changes += 1;
      entries = [];
      wake();
    }
  }

  async function run(): Promise<void> {
    for (let breaks = 1; !stopped.signal.aborted; ) {
      const begun = runtime.elapsed();
      connection = new AbortController();
      try {
        if (network.isOnline && network.loginNeeded === undefined) await connect(connection.signal);
      } catch (error) {
        if (hasNoStream(error)) {
          log.info({ err: error }, "the gateway has no stream of the journal: pages of it are asked for");
          return;
        }
        if (!connection.signal.aborted) log.debug({ err: error }, "the stream of the journal broke");
        // The pages of the journal show whether the gateway can be reached.
      }
      if (connection.signal.aborted && !stopped.signal.aborted) continue;
      const isLasting = minus(runtime.elapsed(), begun) >= LASTING_MS;
      if (isLasting) breaks = 1;
      await sleep(runtime, backoff(PAUSES, breaks, runtime), stopped.signal);
      if (network.isOnline && !isLasting) breaks += 1;
    }
  }

  function begin(): void {
    isOver = false;
    loop = run().finally(() => {
      isOver = true;
    });
  }

  return {
    get isOpen() {
      return isOpen;
    },
    get changes() {
      return changes;
    },
    get entries() {
      return entries;
    },
    get late() {
      return late;
    },
    appliedLate(count) {
      late = late.slice(count);
    },
    applied(upTo) {
      // Entries are compared by position, because a new connection may have replaced the list meanwhile.
      const left = entries.filter(({ position }) => position > upTo);
      if (left.length < entries.length) fresh.applied(left.length === 0);
      entries = left;
    },
    news,
    renew() {
      connection.abort();
      // A gateway that had no stream may have one now, for example for another token.
      if (isOver && !stopped.signal.aborted) begin();
    },
    start: begin,
    async stop() {
      stopped.abort();
      connection.abort();
      await loop;
    },
  };
}

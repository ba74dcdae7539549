/**
 * The requests that were read and are not answered yet, each with its caller, its start and its cancellation. One timer
 * serves all deadlines. This file knows neither the device nor the meaning of a request.
 */

import type { Caller, FsError, KernelNodeId } from "../engine/api/index.ts";
import { type ElapsedTime, minus } from "../lib/clocks.ts";
import type { Runtime, Timer } from "../lib/runtime.ts";
import type { Message } from "./message.ts";

export type Clock = Pick<Runtime, "elapsed" | "setTimer">;

/**
 * A request's data about its caller. A message of the device has all of them, a call of the library only those that the
 * library passes.
 */
export type Origin = Pick<Message, "id" | "nodeid" | "uid" | "gid" | "pid" | "answerable">;

/** A class, so that the signal is made on demand: an AbortController for each request costs more than most requests. */
export class InFlight<From extends Origin = Message> implements Caller {
  readonly name: string;
  readonly message: From;
  readonly request: unknown;
  /** When the request was read. */
  readonly started: ElapsedTime;
  /** False: it may take as long as the local disk does. */
  readonly hasDeadline: boolean;
  /** A number of its own among all requests that wait; set by the table. Undefined: it is in no table yet. */
  place: number | undefined;
  /** Set once, before the reply is sent. A later answer is dropped. */
  answered = false;
  interrupted = false;
  isAnsweredFromFile = false;
  /** Only for a READ, and only if the device can: see Caller. */
  answerFrom?: Caller["answerFrom"];
  #controller: AbortController | undefined;
  #reason: FsError | undefined;

  constructor(name: string, message: From, request: unknown, started: ElapsedTime, hasDeadline: boolean) {
    this.name = name;
    this.message = message;
    this.request = request;
    this.started = started;
    this.hasDeadline = hasDeadline;
  }

  /** Undefined once it is answered: the kernel does not resend it then, and another request may have its place. */
  get mark(): Caller["mark"] {
    return !this.answered && this.message.answerable && hasPlace(this) ? this : undefined;
  }

  get id(): number {
    return this.message.id;
  }

  get nodeid(): KernelNodeId {
    return this.message.nodeid;
  }

  get uid(): number {
    return this.message.uid;
  }

  get gid(): number {
    return this.message.gid;
  }

  get pid(): number {
    return this.message.pid;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Tells the handler to stop. Of several reasons the first stays. */
  cancel(reason: FsError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** True if the handler failed with this error because of `cancel`. */
  isCancellation(error: unknown): boolean {
    if (this.#reason === undefined) return false;
    if (error === this.#reason) return true;
    return error instanceof Error && (error.name === "AbortError" || error.cause === this.#reason);
  }
}

function hasPlace<T extends { place: number | undefined }>(request: T): request is T & { place: number } {
  return request.place !== undefined;
}

interface InFlightTable<From extends Origin = Message> {
  /** False when a request with this id is in flight already. */
  add(request: InFlight<From>): boolean;
  find(id: number): InFlight<From> | undefined;
  remove(request: InFlight<From>): void;
  /** Oldest first. */
  list(): InFlight<From>[];
  /** Resolves when the table is empty, at once if it is. */
  drained(): Promise<void>;
  /** No deadline fires after this. */
  stop(): void;
}

/**
 * Places count from `firstPlace`; lower ones belong to an earlier daemon. `onExpired` is called for each request that
 * was not removed within `deadlineMs` of its start. `onRemoved` is called for each removed request, with the
 * milliseconds it was in flight.
 */
export function createInFlightTable<From extends Origin = Message>(
  clock: Clock,
  deadlineMs: number,
  onExpired: (request: InFlight<From>) => void,
  onRemoved: (request: InFlight<From>, milliseconds: number) => void,
  firstPlace = 0,
): InFlightTable<From> {
  // In the order in which they came, which is also the order of their deadlines.
  const requests = new Map<number, InFlight<From>>();
  let waiters: (() => void)[] = [];
  let timer: Timer | undefined;
  let stopped = false;
  const freePlaces: number[] = [];
  let placesEnd = firstPlace;

  function sweep(): void {
    timer = undefined;
    const now = clock.elapsed();
    const due: InFlight<From>[] = [];
    let next: number | undefined;
    for (const request of requests.values()) {
      if (!request.hasDeadline) continue;
      const left = deadlineMs - minus(now, request.started);
      if (left > 0) {
        next = left;
        break;
      }
      due.push(request);
    }
    if (next !== undefined) arm(next);
    for (const request of due) onExpired(request);
  }

  /** An armed timer stays armed: waking up for nothing costs less than one timer for each request. */
  function arm(milliseconds: number): void {
    if (timer === undefined && !stopped) timer = clock.setTimer(Math.ceil(milliseconds), sweep);
  }

  return {
    add(request) {
      if (requests.has(request.id)) return false;
      requests.set(request.id, request);
      request.place = freePlaces.pop() ?? placesEnd++;
      if (request.hasDeadline) arm(deadlineMs);
      return true;
    },
    find: (id) => requests.get(id),
    remove(request) {
      if (requests.get(request.id) !== request) return;
      requests.delete(request.id);
      onRemoved(request, minus(clock.elapsed(), request.started));
      if (request.place !== undefined) freePlaces.push(request.place);
      if (requests.size > 0) return;
      const done = waiters;
      waiters = [];
      for (const resolve of done) resolve();
    },
    list: () => [...requests.values()],
    drained: () => (requests.size === 0 ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    stop() {
      stopped = true;
      timer?.cancel();
      timer = undefined;
    },
  };
}

/**
 * Running hashes: hashes of files whose bytes arrive in order, computed while they arrive. A hash that has begun cannot
 * change its thread, so one thread computes all, step by step in turn. It starts with the first step and is kept.
 */
import { Worker } from "node:worker_threads";
import type { FileHash, RunningHash } from "../lib/files.ts";
import { RUNNING_HASH_WORKER } from "./running-hash-worker.ts";

/** Bytes of a step. The message for a smaller one would cost more than it gains. */
const STEP = 4 * 1024 * 1024;

interface RunningHashes {
  begin(path: string): RunningHash;
  /** Ends the thread. Unfinished hashes reject, and so does every later `finish`. */
  close(): Promise<void>;
}

type Answer = { readonly id: number } & (FileHash | { readonly error: Error });

interface Waiter {
  readonly resolve: (hash: FileHash) => void;
  readonly reject: (reason: unknown) => void;
}

interface Thread {
  readonly worker: Worker;
  /** The promises of hashes that are being finished, by the id of the hash. */
  readonly waiting: Map<number, Waiter>;
  /** The error that ended the thread. Undefined: it runs. */
  lost: unknown;
}

export function createRunningHashes(): RunningHashes {
  let thread: Thread | undefined;
  let lastId = 0;
  let isClosed = false;

  function start(): Thread {
    const worker = new Worker(RUNNING_HASH_WORKER, { eval: true, name: "running hash", execArgv: [], env: {} });
    const started: Thread = { worker, waiting: new Map(), lost: undefined };
    worker.unref();
    worker.on("message", ({ id, ...answer }: Answer) => {
      const waiter = started.waiting.get(id);
      if ("hash" in answer) waiter?.resolve(answer);
      else waiter?.reject(Object.assign(new Error(answer.error.message), answer.error));
    });
    const lose = (why: unknown) => {
      started.lost ??= why;
      if (thread === started) thread = undefined;
      for (const { reject } of [...started.waiting.values()]) reject(started.lost);
    };
    worker.on("error", lose);
    worker.on("exit", (code) =>
      lose(isClosed ? closedError() : new Error(`the thread of running hashes ended by itself with code ${code}`)),
    );
    return started;
  }

  function begin(path: string): RunningHash {
    lastId += 1;
    const id = lastId;
    let reached = 0;
    /** The thread that has the state of this hash. If it ends, the hash is lost. */
    let mine: Thread | undefined;
    let failure: unknown;
    /** Never throws: if no thread can be started, `finish` rejects. */
    const goOn = (end: number | null) => {
      try {
        if (mine === undefined) {
          thread ??= start();
          mine = thread;
        }
        mine.worker.postMessage({ id, path, end });
      } catch (error) {
        failure = error;
      }
    };
    return {
      reach(end) {
        if (isClosed || end < reached + STEP) return;
        reached = end;
        goOn(end);
      },
      finish(signal) {
        if (signal?.aborted === true) return Promise.reject(signal.reason);
        if (isClosed) return Promise.reject(closedError());
        goOn(Number.POSITIVE_INFINITY);
        return mine === undefined || failure !== undefined ? Promise.reject(failure) : answerOf(mine, id, signal);
      },
      cancel() {
        if (mine !== undefined && mine.lost === undefined) goOn(null);
      },
    };
  }

  async function close(): Promise<void> {
    isClosed = true;
    await thread?.worker.terminate();
  }

  return { begin, close };
}

/** While a hash is being finished, the thread keeps the process alive. */
function answerOf({ worker, waiting, lost }: Thread, id: number, signal: AbortSignal | undefined): Promise<FileHash> {
  if (lost !== undefined) return Promise.reject(lost);
  return new Promise<FileHash>((resolve, reject) => {
    const abort = () => waiting.get(id)?.reject(signal?.reason);
    const done = () => {
      signal?.removeEventListener("abort", abort);
      waiting.delete(id);
      if (waiting.size === 0) worker.unref();
    };
    waiting.set(id, {
      resolve(hash) {
        done();
        resolve(hash);
      },
      reject(reason) {
        done();
        reject(reason);
      },
    });
    worker.ref();
    signal?.addEventListener("abort", abort, { once: true });
  });
}

function closedError(): Error {
  return new Error("the hashing threads have been closed");
}

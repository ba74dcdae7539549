/**
 * Threads that hash big files, so that the JS thread never waits for one. They start when first needed and are kept.
 * Idle threads do not keep the process alive. Files are hashed in the order of the requests, one per thread.
 */
import { Worker } from "node:worker_threads";
import type { FileHash, RunningHash } from "../lib/files.ts";
import { HASH_WORKER } from "./hash-worker.ts";
import { createRunningHashes } from "./running-hashes.ts";

export interface HashWorkers {
  /** Rejects with a system error, or with the signal's reason as soon as it aborts. */
  hash(path: string, signal?: AbortSignal): Promise<FileHash>;
  /** Begins a running hash, on another thread than those of `hash`. */
  beginHash(path: string): RunningHash;
  /** Ends the threads. Unfinished jobs reject, and so does every later call. */
  close(): Promise<void>;
}

interface Job {
  readonly path: string;
  /** One number. The thread stops when it is not 0. */
  readonly stop: SharedArrayBuffer;
  readonly resolve: (hash: FileHash) => void;
  readonly reject: (reason: unknown) => void;
}

type Answer = FileHash | { readonly error: Error } | { readonly stopped: true };

/** At most `limit` threads, and one for running hashes. */
export function createHashWorkers(limit = 2): HashWorkers {
  const waiting: Job[] = [];
  const idle: Worker[] = [];
  /** Every living thread, with its current job. */
  const workers = new Map<Worker, Job | undefined>();
  const running = createRunningHashes();
  let closed = false;

  function hash(path: string, signal?: AbortSignal): Promise<FileHash> {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      const done = () => signal?.removeEventListener("abort", abort);
      const job: Job = {
        path,
        stop: new SharedArrayBuffer(4),
        resolve: (value) => {
          done();
          resolve(value);
        },
        reject: (reason) => {
          done();
          reject(reason);
        },
      };
      // The promise rejects at once, and the thread's later answer has no effect. A job that still waits for a thread
      // keeps its turn, and the thread then stops before it reads a byte.
      const abort = () => {
        Atomics.store(new Int32Array(job.stop), 0, 1);
        job.reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      waiting.push(job);
      startWaiting();
    });
  }

  function startWaiting(): void {
    while (waiting.length > 0) {
      const worker = idle.pop() ?? (workers.size < limit ? start() : undefined);
      if (worker === undefined) return;
      const job = waiting.shift();
      if (job === undefined) return;
      workers.set(worker, job);
      worker.ref();
      worker.postMessage({ path: job.path, stop: job.stop });
    }
  }

  function start(): Worker {
    const worker = new Worker(HASH_WORKER, { eval: true, name: "hash", execArgv: [], env: {} });
    workers.set(worker, undefined);

    worker.on("message", (answer: Answer) => {
      const job = workers.get(worker);
      workers.set(worker, undefined);
      idle.push(worker);
      worker.unref();
      if ("error" in answer) job?.reject(Object.assign(new Error(answer.error.message), answer.error));
      else if ("hash" in answer) job?.resolve(answer);
      startWaiting();
    });
    worker.on("error", (error) => lose(worker, error));
    worker.on("exit", (code) => lose(worker, new Error(`a hashing thread ended by itself with code ${code}`)));
    return worker;
  }

  /** The thread has ended, perhaps because of its file. Its job rejects, and the next jobs get a new thread. */
  function lose(worker: Worker, error: unknown): void {
    const job = workers.get(worker);
    if (!workers.delete(worker)) return;
    const index = idle.indexOf(worker);
    if (index >= 0) idle.splice(index, 1);
    job?.reject(closed ? closedError() : error);
    if (!closed) startWaiting();
  }

  async function close(): Promise<void> {
    closed = true;
    for (const job of waiting.splice(0)) job.reject(closedError());
    await Promise.all([running.close(), ...Array.from(workers.keys(), (worker) => worker.terminate())]);
  }

  return { hash, beginHash: running.begin, close };
}

function closedError(): Error {
  return new Error("the hashing threads have been closed");
}

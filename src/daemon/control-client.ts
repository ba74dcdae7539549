/** A command's end of a daemon's control socket. Every wait has a limit, because people ask about daemons that hang. */

import { type IncomingMessage, request } from "node:http";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { z } from "zod";
import { connectSocket } from "../content/system-calls.ts";
import { TIMER_MAX_MS } from "../lib/runtime.ts";
import { ForeignSocket, openSocket } from "../lib/socket-address.ts";
import {
  type DrainProgress,
  type DrainRequest,
  type DrainResult,
  drainLine,
  errorReply,
  type MountStatus,
  mountStatus,
  type QueueItem,
  type QueueSums,
  queueLine,
  type ReloadRequest,
  type RetryResult,
  reloadReply,
  retryReply,
  type UnmountReply,
  unmountReply,
} from "./control-messages.ts";
import type { DaemonSocket } from "./runtime-folder.ts";

/** The daemon did not answer, or its answer is not a valid one. */
export class ControlError extends Error {
  override name = "ControlError";
}

/** The daemon answered with a refusal, and would answer the same again. */
export class Refusal extends ControlError {
  override name = "Refusal";
}

/** A daemon that is busy with a long synchronous step answers within this time; one that hangs never does. */
const SILENCE_LIMIT_MS = 10_000;
/**
 * The limit of an answer, or of one line of it. Where root asks, the answer comes from another user's process and may
 * never end.
 */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
/** A retry goes through the whole queue before it answers. */
const RETRY_LIMIT_MS = 120_000;
/**
 * Before it answers a reload, the daemon checks the next program and waits until the kernel has taken all
 * notifications.
 */
const RELOAD_LIMIT_MS = 60_000;

/** Rejects with a ControlError, as all functions here do. */
export async function getStatus(socket: DaemonSocket): Promise<MountStatus> {
  return parse(mountStatus, await exchange(socket, "GET", "/status"));
}

/** Passes on the sums, then at most `limit` items as they come. */
export async function getQueue(
  socket: DaemonSocket,
  limit: number,
  on: { sums(sums: QueueSums): unknown; item(item: QueueItem): unknown },
): Promise<void> {
  const response = await send(socket, "GET", `/queue?limit=${limit}`, undefined, SILENCE_LIMIT_MS);
  if (response.statusCode !== 200) throw await refusal(response);
  for await (const text of linesOf(response, "the list", () => SILENCE_LIMIT_MS)) {
    const line = parse(queueLine, text);
    if ("listed" in line) return;
    if ("sums" in line) await on.sums(line.sums);
    // In an item, an absent field and an undefined one mean the same.
    else await on.item(line.item as QueueItem);
  }
  throw new ControlError("the daemon ended before its list did");
}

/** Without `paths`: everything is tried again. */
export async function postRetry(socket: DaemonSocket, paths?: readonly string[]): Promise<RetryResult> {
  const body = paths === undefined ? {} : { paths };
  return parse(retryReply, await exchange(socket, "POST", "/queue/retry", body, RETRY_LIMIT_MS));
}

/** Resolves when the daemon begins to give way. Rejects with a Refusal while nothing has changed. */
export async function postReload(socket: DaemonSocket, body: ReloadRequest): Promise<void> {
  parse(reloadReply, await exchange(socket, "POST", "/reload", body, RELOAD_LIMIT_MS));
}

/** `silenceMs`: the time that the daemon may take to detach and to finish the last writes of programs. */
export async function postUnmount(socket: DaemonSocket, silenceMs: number): Promise<UnmountReply> {
  return parse(unmountReply, await exchange(socket, "POST", "/unmount", undefined, silenceMs));
}

/**
 * Resolves with the daemon's result. Rejects when the daemon ends before, and when no result came some time after
 * `timeoutMs`.
 */
export async function postDrain(
  socket: DaemonSocket,
  body: DrainRequest,
  onProgress: (progress: DrainProgress) => void,
  signal?: AbortSignal,
): Promise<DrainResult> {
  const end = performance.now() + (body.timeoutMs ?? Number.POSITIVE_INFINITY) + SILENCE_LIMIT_MS;
  const response = await send(socket, "POST", "/drain", body, SILENCE_LIMIT_MS, signal);
  if (response.statusCode !== 200) throw await refusal(response);
  for await (const text of linesOf(response, "the drain", () => Math.max(0, end - performance.now()))) {
    const line = parse(drainLine, text);
    if ("result" in line) return line.result;
    onProgress(line.progress as DrainProgress);
  }
  throw new ControlError("the daemon ended before the drain did");
}

/** `limitMs`: how long the next line may take. The time the reader takes between two lines does not count. */
async function* linesOf(response: IncomingMessage, what: string, limitMs: () => number): AsyncGenerator<string> {
  const lines = createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  let isSilent = false;
  let sinceLine = 0;
  response.on("data", (chunk: Buffer) => {
    const end = chunk.lastIndexOf(10);
    sinceLine = end < 0 ? sinceLine + chunk.length : chunk.length - end - 1;
    if (sinceLine > ANSWER_MAX_BYTES) response.destroy(tooLong());
  });
  for (;;) {
    const silent = setTimeout(
      () => {
        isSilent = true;
        response.destroy(notAnswering(SILENCE_LIMIT_MS));
      },
      Math.min(limitMs(), TIMER_MAX_MS),
    );
    try {
      const next = await lines.next();
      if (next.done === true) return;
      clearTimeout(silent);
      yield next.value;
    } catch (cause) {
      throw isSilent ? notAnswering(SILENCE_LIMIT_MS) : new ControlError(`the daemon broke ${what} off`, { cause });
    } finally {
      clearTimeout(silent);
    }
  }
}

function notAnswering(forMs: number): ControlError {
  return new ControlError(`the daemon does not answer (for ${forMs / 1000} s)`);
}

async function exchange(
  socket: DaemonSocket,
  method: string,
  path: string,
  body?: object,
  silenceMs = SILENCE_LIMIT_MS,
): Promise<string> {
  const response = await send(socket, method, path, body, silenceMs);
  if (response.statusCode !== 200) throw await refusal(response);
  return readAll(response);
}

function send(
  socket: DaemonSocket,
  method: string,
  path: string,
  body: object | undefined,
  silenceMs: number,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const connection = connect(socket);
    const options = { createConnection: () => connection, method, path };
    const call = request({ ...options, ...(signal === undefined ? {} : { signal }) });
    const silent = setTimeout(() => {
      call.destroy(notAnswering(silenceMs));
    }, silenceMs);
    call.once("response", (response) => {
      clearTimeout(silent);
      resolve(response);
    });
    call.once("error", (error) => {
      clearTimeout(silent);
      reject(error instanceof ControlError ? error : new ControlError(whyNot(error), { cause: error }));
    });
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The peer must be a process of the user whose daemon is asked: in another user's folder, root may find any socket. */
function connect({ path, owner }: DaemonSocket): Socket {
  try {
    const place = openSocket(path, owner);
    try {
      const { fd, user } = connectSocket(place.fd);
      const connection = new Socket({ fd });
      if (user === owner) return connection;
      connection.destroy();
      throw new ForeignSocket(`a process of user ${user} listens at ${path}, expected one of user ${owner}`);
    } finally {
      place.close();
    }
  } catch (cause) {
    throw new ControlError(whyNot(cause as NodeJS.ErrnoException), { cause });
  }
}

function whyNot(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT" || error.code === "ECONNREFUSED") return "the daemon does not listen";
  if (error.code === "EACCES" || error.code === "EPERM") return "the daemon belongs to another user";
  return `the daemon cannot be asked: ${error.message}`;
}

async function refusal(response: IncomingMessage): Promise<Refusal> {
  return new Refusal(`the daemon refused: ${parse(errorReply, await readAll(response)).error}`);
}

/** Reads the whole body. A daemon sends the rest at once when it has begun to send. */
async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const silent = setTimeout(() => response.destroy(notAnswering(SILENCE_LIMIT_MS)), SILENCE_LIMIT_MS);
  try {
    for await (const chunk of response) {
      chunks.push(chunk as Buffer);
      length += (chunk as Buffer).length;
      if (length > ANSWER_MAX_BYTES) throw tooLong();
    }
  } catch (cause) {
    throw cause instanceof ControlError ? cause : new ControlError("the daemon ended while it answered", { cause });
  } finally {
    clearTimeout(silent);
  }
  return Buffer.concat(chunks).toString();
}

function tooLong(): ControlError {
  return new ControlError(`the daemon's answer is longer than ${ANSWER_MAX_BYTES / 1024 ** 2} MiB`);
}

function parse<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ControlError("the daemon's answer has an unexpected form; is it of another release?", { cause });
  }
}

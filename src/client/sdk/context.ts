/**
 * The common part of all groups: the calls of one request each, loaded when first needed, and the retries around them.
 */
import type { Client } from "../client.ts";
import { RemoteError } from "../errors.ts";
import type { Retrier, RunOptions } from "./retry.ts";

/** Options of every call. */
export interface RequestOptions {
  /** Aborting it ends the call with the RemoteError "aborted". */
  readonly signal?: AbortSignal | undefined;
  /** False: the call is sent once, whatever happens. */
  readonly retries?: false | undefined;
}

/** Options of every write. */
export interface WriteOptions extends RequestOptions {
  /**
   * The gateway recognises a repeated write by this key. By default each write gets a new one, which makes retries
   * safe. To repeat a write after a crash, give a key of your own and keep it. "invalid" (field "idempotencyKey"): the
   * key was used for another write.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface Context {
  /** The calls of one request each. */
  readonly load: () => Promise<Client>;
  readonly retrier: Retrier;
  readonly uuid: () => string;
  /** The default workspace of calls by path and of the journal. */
  readonly workspace: string | undefined;
}

export function read<T>(context: Context, options: RequestOptions, call: (client: Client) => Promise<T>): Promise<T> {
  return context.retrier.run("read", async () => call(await context.load()), options);
}

/**
 * A write with its key: the caller's, or one that all its tries share. A plain gateway knows keys of uploads only. It
 * would carry out any other repeated write twice, so none is repeated there.
 */
export async function write<T>(
  context: Context,
  what: "upload" | "change",
  options: WriteOptions & RunOptions,
  call: (client: Client, idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const client = await context.load();
  const key = options.idempotencyKey ?? context.uuid();
  const safety = what === "upload" || client.features.isFull ? "keyed" : "unkeyed";
  return context.retrier.run(safety, () => call(client, key), options);
}

/** A removal, which has no key. If it is repeated because its answer was lost, "notFound" means that it was done. */
export async function removed(
  context: Context,
  options: RequestOptions,
  call: (client: Client) => Promise<void>,
): Promise<void> {
  let tried = 0;
  await read(context, options, async (client) => {
    tried += 1;
    try {
      await call(client);
    } catch (error) {
      if (tried === 1 || !(error instanceof RemoteError) || error.code !== "notFound") throw error;
    }
  });
}

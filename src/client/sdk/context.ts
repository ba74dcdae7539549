/** What all groups of calls share: the calls of one request each, loaded when first needed, and the retries around them. */
import type { Client } from "../client.ts";
import { RemoteError } from "../errors.ts";
import type { Retrier, RunOptions } from "./retry.ts";

/** What every call takes. */
export interface RequestOptions {
  /** Aborting it ends the call with the RemoteError "aborted". */
  readonly signal?: AbortSignal | undefined;
  /** False: sent once, whatever happens. */
  readonly retries?: false | undefined;
}

/** What every write takes. */
export interface WriteOptions extends RequestOptions {
  /**
   * Names the write, so that the gateway knows it when it comes again. Made when none is given, so
   * that retries are safe; give your own (and keep it) to repeat the write after a crash.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface Context {
  /** The calls of one request each. */
  readonly load: () => Promise<Client>;
  readonly retrier: Retrier;
  readonly uuid: () => string;
  /** Default of what names the workspace in calls by path and of the journal. */
  readonly workspace: string | undefined;
}

export function read<T>(context: Context, options: RequestOptions, call: (client: Client) => Promise<T>): Promise<T> {
  return context.retrier.run("read", async () => call(await context.load()), options);
}

/** Whether the gateway knows a write of its kind again by its key. */
export type Keys = "uploadKeys" | "folderKeys" | "changeKeys";

/** A write with its key: the caller's, or one that all its tries share. A gateway without such keys would do a repeated one twice. */
export async function write<T>(
  context: Context,
  keys: Keys,
  options: WriteOptions & RunOptions,
  call: (client: Client, idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const client = await context.load();
  const key = options.idempotencyKey ?? context.uuid();
  const safety = client.features[keys] ? "keyed" : "unkeyed";
  return context.retrier.run(safety, () => call(client, key), options);
}

/** A removal that has no key: of one that is repeated since its answer was lost, "not found" says that it is done. */
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

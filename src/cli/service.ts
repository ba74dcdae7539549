/**
 * Shared by the commands of engines, executions, keys, triggers and workspaces: the gateway of the sign-in, and output.
 */
import { connect, type Gateway, type Page, type Paged } from "../client/index.ts";
import type { OperationName } from "../contract/operations.ts";
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import { scopesOf, signedIn } from "./signed-in.ts";
import { table, terminalWidth } from "./table.ts";

interface Given {
  readonly env: string | undefined;
  readonly workspace?: string | undefined;
}

/** Opens a gateway with a token for just these operations and the scopes in `more`. Rejects with a Failure. */
export async function atGateway<T>(
  values: Given,
  operations: readonly OperationName[],
  use: (gateway: Gateway) => Promise<T>,
  more: readonly string[] = [],
): Promise<T> {
  const at = chooseEnvironment(values.env);
  const workspace = values.workspace ?? at.workspace;
  const scopes = [...new Set([...(await scopesOf(at, operations)), ...more])];
  const credentials = await signedIn(at, { scopes, workspace });
  return withGateway(connect({ baseUrl: at.baseUrl, credentials, workspace }), use);
}

/** Closes the gateway in the end. A refusal becomes a Failure of one line. */
export async function withGateway<T>(gateway: Gateway, use: (gateway: Gateway) => Promise<T>): Promise<T> {
  try {
    return await use(gateway);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    if (isWorkspaceMissing(cause)) {
      throw new Failure("which workspace? --workspace names one; wsfs workspaces lists them", EXIT.usage, { cause });
    }
    throw new Failure(lineOf(cause), EXIT.failure, { cause });
  } finally {
    await gateway.close();
  }
}

function isWorkspaceMissing(error: unknown): boolean {
  return (
    error instanceof Error && "field" in error && error.field === "workspace" && Reflect.get(error, "status") === 400
  );
}

export interface ListLook<T> {
  readonly json: boolean;
  readonly heads: readonly string[];
  readonly row: (item: T) => readonly string[];
  /** Printed when the list is empty. */
  readonly none: string;
  /** The largest number of items. 0 or absent: all. */
  readonly limit?: number;
}

/** Prints a line of JSON for each item, or a table. Returns the last page that it asked for. */
export async function printList<T, P extends Page<T>>(list: Paged<T, P>, look: ListLook<T>): Promise<P | undefined> {
  const { json, heads, row, none, limit = 0 } = look;
  const items: T[] = [];
  let page: P | undefined;
  for await (page of list.pages()) {
    const some = limit === 0 ? page.items : page.items.slice(0, limit - items.length);
    items.push(...some);
    if (json) process.stdout.write(some.map((item) => `${JSON.stringify(item)}\n`).join(""));
    if (limit > 0 && items.length >= limit) break;
  }
  if (json) return page;
  process.stdout.write(items.length === 0 ? `${none}\n` : table(heads, items.map(row), terminalWidth()));
  const more = (page?.totalCount ?? 0) - items.length;
  if (more > 0) process.stderr.write(`${more} more; --limit 0 shows all\n`);
  return page;
}

/** Prints one line of JSON, or the text. Returns the exit code 0. */
export function print(json: boolean, value: unknown, text: string): number {
  process.stdout.write(json ? `${JSON.stringify(value)}\n` : text);
  return EXIT.ok;
}

/** The value of --input: JSON, @FILE or - for standard input. Rejects with a Failure. */
export async function inputOf(given: string | undefined): Promise<unknown> {
  if (given === undefined) return undefined;
  const { readFileSync } = await import("node:fs");
  let text = given;
  if (given === "-" || given.startsWith("@")) {
    const path = given === "-" || given === "@-" ? 0 : given.slice(1);
    try {
      text = readFileSync(path, "utf8");
    } catch (cause) {
      const why = (cause as NodeJS.ErrnoException).code;
      throw new Failure(`--input: ${given} cannot be read (${why})`, EXIT.failure, { cause });
    }
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure(`--input: expected JSON, @FILE or - (${(cause as Error).message})`, EXIT.usage, { cause });
  }
}

/** The name of the account; "" if there is none. */
export function showAuthor(by: { readonly account: string | null } | null): string {
  return by?.account ?? "";
}

/** What the commands of engines, executions, keys, triggers and workspaces share: a gateway one is signed in to, and output. */
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

/** A gateway whose token is good for these operations, and further scopes (`more`), and nothing else. */
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

/** Closes it in the end; what it refuses is said in one line. */
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
  /** Said where there are none. */
  readonly none: string;
  /** How many at most; 0 or absent: all. */
  readonly limit?: number;
}

/** A line of JSON for each, or a table. */
export async function printList<T>(list: Paged<T>, look: ListLook<T>): Promise<void> {
  const { json, heads, row, none, limit = 0 } = look;
  const items: T[] = [];
  let page: Page<T> | undefined;
  for await (page of list.pages()) {
    const some = limit === 0 ? page.items : page.items.slice(0, limit - items.length);
    items.push(...some);
    if (json) process.stdout.write(some.map((item) => `${JSON.stringify(item)}\n`).join(""));
    if (limit > 0 && items.length >= limit) break;
  }
  if (json) return;
  process.stdout.write(items.length === 0 ? `${none}\n` : table(heads, items.map(row), terminalWidth()));
  const more = (page?.totalCount ?? 0) - items.length;
  if (more > 0) process.stderr.write(`${more} more; --limit 0 shows all\n`);
}

/** One line of JSON, or the text. */
export function print(json: boolean, value: unknown, text: string): number {
  process.stdout.write(json ? `${JSON.stringify(value)}\n` : text);
  return EXIT.ok;
}

/** The value of --input: JSON, @FILE or - for standard input. */
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

/** Who did it, in words. */
export function showAuthor(by: { readonly account: string | null } | null): string {
  return by?.account ?? "";
}

/**
 * `wsfs call METHOD PATH`: any call of the gateway, with a token for just the scopes that the operation needs. The body
 * goes to standard output as it comes.
 */
import { createWriteStream, openAsBlob, readFileSync } from "node:fs";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { findOperation, type OperationName } from "../contract/operations.ts";
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import type { Values } from "./options.ts";
import { scopesOf, signedIn } from "./signed-in.ts";
import { printable } from "./wording.ts";

export async function call(values: Values<"call">): Promise<number> {
  const at = chooseEnvironment(values.env);
  const method = values.positionals.METHOD.toUpperCase();
  if (!/^[A-Z]+$/.test(method)) {
    throw new Failure(`call: expected a method such as GET, got "${values.positionals.METHOD}"`, EXIT.usage);
  }
  const url = addressOf(at.baseUrl, values.positionals.PATH, values.query);
  const scopes =
    values["call-scope"].length > 0
      ? values["call-scope"]
      : await scopesOf(at, [operationOf(method, url.pathname.slice(new URL(at.baseUrl).pathname.length - 1))]);
  const { body, headers } = await bodyOf(values);
  const workspace = values.workspace ?? at.workspace;
  try {
    const credentials = await signedIn(at, { scopes, workspace });
    const send = async (token: string) =>
      fetch(url, {
        method,
        headers: { accept: "application/json", ...headers, authorization: `Bearer ${token}` },
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
    const token = await credentials.token();
    let answer = await send(token);
    const fresh = answer.status === 401 ? await credentials.renew(token) : undefined;
    if (fresh !== undefined) answer = await send(fresh);
    await print(answer, values);
    return exitCodeOf(answer.status);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    // The error of fetch only says that it failed. The reason is in its cause.
    const inner = cause instanceof TypeError && cause.cause instanceof Error ? cause.cause : cause;
    throw new Failure(`${method} ${url.pathname}: ${lineOf(inner)}`, EXIT.failure, { cause });
  }
}

/** Exit codes for scripts: 4 for a fault of the caller (4xx), 5 for a fault of the gateway (5xx). */
function exitCodeOf(status: number): number {
  return status < 400 ? EXIT.ok : status < 500 ? 4 : 5;
}

function addressOf(baseUrl: string, path: string, query: readonly { name: string; value: string }[]): URL {
  if (!path.startsWith("/"))
    throw new Failure(`call: expected a path such as /v1/workspaces, got "${path}"`, EXIT.usage);
  const url = new URL(`${baseUrl}${path}`);
  for (const { name, value } of query) url.searchParams.append(name, value);
  return url;
}

function operationOf(method: string, path: string): OperationName {
  const operation = findOperation(method, path);
  if (operation !== undefined) return operation;
  throw new Failure(`call: ${method} ${path} is unknown to this release: name its scope with --scope`, EXIT.usage);
}

async function bodyOf({ body: data, form }: Values<"call">) {
  if (data !== undefined && form.length > 0) throw new Failure("call: --data or --form, not both", EXIT.usage);
  if (data !== undefined) {
    const text = data.startsWith("@") ? readText("--data", data.slice(1)) : data;
    try {
      JSON.parse(text);
    } catch (cause) {
      throw new Failure(`--data: expected JSON (${(cause as Error).message})`, EXIT.usage, { cause });
    }
    return { body: text, headers: { "content-type": "application/json" } };
  }
  if (form.length === 0) return { body: undefined, headers: {} };
  const fields = new FormData();
  for (const { name, value } of form) {
    if (!value.startsWith("@")) fields.append(name, value);
    else fields.append(name, await fileOf(value.slice(1)), "file");
  }
  return { body: fields, headers: {} };
}

function readText(flag: string, path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (cause) {
    throw new Failure(`${flag}: ${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, {
      cause,
    });
  }
}

async function fileOf(path: string): Promise<Blob> {
  try {
    return path === "-" ? new Blob([readFileSync(0)]) : await openAsBlob(path);
  } catch (cause) {
    throw new Failure(`--form: ${path} cannot be read`, EXIT.failure, { cause });
  }
}

async function print(answer: Response, { include, output, stream }: Values<"call">): Promise<void> {
  if (include) {
    const headers = [...answer.headers].map(([name, value]) => `${name}: ${printable(value)}\n`);
    process.stdout.write(`HTTP ${answer.status} ${answer.statusText}\n${headers.join("")}\n`);
  }
  if (answer.body === null) return;
  const body = Readable.fromWeb(answer.body);
  // A refusal is for the person, so it does not go to the file.
  const target = output === undefined || answer.status >= 400 ? process.stdout : createWriteStream(output);
  if (stream && answer.headers.get("content-type")?.startsWith("text/event-stream") === true) {
    await printEvents(body, target);
    return;
  }
  await pipeline(body, async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) await written(target, chunk);
  });
  if (answer.headers.get("content-type")?.includes("json") === true && target === process.stdout) target.write("\n");
  if (target !== process.stdout) await new Promise<void>((resolve) => target.end(resolve));
}

/** Prints the data of each event on a line of its own. */
async function printEvents(body: Readable, target: Writable): Promise<void> {
  const { createParser } = await import("eventsource-parser");
  const lines: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => void lines.push(data) });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    for (const line of lines.splice(0)) await written(target, `${line.replaceAll("\n", " ")}\n`);
  }
}

function written(target: Writable, chunk: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    target.write(chunk, (error) => (error == null ? resolve() : reject(error)));
  });
}

/**
 * One call of an operation. It builds the request from the contract's table, adds the token, asks for a fresh token
 * once after a 401, and turns every failure into a RemoteError. It knows neither sockets nor the meaning of operations.
 */
import type { z } from "zod";
import type { HttpAnswer, HttpRequest, Transport } from "../contract/http.ts";
import { OPERATIONS, type OperationName, operationPath } from "../contract/operations.ts";
import type { WallTime } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import { unlessAborted } from "../lib/single-flight.ts";
import { malformed, readJson, readProblem, transportFailure } from "./answers.ts";
import { type Credentials, checkToken } from "./credentials.ts";
import { RemoteError } from "./errors.ts";
import type { GatewayClock } from "./gateway-clock.ts";

export interface Call {
  readonly operation: OperationName;
  /** Values for the `{name}`s of the path. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: HttpRequest["body"];
  readonly signal?: AbortSignal | undefined;
  /** See HttpRequest. */
  readonly takesLoans?: boolean | undefined;
  /** Statuses besides 2xx that are no errors. */
  readonly accept?: readonly number[];
}

/** Resolves with a successful answer, its body unread. Rejects with a RemoteError. */
export type Send = (call: Call) => Promise<HttpAnswer>;

interface CallEnvironment {
  readonly transport: Transport;
  readonly credentials: Credentials;
  readonly log: Logger;
  /** Wall clock, milliseconds. */
  readonly now: () => WallTime;
  readonly gatewayClock: GatewayClock;
  /** See ClientOptions. */
  readonly mount?: string | undefined;
  /** See ClientOptions. */
  readonly onRefusal?: (() => void) | undefined;
}

export function createSend(environment: CallEnvironment): Send {
  const { transport, credentials, log, now, gatewayClock, onRefusal, mount } = environment;

  const attempt = async (call: Call, token: string): Promise<HttpAnswer> => {
    const request = buildRequest(call, token, mount);
    const start = now();
    try {
      const answer = await transport.send(request);
      gatewayClock.hear(answer.headers.date);
      log.debug(
        { operation: call.operation, path: request.path, status: answer.status, ms: now() - start },
        "gateway answered",
      );
      return answer;
    } catch (error) {
      const failure = transportFailure(error, call.operation);
      log.debug(
        { operation: call.operation, path: request.path, code: failure.code, ms: now() - start },
        `no answer of the gateway: ${failure.message}`,
      );
      throw failure;
    }
  };

  return async (call) => {
    const token = checkToken(await askCredentials(() => credentials.token(), call), "token");
    let used = token;
    const conceal = (text: string) => withoutTokens(text, token === used ? [token] : [token, used]);
    try {
      let answer = await attempt(call, token);
      if (answer.status === 401) {
        // A call that was refused for its token had no effect, so it may be repeated.
        const refusal = await readProblem(answer, call.operation, now, conceal);
        onRefusal?.();
        const fresh = await askCredentials(() => credentials.renew(token), call);
        if (fresh === undefined || fresh === token || isSpent(call)) throw refusal;
        used = checkToken(fresh, "token");
        answer = await attempt(call, used);
      }
      const isSuccess = answer.status >= 200 && answer.status < 300;
      if (isSuccess || call.accept?.includes(answer.status) === true) return answer;
      throw await readProblem(answer, call.operation, now, conceal);
    } catch (error) {
      throw concealed(error, conceal);
    }
  };
}

/**
 * Sends the call and checks its answer's JSON. `faultOf` returns any further fault of the answer, in words; it becomes
 * a "malformed".
 */
export async function askJson<T extends z.ZodType>(
  send: Send,
  call: Call,
  schema: T,
  faultOf?: (value: z.infer<T>) => string | undefined,
): Promise<z.infer<T>> {
  const answer = await send(call);
  const value = await readJson(answer, schema, call.operation);
  const fault = faultOf?.(value);
  if (fault !== undefined) throw malformed(call.operation, answer, fault);
  return value;
}

function buildRequest(call: Call, token: string, mount: string | undefined): HttpRequest {
  const { operation, parameters = {}, body, signal, takesLoans } = call;
  for (const [field, value] of Object.entries(parameters)) {
    // Proxies and the gateway would take these values for another path.
    const isPath = field === "path"; // its names were checked; "" is the root
    if ((value === "" && !isPath) || value === "." || value === ".." || !value.isWellFormed()) {
      throw new RemoteError(
        "invalid",
        `${operation}: ${field}: expected an id or a name, got ${JSON.stringify(value)}`,
        { field, isUnsent: true },
      );
    }
  }
  const query: Record<string, string> = {};
  for (const [key, value] of Object.entries(call.query ?? {})) if (value !== undefined) query[key] = String(value);
  const headers: Record<string, string> = { accept: "application/json", "user-agent": "wsfs" };
  if (mount !== undefined) headers["wsfs-mount"] = mount;
  for (const [name, value] of Object.entries(call.headers ?? {})) if (value !== undefined) headers[name] = value;
  headers.authorization = `Bearer ${token}`;
  return {
    method: OPERATIONS[operation].method,
    path: operationPath(operation, parameters),
    query,
    headers,
    ...(body === undefined ? undefined : { body }),
    ...(signal === undefined ? undefined : { signal }),
    ...(takesLoans === undefined ? undefined : { takesLoans }),
  };
}

/** Asks the credentials. Their error becomes "unauthorized", unless it is a RemoteError. */
async function askCredentials<T>(ask: () => Promise<T>, call: Call): Promise<T> {
  throwIfAborted(call);
  const { signal } = call;
  try {
    // A program that gives the token may take long, so an abort does not wait for it.
    return await (signal === undefined ? ask() : unlessAborted(ask(), signal, () => aborted(call)));
  } catch (cause) {
    if (cause instanceof RemoteError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RemoteError("unauthorized", `${call.operation}: no token: ${reason}`, { cause });
  } finally {
    throwIfAborted(call);
  }
}

/** True if the content was read and cannot be read again. */
function isSpent({ body }: Call): boolean {
  return body?.kind === "upload" && body.content.isSpent?.() === true;
}

function throwIfAborted(call: Call): void {
  if (call.signal?.aborted === true) throw aborted(call);
}

function aborted({ operation, signal }: Call): RemoteError {
  return new RemoteError("aborted", `${operation}: the call was aborted`, { isUnsent: true, cause: signal?.reason });
}

/** A gateway may echo a token in its answer, so tokens are removed from texts. */
function withoutTokens(text: string, tokens: readonly string[]): string {
  return tokens.reduce((rest, token) => rest.replaceAll(token, "[token]"), text);
}

function concealed(error: unknown, conceal: (text: string) => string): unknown {
  if (!(error instanceof RemoteError)) return error;
  const message = conceal(error.message);
  const requestId = error.requestId === undefined ? undefined : conceal(error.requestId);
  if (message === error.message && requestId === error.requestId) return error;
  return new RemoteError(error.code, message, { ...error.details, ...(requestId === undefined ? {} : { requestId }) });
}

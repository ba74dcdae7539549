/**
 * A request and an answer as the core sees them, without sockets. `server.ts` translates from
 * HTTP; tests and the simulation make them by hand.
 */

import type { BodyOf, QueryOf } from "../contract/inputs.ts";
import type { OperationName, ParameterOf } from "../contract/operations.ts";
import type { Caller } from "./tokens.ts";

/** One part of a multipart/form-data body; to be read before the next one is asked for. */
export interface Part {
  readonly name: string;
  /** As sent, parameters included. */
  readonly contentType: string | undefined;
  readonly filename: string | undefined;
  /** Fails when the body is broken off. */
  readonly data: AsyncIterable<Uint8Array>;
  /** The same at once, where all of it is in memory. */
  readonly bytes?: Uint8Array | undefined;
}

/** Bodies are read only once the token is known to be good. `other` is any body that is neither. */
export type RequestBody =
  | { readonly kind: "json"; read(limitBytes: number): Promise<unknown> }
  | { readonly kind: "upload"; readonly parts: AsyncIterable<Part> }
  | { readonly kind: "other"; readonly contentType: string | undefined };

export interface GatewayRequest {
  readonly method: string;
  /** Encoded, from "/v1/…", without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: RequestBody | undefined;
}

export interface GatewayAnswer {
  readonly status: number;
  /** Names in lower case; content-length is there unless the body is absent or has no end of its own. */
  readonly headers: Readonly<Record<string, string>>;
  /** `json` is encoded once, `bytes` is to be read to its end or returned; a chunk holds until the next one is asked for. */
  readonly body?:
    | { readonly kind: "json"; readonly text: string }
    | { readonly kind: "bytes"; readonly stream: AsyncIterable<Uint8Array> };
  /** Whether all it tells of is committed already. */
  readonly isCommitted?: boolean;
}

/** A request that is routed, authorized and checked: what the operations get. */
export interface Call<N extends OperationName> {
  /** What the path says; `path` still encoded. */
  readonly parameters: Readonly<Record<ParameterOf<N>, string>>;
  readonly query: QueryOf<N>;
  readonly headers: GatewayRequest["headers"];
  readonly caller: Caller;
  /** The JSON body; undefined when none came or the operation takes none. */
  readonly json: BodyOf<N> | undefined;
  readonly parts: AsyncIterable<Part> | undefined;
}

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): GatewayAnswer {
  return jsonTextAnswer(status, JSON.stringify(value), headers);
}

/** Of JSON that is text already. */
export function jsonTextAnswer(status: number, text: string, headers: Record<string, string> = {}): GatewayAnswer {
  return {
    status,
    headers: {
      "content-type": status >= 400 ? "application/problem+json" : "application/json",
      "content-length": String(Buffer.byteLength(text)),
      ...headers,
    },
    body: { kind: "json", text },
  };
}

/** A JSON body from a value in hand. */
export function jsonBody(value: unknown): RequestBody {
  return { kind: "json", read: async () => value };
}

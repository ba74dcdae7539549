/**
 * A request and an answer as the core sees them, without sockets. `server.ts` translates from HTTP. Tests and the
 * simulation make them by hand.
 */

import type { BodyOf, QueryOf } from "../contract/inputs.ts";
import type { OperationName, ParameterOf } from "../contract/operations.ts";
import type { Caller } from "./tokens.ts";

/** One part of a multipart/form-data body. It has to be read before the next one is requested. */
export interface Part {
  readonly name: string;
  /** As sent, with its parameters. */
  readonly contentType: string | undefined;
  readonly filename: string | undefined;
  /** Fails when the body is broken off. */
  readonly data: AsyncIterable<Uint8Array>;
  /** All of the data in one piece. Absent when it is not in memory. */
  readonly bytes?: Uint8Array | undefined;
}

/** A body is read only once the token is known to be valid. `other` is any body that is neither JSON nor an upload. */
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
  /** Names in lower case. content-length is present unless the body is absent or of unknown length. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * `json` is encoded once. `bytes` has to be read to its end or returned; a chunk stays valid until the next one is
   * requested.
   */
  readonly body?:
    | { readonly kind: "json"; readonly text: string }
    | { readonly kind: "bytes"; readonly stream: AsyncIterable<Uint8Array> };
  /** True if everything the answer reports is already committed. */
  readonly isCommitted?: boolean;
}

/** A request that is routed, authorized and checked: the input of the operations. */
export interface Call<N extends OperationName> {
  /** The parameters of the path; `path` is still encoded. */
  readonly parameters: Readonly<Record<ParameterOf<N>, string>>;
  readonly query: QueryOf<N>;
  readonly headers: GatewayRequest["headers"];
  readonly caller: Caller;
  /** The JSON body; undefined when none was sent or the operation takes none. */
  readonly json: BodyOf<N> | undefined;
  readonly parts: AsyncIterable<Part> | undefined;
}

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): GatewayAnswer {
  return jsonTextAnswer(status, JSON.stringify(value), headers);
}

/** Makes an answer of JSON that is text already. */
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

/** Makes a JSON body of a value in memory. */
export function jsonBody(value: unknown): RequestBody {
  return { kind: "json", read: async () => value };
}

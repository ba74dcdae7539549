/**
 * A request and an answer of the gateway without sockets: the client's transport carries them, the gateway's core
 * answers. Over the network, `client/http-transport.ts` and `gateway/server.ts` translate them; in the simulation they
 * are passed directly.
 */

/** A stream of events carries a comment at least this often, so that both ends notice a broken connection. */
export const HEARTBEAT_MS = 10_000;

/** Content to send. Each `read` begins at the start. */
export interface ContentSource {
  /** In bytes. Undefined: not known before the end of a read. */
  readonly size: number | undefined;
  read(): AsyncIterable<Uint8Array>;
  /** For content that can be read only once: true if it was read. Absent: it can be read again. */
  isSpent?(): boolean;
}

/** A multipart/form-data body: the `metadata` part (JSON) and the `file` part. */
export interface UploadBody {
  readonly kind: "upload";
  readonly metadata: unknown;
  readonly contentType: string | undefined;
  readonly content: ContentSource;
}

export interface JsonBody {
  readonly kind: "json";
  readonly value: unknown;
}

export interface HttpRequest {
  readonly method: string;
  /** Encoded, from "/v1/…", without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: JsonBody | UploadBody;
  readonly signal?: AbortSignal;
  /**
   * The reader of the answer's body uses each chunk only in the turn in which it comes, or copies it. The transport may
   * then reuse the memory.
   */
  readonly takesLoans?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Must be read to its end or returned. Fails when the other side breaks off. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Sends one request. Rejects only when there is no answer; every status is an answer. */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** The media type of a stream of nodes: one JSON value a line. */
export const NODE_LINES = "application/x-ndjson";

/**
 * A request and an answer of the gateway without sockets: what the client's transport carries and
 * the gateway's core answers. Over the network `client/http-transport.ts` and `gateway/server.ts`
 * translate; in the simulation one is handed to the other.
 */

/** Streams of events have a comment at least this often, so that both ends notice a connection that is gone. */
export const HEARTBEAT_MS = 10_000;

/** Content to send. Each `read` is from the start. */
export interface ContentSource {
  /** Bytes; undefined when only the end of a read tells. */
  readonly size: number | undefined;
  read(): AsyncIterable<Uint8Array>;
  /** Of content that can be read only once: whether it was. Absent: it can be read again. */
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
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** To be read to its end or returned; ends with an error when the other side breaks off. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Sends one request. Rejects only when no answer came; any status is an answer. */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
}

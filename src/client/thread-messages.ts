/**
 * Messages between the thread for small changes and its parent. Both ends belong to this program, so they are not
 * checked.
 */
import type { HttpAnswer, HttpRequest, JsonBody, UploadBody } from "../contract/http.ts";
import { RemoteError, type RemoteErrorCode, type RemoteErrorDetails } from "./errors.ts";
import type { HttpTransportOptions } from "./http-transport.ts";

/** Must be raised with any change of the messages: a thread that starts late may be of another build. */
export const FORMAT = 2;

/** The options that the thread gets when it starts. */
export interface ThreadOptions extends HttpTransportOptions {
  readonly format: number;
}

export interface CarriedRequest extends Omit<HttpRequest, "body" | "signal"> {
  readonly body?: JsonBody | CarriedUpload;
}

/** An upload whose whole content is in memory. */
interface CarriedUpload extends Omit<UploadBody, "content"> {
  readonly size: number | undefined;
  readonly content: Uint8Array<ArrayBuffer>;
}

/** `id` numbers the requests. */
export type ToThread =
  | { readonly tell: "request"; readonly id: number; readonly request: CarriedRequest }
  | { readonly tell: "abort"; readonly id: number }
  /** Ends all requests under way. The thread answers "closed" when each of them has its outcome, and then ends. */
  | { readonly tell: "close" };

export type FromThread = Outcome | { readonly tell: "closed" };

/** The outcome of a request. */
export type Outcome =
  | { readonly tell: "answer"; readonly id: number; readonly answer: CarriedAnswer }
  | { readonly tell: "failure"; readonly id: number; readonly error: CarriedError };

interface CarriedAnswer extends Omit<HttpAnswer, "body"> {
  readonly content: Uint8Array;
  /** The reason why the content breaks off. Absent: it is whole. */
  readonly broken?: CarriedError;
}

/** The request in the form that a transport sends. */
export function requestOf({ body, ...request }: CarriedRequest): HttpRequest {
  if (body === undefined || body.kind === "json") return body === undefined ? request : { ...request, body };
  const { size, content } = body;
  const read = async function* () {
    yield content;
  };
  return { ...request, body: { ...body, content: { size, read } } };
}

/** An Error in the form that crosses threads: the platform's copy would keep neither its class nor its code. */
export interface CarriedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  /** The code of a RemoteError or of the system. */
  readonly code?: string | undefined;
  /** Only for a RemoteError. */
  readonly details?: Omit<RemoteErrorDetails, "cause"> | undefined;
  readonly cause?: CarriedError | undefined;
}

export function packError(error: unknown): CarriedError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { cause: _, ...details } = error instanceof RemoteError ? error.details : {};
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    code: "code" in error && typeof error.code === "string" ? error.code : undefined,
    details: error instanceof RemoteError ? details : undefined,
    cause: error.cause === undefined ? undefined : packError(error.cause),
  };
}

/** `cause` replaces the cause that crossed. */
export function unpackError(packed: CarriedError, cause?: unknown): Error {
  const because = cause ?? (packed.cause === undefined ? undefined : unpackError(packed.cause));
  if (packed.details !== undefined) {
    return new RemoteError(packed.code as RemoteErrorCode, packed.message, { ...packed.details, cause: because });
  }
  const error = new Error(packed.message, because === undefined ? undefined : { cause: because });
  error.name = packed.name;
  if (packed.stack !== undefined) error.stack = packed.stack;
  return packed.code === undefined ? error : Object.assign(error, { code: packed.code });
}

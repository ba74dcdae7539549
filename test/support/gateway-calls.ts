/** Calls of a gateway process with little work of the caller's own: thousands of kills make many. */
import http from "node:http";

export interface Callee {
  readonly baseUrl: string;
  readonly token: string;
  readonly agent: http.Agent;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
}

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/** There was no answer, or not all of it. */
export class Broken extends Error {}

/** Throws Broken alone. */
export function callGateway(to: Callee, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const { baseUrl, token, agent } = to;
  const { headers, body } = options;
  return new Promise((resolve, reject) => {
    const broken = (error?: Error) => reject(new Broken(`${method} ${path}: no answer`, { cause: error }));
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const request = http.request(
      `${baseUrl}${path}`,
      { method, agent, headers: { authorization: `Bearer ${token}`, ...length, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => void chunks.push(chunk));
        response.on("error", broken);
        response.on("close", () => {
          if (response.complete) resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) });
          else broken();
        });
      },
    );
    request.on("error", broken);
    request.end(body);
  });
}

const BOUNDARY = "what-parts-the-parts";

/** The multipart body of an upload. */
export function uploadBody(metadata: object, content: Uint8Array): Required<CallOptions> {
  const head = (disposition: string) => `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(`${head('name="metadata"')}${JSON.stringify(metadata)}\r\n${head('name="file"; filename="x"')}`),
    content,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
  return { body, headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}` } };
}

export function jsonBody(value: unknown): Required<CallOptions> {
  return { body: JSON.stringify(value), headers: { "content-type": "application/json" } };
}

/**
 * Two ways to ask a gateway for the same: the product's client, and node:http with nothing on top,
 * which shows what the gateway itself takes.
 */
import { randomUUID } from "node:crypto";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { createClient } from "../../../src/client/create-client.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { createHttpTransport } from "../../../src/client/http-transport.ts";
import type { TestGateway } from "../../support/wsfs.ts";

/** `block`, `times` over: content of any size that takes no memory. */
export interface Content {
  readonly block: Buffer;
  readonly times: number;
  readonly hash: string;
}

export interface Caller {
  /** A new file; resolves with its node's id. */
  upload(parentId: string, name: string, content: Content): Promise<string>;
  getNode(nodeId: string): Promise<unknown>;
  /** Bytes that came. */
  download(nodeId: string): Promise<number>;
  /** All children, so many a page; resolves with their number. */
  list(parentId: string, pageSize: number): Promise<number>;
  makeFolder(name: string): Promise<string>;
  close(): Promise<void>;
}

export async function productCaller(
  gateway: Pick<TestGateway, "baseUrl" | "token" | "workspace">,
  connections: number,
): Promise<Caller> {
  const transport = createHttpTransport({ baseUrl: gateway.baseUrl, connections });
  const client = createClient({ transport, credentials: staticToken(gateway.token) });
  const workspace = await client.findWorkspace(gateway.workspace);
  if (workspace === undefined) throw new Error(`the gateway has no workspace ${gateway.workspace}`);
  return {
    async upload(parentId, name, { block, times, hash }) {
      const source = {
        size: block.length * times,
        async *read() {
          for (let time = 0; time < times; time += 1) yield block;
        },
      };
      return (await client.upload(parentId, name, source, { contentHash: hash, idempotencyKey: randomUUID() })).id;
    },
    getNode: (nodeId) => client.getNode(nodeId),
    async download(nodeId) {
      let bytes = 0;
      for await (const chunk of (await client.getContent(nodeId)).bytes) bytes += chunk.length;
      return bytes;
    },
    async list(parentId, pageSize) {
      let count = 0;
      let after: string | undefined;
      do {
        const page = await client.listFolder(parentId, { pageSize, ...(after === undefined ? {} : { after }) });
        count += page.items.length;
        after = page.next ?? undefined;
      } while (after !== undefined);
      return count;
    },
    makeFolder: async (name) => (await client.createFolder(workspace.rootId, name)).id,
    close: () => client.close(),
  };
}

export function plainCaller(
  gateway: Pick<TestGateway, "baseUrl" | "token">,
  connections: number,
): Omit<Caller, "makeFolder"> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const send = (method: string, path: string, headers: Record<string, string | number> = {}) =>
    httpRequest(new URL(path, gateway.baseUrl), {
      agent,
      method,
      headers: { authorization: `Bearer ${gateway.token}`, ...headers },
    });
  const answerOf = (request: ReturnType<typeof send>) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      request.once("error", reject);
      request.once("response", (response) => {
        const { statusCode = 0 } = response;
        if (statusCode < 300) return resolve(response);
        response.resume();
        reject(new Error(`${request.method} ${request.path} was answered ${statusCode}`));
      });
    });

  return {
    async upload(parentId, name, { block, times, hash }) {
      const boundary = randomUUID();
      const metadata = JSON.stringify({ contentHash: hash, idempotencyKey: randomUUID() });
      const before = Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="metadata"\r\nContent-Type: application/json\r\n\r\n` +
          `${metadata}\r\n--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n` +
          "Content-Type: application/octet-stream\r\n\r\n",
      );
      const after = Buffer.from(`\r\n--${boundary}--\r\n`);
      const request = send("POST", `/v1/files/${encodeURIComponent(name)}?parentId=${parentId}`, {
        "content-type": `multipart/form-data; boundary=${boundary}`,
        "content-length": before.length + block.length * times + after.length,
        "if-none-match": "*",
      });
      const answer = answerOf(request);
      request.write(before);
      for (let time = 0; time < times; time += 1) {
        if (!request.write(block))
          await Promise.race([answer, new Promise((resolve) => request.once("drain", resolve))]);
      }
      request.end(after);
      return (JSON.parse(await textOf(await answer)) as { id: string }).id;
    },
    async getNode(nodeId) {
      const request = send("GET", `/v1/nodes/${nodeId}`);
      const answer = answerOf(request);
      request.end();
      return JSON.parse(await textOf(await answer)) as unknown;
    },
    async download(nodeId) {
      const request = send("GET", `/v1/nodes/${nodeId}/content`);
      const answer = answerOf(request);
      request.end();
      let bytes = 0;
      for await (const chunk of await answer) bytes += (chunk as Buffer).length;
      return bytes;
    },
    async list(parentId, pageSize) {
      let count = 0;
      // Present from the first page on, it asks for pages of one snapshot.
      let after: string | undefined = "";
      do {
        const query = new URLSearchParams({
          parentId,
          pageSize: String(pageSize),
          ...(after === undefined ? {} : { after }),
        });
        const request = send("GET", `/v1/nodes?${query}`);
        const answer = answerOf(request);
        request.end();
        const page = JSON.parse(await textOf(await answer)) as { items: unknown[]; next?: string | null };
        count += page.items.length;
        after = page.next ?? undefined;
      } while (after !== undefined);
      return count;
    },
    async close() {
      agent.destroy();
    },
  };
}

async function textOf(answer: IncomingMessage): Promise<string> {
  answer.setEncoding("utf8");
  let text = "";
  for await (const chunk of answer) text += chunk;
  return text;
}

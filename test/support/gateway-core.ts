/** A gateway's core on a virtual clock with everything in memory, and short ways to call it. */
import { type Node, node, type WrittenNode, writtenNode } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { type AccountStore, accountsInMemory } from "../../src/gateway/accounts/index.ts";
import { migrateAccounts } from "../../src/gateway/accounts/schema.ts";
import type { GatewayOptions } from "../../src/gateway/context.ts";
import { createGateway, type Gateway } from "../../src/gateway/core.ts";
import { type GatewayAnswer, jsonBody, type Part, type RequestBody } from "../../src/gateway/exchange.ts";
import { migrate } from "../../src/gateway/schema.ts";
import { SILENT } from "../../src/lib/log.ts";
import type { Connection } from "../../src/lib/sqlite/index.ts";
import { ISSUER } from "./account-token.ts";
import type { AnswerJson } from "./answer-json.ts";
import { createFakeEngines, type FakeEngines } from "./fake-engines.ts";
import { copiesOf } from "./in-memory.ts";
import { createMemoryBlobs, type MemoryBlobs } from "./memory-blobs.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export interface ReadAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  readonly json: AnswerJson;
}

export interface CallOptions {
  readonly query?: Record<string, string>;
  readonly headers?: Record<string, string>;
  /** A JSON body. */
  readonly json?: unknown;
  readonly body?: RequestBody;
  /** Default: a token with all scopes bound to the first workspace. */
  readonly token?: string;
}

export interface TestCore {
  readonly clock: VirtualClock;
  readonly blobs: MemoryBlobs;
  readonly gateway: Gateway;
  readonly database: Connection;
  readonly accounts: AccountStore;
  /** Nothing runs before the gateway's queue is told to begin. */
  readonly engines: FakeEngines;
  readonly workspace: { readonly id: string; readonly name: string; readonly root: string };
  token(scopes?: readonly string[], workspace?: string | null): string;
  call(method: string, path: string, options?: CallOptions): Promise<ReadAnswer>;
  upload(path: string, content: string | Uint8Array, options?: UploadOptions): Promise<ReadAnswer>;
  /** As `upload`, the node; throws when it is refused. */
  file(path: string, content: string | Uint8Array, options?: UploadOptions): Promise<WrittenNode>;
  folder(parentId: string, name: string): Promise<WrittenNode>;
  /** Names in a folder, as listed. */
  names(path: string): Promise<string[]>;
  node(id: string): Promise<Node>;
  /** The same store under a new core, as after a restart. */
  restart(options?: Partial<GatewayOptions>): TestCore;
}

export interface UploadOptions extends CallOptions {
  readonly metadata?: unknown;
  readonly contentType?: string;
  readonly metadataLast?: boolean;
  readonly method?: string;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

export function part(name: string, content: string | Uint8Array, contentType?: string): Part {
  return { name, contentType, filename: undefined, data: once(Buffer.from(content)) };
}

export function uploadBody(...parts: Part[]): RequestBody {
  return {
    kind: "upload",
    parts: (async function* () {
      yield* parts;
    })(),
  };
}

export async function readAnswer(answer: GatewayAnswer): Promise<ReadAnswer> {
  const chunks: Uint8Array[] = [];
  if (answer.body?.kind === "json") chunks.push(Buffer.from(answer.body.text));
  else if (answer.body !== undefined) {
    for await (const chunk of answer.body.stream) {
      chunks.push(chunk);
      // These have no end: what comes first shows that the stream is open.
      if (answer.headers["content-type"] === "text/event-stream") break;
    }
  }
  const bytes = Buffer.concat(chunks);
  return {
    status: answer.status,
    headers: answer.headers,
    bytes,
    json: answer.body?.kind === "json" ? JSON.parse(bytes.toString()) : {},
  };
}

interface Parts {
  readonly clock: VirtualClock;
  readonly blobs: MemoryBlobs;
  readonly database: Connection;
  readonly accounts?: AccountStore;
  readonly engines?: FakeEngines;
  readonly turn?: (callback: () => void) => void;
}

const openStore = copiesOf(migrate);
const openAccounts = copiesOf(migrateAccounts);

export function createTestCore(options: Partial<GatewayOptions> = {}, parts?: Parts): TestCore {
  const clock = parts?.clock ?? createVirtualClock();
  const blobs = parts?.blobs ?? createMemoryBlobs();
  const database = parts?.database ?? openStore();
  const accounts = parts?.accounts ?? accountsInMemory(clock, openAccounts());
  const engines = parts?.engines ?? createFakeEngines();
  const signingKey = Buffer.alloc(32, 7);
  const gateway = createGateway({
    clock,
    database,
    accounts,
    issuer: () => ISSUER,
    blobs,
    signingKey,
    engines,
    ...(parts?.turn === undefined ? {} : { turn: parts.turn }),
    options,
    log: SILENT,
  });
  const workspace = gateway.ensureWorkspace("workspace");
  const token = (scopes: readonly string[] = SCOPES, bound: string | null = workspace.id) =>
    gateway.issueToken({ scopes, ttlSeconds: 30 * 86400, ...(bound === null ? {} : { workspace: bound }) });
  const all = token();

  const core: TestCore = {
    clock,
    blobs,
    gateway,
    database,
    accounts,
    engines,
    workspace,
    token,
    async call(method, path, { query = {}, headers = {}, json, body, token = all } = {}) {
      return readAnswer(
        await gateway.handle({
          method,
          path,
          query,
          headers: { authorization: `Bearer ${token}`, ...headers },
          body: body ?? (json === undefined ? undefined : jsonBody(json)),
        }),
      );
    },
    upload(path, content, { metadata, contentType, metadataLast = false, method = "POST", ...rest } = {}) {
      const file = part("file", content, contentType);
      const parts = metadata === undefined ? [file] : [part("metadata", JSON.stringify(metadata)), file];
      return core.call(method, path, { body: uploadBody(...(metadataLast ? parts.reverse() : parts)), ...rest });
    },
    async file(path, content, options) {
      const answer = await core.upload(`/v1/files${path}`, content, options);
      if (answer.status >= 300) throw new Error(`upload of ${path}: ${answer.status} ${answer.bytes}`);
      return writtenNode.parse(answer.json);
    },
    async folder(parentId, name) {
      const answer = await core.call("POST", "/v1/nodes", { json: { parentId, name, kind: "folder" } });
      if (answer.status !== 201) throw new Error(`folder ${name}: ${answer.status} ${answer.bytes}`);
      return writtenNode.parse(answer.json);
    },
    async names(path) {
      const answer = await core.call("GET", "/v1/nodes", { query: { path } });
      if (answer.status !== 200) throw new Error(`listing of ${path}: ${answer.status} ${answer.bytes}`);
      return answer.json.items.map(({ name }) => name);
    },
    async node(id) {
      return node.parse((await core.call("GET", `/v1/nodes/${id}`)).json);
    },
    restart: (changes = {}) =>
      createTestCore({ ...options, ...changes }, { clock, blobs, database, accounts, engines }),
  };
  return core;
}

/**
 * Kills a gateway again and again while it is written to, and holds it to its word: what was
 * answered with 2xx is there after each start, exactly once; what was not answered happened once or
 * not at all, and with its key it happens once in the end. Where each kill falls (after how many
 * answers) and what is asked for come from a seed.
 */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { journalPage, type Node, node, workspacePage, writtenNode } from "../../src/contract/resources.ts";
import { type GatewayChild, warmGateway } from "./gateway-child.ts";
import { seededRandom } from "./virtual-clock.ts";

const WRITERS = 6;
/** Kept in the store, kept as a blob, and a blob of several writes. */
const SIZES = [0, 100, 20_000, 40_000, 700_000] as const;
const PARENT = "parent";
const INLINE_BYTES = 32 * 1024;
/** Answers until the kill; none means that nothing was answered before. */
const ANSWERS_MAX = 30;

export interface KillOptions {
  readonly dataDir: string;
  readonly kills: number;
  readonly seed: number;
  /** Whether the gateway is the one in dist/. */
  readonly compiled?: boolean;
  readonly onKill?: (kill: number) => void;
}

export interface KillReport {
  readonly kills: number;
  /** Requests answered with 2xx, all of which were found again. */
  readonly answered: number;
  /** Requests that a kill left without an answer … */
  readonly unanswered: number;
  /** … and of these, those that had happened all the same. */
  readonly happened: number;
}

type Request =
  | { readonly do: "upload"; readonly name: string; readonly content: Uint8Array; readonly key: string }
  | { readonly do: "version"; readonly node: Node; readonly content: Uint8Array; readonly key: string }
  | { readonly do: "folder"; readonly name: string; readonly key: string }
  | { readonly do: "rename"; readonly node: Node; readonly name: string }
  | { readonly do: "delete"; readonly node: Node };

/** What a node must be like; `content` is undefined of a folder. */
interface Expected {
  readonly node: Node;
  readonly isDeleted: boolean;
}

/** Throws what it found when the gateway does not keep its word. */
export async function killGateway({ dataDir, kills, seed, compiled, onKill }: KillOptions): Promise<KillReport> {
  const random = seededRandom(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const expected = new Map<string, Expected>();
  const report = { kills, answered: 0, unanswered: 0, happened: 0 };
  let largeVersions = 0;
  let counter = 0;
  let heard = 0;
  let isEnding = false;
  let warm = warmGateway(dataDir, compiled);
  let running: GatewayChild | undefined;

  function content(): Uint8Array {
    const size = SIZES[pick(SIZES.length)] ?? 0;
    const block = createHash("sha256").update(`${seed}/${counter}`).digest();
    return Buffer.alloc(size, block);
  }

  function next(own: Node | undefined): Request {
    counter += 1;
    const [name, key] = [`n-${counter}`, `key-${counter}`];
    const choice = random();
    if (own === undefined || choice < 0.4) {
      return choice < 0.05 ? { do: "folder", name, key } : { do: "upload", name, content: content(), key };
    }
    if (own.kind === "file" && choice < 0.65) return { do: "version", node: own, content: content(), key };
    return choice < 0.85 ? { do: "rename", node: own, name } : { do: "delete", node: own };
  }

  /** Undefined: no answer, or not all of it. Throws for one that is not 2xx. */
  async function ask(gateway: GatewayChild, request: Request): Promise<Node | undefined> {
    const response = await send(gateway, request).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    if (response === undefined || text === undefined) return undefined;
    if (!response.ok) throw new Error(`${describe(request)}: ${response.status} ${text}`);
    const { position: _, ...answered } = writtenNode.parse(JSON.parse(text));
    return answered;
  }

  function learn(request: Request, answered: Node): void {
    if ("content" in request) {
      const hash = sha256(request.content);
      if (answered.contentHash !== hash) throw new Error(`${describe(request)}: the answer tells of other content`);
      if (request.content.length > INLINE_BYTES) largeVersions += 1;
    }
    expected.set(answered.id, { node: answered, isDeleted: request.do === "delete" });
  }

  async function write(gateway: GatewayChild, enough: number, touched: Set<string>, open: Request[]): Promise<void> {
    let own: Node | undefined;
    for (;;) {
      const request = next(own);
      const answered = await ask(gateway, request);
      if (answered === undefined) {
        if (!isEnding) throw new Error(`${describe(request)}: the connection broke without a kill`);
        open.push(request);
        return;
      }
      learn(request, answered);
      touched.add(answered.id);
      report.answered += 1;
      own = request.do === "delete" ? undefined : answered;
      if (report.answered >= enough && !isEnding) {
        isEnding = true;
        void gateway.end("SIGKILL");
      }
    }
  }

  /** Asked for again with its key; without one, looked at. */
  async function resolve(gateway: GatewayChild, request: Request): Promise<string | undefined> {
    report.unanswered += 1;
    if (request.do === "rename" || request.do === "delete") {
      const now = await get(gateway, request.node.id);
      const isDone = request.do === "delete" ? now === undefined : now?.name === request.name;
      if (!isDone) return request.node.id;
      report.happened += 1;
      const revision = request.node.revision + 1;
      if (now !== undefined && now.revision !== revision) throw new Error(`${describe(request)}: happened in part`);
      expected.set(request.node.id, { node: now ?? { ...request.node, revision }, isDeleted: now === undefined });
      return request.node.id;
    }
    const had = await hasKey(gateway, request.key);
    if (had) report.happened += 1;
    const answered = await ask(gateway, request);
    if (answered === undefined) throw new Error(`${describe(request)}: no answer`);
    learn(request, answered);
    return answered.id;
  }

  async function hasKey(gateway: GatewayChild, key: string): Promise<boolean> {
    const page = journalPage.parse(await getJson(gateway, `/v1/journal?after=${heard}&pageSize=1000`));
    return page.items.some((entry) => entry.key === key);
  }

  async function verify(gateway: GatewayChild, ids: Iterable<string>): Promise<void> {
    for (const id of ids) {
      const want = expected.get(id);
      if (want === undefined) continue;
      const now = await get(gateway, id);
      if (want.isDeleted) {
        if (now !== undefined) throw new Error(`${want.node.name} is back after it was deleted`);
        continue;
      }
      if (now === undefined) throw new Error(`${want.node.name} (${id}) is lost`);
      const { path: _, ...rest } = now;
      const { path: __, ...wanted } = want.node;
      if (JSON.stringify(rest) !== JSON.stringify(wanted)) {
        throw new Error(`${want.node.name} is ${JSON.stringify(rest)}, answered was ${JSON.stringify(wanted)}`);
      }
      if (now.kind === "folder") continue;
      const response = await fetch(`${gateway.baseUrl}/v1/nodes/${id}/content`, { headers: headersOf(gateway) });
      const hash = sha256(new Uint8Array(await response.arrayBuffer()));
      if (hash !== want.node.contentHash) throw new Error(`${want.node.name} has other content than was answered`);
    }
  }

  async function verifyUsed(gateway: GatewayChild): Promise<void> {
    const there = [...expected.values()].filter(({ isDeleted }) => !isDeleted);
    const sum = there.reduce((total, { node: { size } }) => total + size, 0);
    const [workspace] = workspacePage.parse(await getJson(gateway, "/v1/workspaces")).items;
    if (workspace?.used !== sum) throw new Error(`${workspace?.used} bytes are used, what is there has ${sum}`);
  }

  /** From where it was left: every revision once, every key once. */
  const seen = new Set<string>();
  async function readJournal(gateway: GatewayChild): Promise<void> {
    for (;;) {
      const page = journalPage.parse(await getJson(gateway, `/v1/journal?after=${heard}&pageSize=1000`));
      for (const entry of page.items) {
        // The parent that the first upload makes has the upload's key too.
        const keys = entry.key == null || entry.name === PARENT ? [] : [entry.key];
        for (const once of [`${entry.nodeId} ${entry.revision}`, ...keys]) {
          if (seen.has(once)) throw new Error(`the journal tells of ${once} twice`);
          seen.add(once);
        }
      }
      heard = page.items.at(-1)?.position ?? heard;
      if (page.items.length < 1000) break;
    }
    for (const { node: known } of expected.values()) {
      if (!seen.has(`${known.id} ${known.revision}`)) throw new Error(`the journal does not tell of ${known.name}`);
    }
  }

  try {
    const open: Request[] = [];
    let touched = new Set<string>();
    for (let kill = 0; kill <= kills; kill += 1) {
      running = await warm.start();
      const gateway: GatewayChild = running;
      warm = warmGateway(dataDir, compiled);
      isEnding = false;
      for (const request of open.splice(0)) {
        const id = await resolve(gateway, request);
        if (id !== undefined) touched.add(id);
      }
      await verify(gateway, touched);
      await readJournal(gateway);
      if (kill === kills) {
        await verify(gateway, expected.keys());
        await verifyUsed(gateway);
        await gateway.end("SIGTERM");
        break;
      }
      touched = new Set();
      const enough = report.answered + 1 + pick(ANSWERS_MAX);
      await Promise.all(Array.from({ length: WRITERS }, () => write(gateway, enough, touched, open)));
      await gateway.end("SIGKILL");
      onKill?.(kill + 1);
    }
    // What was broken off left nothing behind; the last start has collected it.
    const names = await readdir(path.join(dataDir, "blobs"), { recursive: true });
    const blobs = names.filter((name) => path.basename(name).length > 2 && name !== "unfinished");
    if (blobs.length !== largeVersions) throw new Error(`there are ${blobs.length} blobs, expected ${largeVersions}`);
    return report;
  } finally {
    await running?.end("SIGKILL");
    await warm.discard();
  }
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

const headersOf = ({ token }: GatewayChild) => ({ authorization: `Bearer ${token}` });

function describe(request: Request): string {
  const what = "node" in request ? request.node.name : request.name;
  return `${request.do} ${what}${"key" in request ? ` (${request.key})` : ""}`;
}

function send(gateway: GatewayChild, request: Request): Promise<Response> {
  const headers = headersOf(gateway);
  const json = (url: string, method: string, value: unknown, more: Record<string, string> = {}) =>
    fetch(`${gateway.baseUrl}${url}`, {
      method,
      headers: { ...headers, "content-type": "application/json", ...more },
      body: JSON.stringify(value),
    });
  switch (request.do) {
    case "upload":
    case "version": {
      const body = new FormData();
      body.set("metadata", JSON.stringify({ idempotencyKey: request.key, contentHash: sha256(request.content) }));
      body.set("file", new Blob([Uint8Array.from(request.content)]), "x");
      if (request.do === "upload") {
        return fetch(`${gateway.baseUrl}/v1/files/${PARENT}/${request.name}`, {
          method: "POST",
          body,
          headers: { ...headers, "if-none-match": "*" },
        });
      }
      return fetch(`${gateway.baseUrl}/v1/nodes/${request.node.id}/content`, {
        method: "PUT",
        body,
        headers: { ...headers, "if-match": `"${request.node.head}"` },
      });
    }
    case "folder":
      return rootOf(gateway).then((parentId) =>
        json("/v1/nodes", "POST", { parentId, name: request.name, kind: "folder", idempotencyKey: request.key }),
      );
    case "rename": {
      const condition = { "if-match": `"${request.node.revision}"` };
      return json(`/v1/nodes/${request.node.id}`, "PATCH", { name: request.name }, condition);
    }
    case "delete":
      return fetch(`${gateway.baseUrl}/v1/nodes/${request.node.id}`, {
        method: "DELETE",
        headers: { ...headers, "if-match": `"${request.node.revision}"` },
      });
  }
}

async function rootOf(gateway: GatewayChild): Promise<string> {
  return node.parse(await getJson(gateway, "/v1/files/")).id;
}

async function getJson(gateway: GatewayChild, url: string): Promise<unknown> {
  const response = await fetch(`${gateway.baseUrl}${url}`, { headers: headersOf(gateway) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function get(gateway: GatewayChild, id: string): Promise<Node | undefined> {
  const response = await fetch(`${gateway.baseUrl}/v1/nodes/${id}`, { headers: headersOf(gateway) });
  const value: unknown = await response.json();
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`${id}: ${response.status} ${JSON.stringify(value)}`);
  return node.parse(value);
}

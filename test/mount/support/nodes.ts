/** Questions to the gateway as anybody could ask them: HTTP and JSON, no code of ours. */
import type { TestGateway } from "../../support/wsfs.ts";

export interface GatewayNode {
  readonly id: string;
  readonly kind: "file" | "folder";
  readonly name: string;
  readonly contentHash: string | null;
}

export interface GatewayVersion {
  readonly id: string;
  readonly number: number;
  readonly contentHash: string;
  readonly size: number;
}

async function getAll<T>(gateway: TestGateway, path: string): Promise<T[]> {
  const items: T[] = [];
  for (let pageNo = 1; ; pageNo++) {
    const url = `${gateway.baseUrl}${path}${path.includes("?") ? "&" : "?"}pageNo=${pageNo}&pageSize=1000`;
    const answer = await get(url, gateway.token);
    const page = (await answer.json()) as { items: T[]; totalCount: number };
    items.push(...page.items);
    if (items.length >= page.totalCount) return items;
  }
}

const TRIES = 8;

/** A gateway that fails on purpose is asked again. */
async function get(url: string, token: string): Promise<Response> {
  let failure: unknown;
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      if (answer.ok) return answer;
      failure = new Error(`GET ${url}: ${answer.status} ${await answer.text()}`);
      if (answer.status < 500) break;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** The children of a folder, by name; throws when a name is there twice. */
export async function childrenAt(gateway: TestGateway, path = "/"): Promise<Map<string, GatewayNode>> {
  const nodes = await getAll<GatewayNode>(gateway, `/v1/nodes?path=${encodeURIComponent(path)}`);
  const byName = new Map(nodes.map((node) => [node.name, node]));
  if (byName.size !== nodes.length) throw new Error(`a name is twice in ${path}`);
  return byName;
}

/** Oldest first. */
export async function versionsOf(gateway: TestGateway, nodeId: string): Promise<GatewayVersion[]> {
  const versions = await getAll<GatewayVersion>(gateway, `/v1/nodes/${nodeId}/versions`);
  return versions.sort((a, b) => a.number - b.number);
}

/** The digests of all contents that ever came to be a file's newest: the journal names each. */
export async function contentsEver(gateway: TestGateway): Promise<Set<string>> {
  const digests = new Set<string>();
  for (let after = 0; ; ) {
    const answer = await get(`${gateway.baseUrl}/v1/journal?after=${after}&pageSize=1000`, gateway.token);
    const page = (await answer.json()) as { items: { position: number; contentHash?: string | null }[] };
    for (const { contentHash } of page.items) if (contentHash != null) digests.add(contentHash);
    const last = page.items.at(-1);
    if (last === undefined) return digests;
    after = last.position;
  }
}

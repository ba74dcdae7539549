/** Resources as the gateway answers them. */
import type { ContentSource } from "../../../src/contract/http.ts";
import type { Node, Workspace, WrittenNode } from "../../../src/contract/resources.ts";

export function exampleNode(change: Partial<Node> = {}): Node {
  return {
    id: "n1",
    kind: "file",
    path: "/a.txt",
    name: "a.txt",
    parentId: "root",
    mimeType: "text/plain",
    size: 5,
    head: "v1",
    contentHash: "0".repeat(64),
    lastKey: null,
    revision: 3,
    createdAt: "2026-01-02T03:04:05.678Z",
    modifiedAt: "2026-01-02T03:04:05.678Z",
    attributes: { mode: 0o644 },
    ...change,
  };
}

export function exampleWritten(change: Partial<WrittenNode> = {}): WrittenNode {
  return { ...exampleNode(), position: 7, ...change };
}

export function exampleWorkspace(number: number): Workspace {
  return { id: `w${number}`, name: `workspace ${number}`, rootId: `root${number}` };
}

export function examplePage<T>(items: readonly T[], change: object = {}): object {
  return { items, totalCount: items.length, pageNo: 1, pageSize: 50, asOf: 9, ...change };
}

export function textSource(text: string): ContentSource {
  const bytes = Buffer.from(text);
  return {
    size: bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** What a gateway has said, and whether it keeps to it: nodes, contents, the journal. */
import { CHANGE_KINDS } from "../../src/contract/journal-kinds.ts";
import {
  type JournalEntry,
  journalPage,
  type Node,
  nodePage,
  node as nodeSchema,
  workspacePage,
} from "../../src/contract/resources.ts";
import { type Callee, callGateway } from "./gateway-calls.ts";
import { PARENT, sha256 } from "./gateway-requests.ts";

interface Expected {
  readonly node: Node;
  readonly isDeleted: boolean;
}

export interface Oracle {
  readonly size: number;
  /** That this is what it was answered to be. */
  expect(node: Node, isDeleted: boolean): void;
  /** Nodes by their ids, with their content. */
  verify(to: Callee, ids: Iterable<string>): Promise<void>;
  /** That the listing of everything has every node there is, as it is, and no other; and `contents` of them. */
  verifyAll(to: Callee, contents: number): Promise<void>;
  /** From where it was left: every revision once, every key once. */
  readJournal(to: Callee): Promise<void>;
  /** Entries that tell of no change of a node, as far as the journal was read. */
  readonly activities: readonly JournalEntry[];
  /** Whether the journal has told of the key. */
  isTold(key: string): boolean;
}

const PAGE = 1000;

export function createOracle(random: () => number): Oracle {
  const expected = new Map<string, Expected>();
  const ids: string[] = [];
  const told = new Set<string>();
  const activities: JournalEntry[] = [];
  let heard = 0;

  async function checkContent(to: Callee, node: Node): Promise<void> {
    if (node.kind === "folder") return;
    const { status, body } = await callGateway(to, "GET", `/v1/nodes/${node.id}/content`);
    if (status !== 200) throw new Error(`the content of ${node.name}: ${status} ${body}`);
    if (sha256(body) !== node.contentHash) throw new Error(`${node.name} has other content than was answered`);
  }

  function checkTold({ id, revision, name }: Node): void {
    if (!told.has(`${id} ${revision}`)) throw new Error(`the journal does not tell of ${name} at ${revision}`);
  }

  async function verify(to: Callee, wanted: Iterable<string>): Promise<void> {
    const known = [...wanted].flatMap((id) => expected.get(id) ?? []);
    await Promise.all(
      known.map(async ({ node, isDeleted }) => {
        checkTold(node);
        const now = await getNode(to, node.id);
        if (isDeleted) {
          if (now !== undefined) throw new Error(`${node.name} is back after it was deleted`);
          return;
        }
        if (now === undefined) throw new Error(`${node.name} (${node.id}) is lost`);
        checkSame(now, node);
        await checkContent(to, node);
      }),
    );
  }

  return {
    get size() {
      return expected.size;
    },
    expect(node, isDeleted) {
      if (!expected.has(node.id)) ids.push(node.id);
      expected.set(node.id, { node, isDeleted });
    },
    verify,
    async verifyAll(to, contents) {
      const listed = new Map<string, Node>();
      let after: string | null = "";
      while (after !== null) {
        const query: string = `path=/&recursive=true&pageSize=${PAGE}&after=${after}`;
        const page = nodePage.parse(await getJson(to, `/v1/nodes?${query}`));
        for (const item of page.items) listed.set(item.id, item);
        after = page.next ?? null;
      }
      for (const { node, isDeleted } of expected.values()) {
        checkTold(node);
        const now = listed.get(node.id);
        if (isDeleted !== (now === undefined)) throw new Error(`${node.name} is ${isDeleted ? "" : "not "}listed`);
        if (now !== undefined) checkSame(now, node);
      }
      for (const { id, name } of listed.values()) {
        if (!expected.has(id) && name !== PARENT) throw new Error(`${name} is listed, but nobody made it`);
      }
      const sum = [...listed.values()].reduce((total, { size }) => total + size, 0);
      const [workspace] = workspacePage.parse(await getJson(to, "/v1/workspaces")).items;
      if (workspace?.used !== sum) throw new Error(`${workspace?.used} bytes are used, what is listed has ${sum}`);
      const some = contents >= ids.length ? ids : Array.from({ length: contents }, () => pick(ids, random));
      for (let start = 0; start < some.length; start += PAGE / 20) {
        await verify(to, some.slice(start, start + PAGE / 20));
      }
    },
    async readJournal(to) {
      for (;;) {
        const page = journalPage.parse(await getJson(to, `/v1/journal?after=${heard}&pageSize=${PAGE}`));
        for (const entry of page.items) {
          const { key, kind, name, nodeId, revision, position } = entry;
          heard = position;
          if (!CHANGE_KINDS.some((own) => own === kind)) {
            activities.push(entry);
            continue;
          }
          // The parent that the first upload makes has the upload's key too.
          const own = key == null || name === PARENT ? [] : [key];
          for (const once of [`${nodeId} ${revision}`, ...own]) {
            if (told.has(once)) throw new Error(`the journal tells of ${once} twice`);
            told.add(once);
          }
        }
        if (page.items.length < PAGE) return;
      }
    },
    activities,
    isTold: (key) => told.has(key),
  };
}

const pick = (ids: readonly string[], random: () => number) => ids[Math.floor(random() * ids.length)] ?? "";

function checkSame(now: Node, answered: Node): void {
  if (JSON.stringify(now) === JSON.stringify(answered)) return;
  throw new Error(`${answered.name} is ${JSON.stringify(now)}, answered was ${JSON.stringify(answered)}`);
}

async function getJson(to: Callee, path: string): Promise<unknown> {
  const { status, body } = await callGateway(to, "GET", path);
  if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
  return JSON.parse(String(body));
}

/** Undefined when there is none. */
export async function getNode(to: Callee, id: string): Promise<Node | undefined> {
  const { status, body } = await callGateway(to, "GET", `/v1/nodes/${id}`);
  if (status === 404) return undefined;
  if (status !== 200) throw new Error(`${id}: ${status} ${body}`);
  return nodeSchema.parse(JSON.parse(String(body)));
}

export async function getRoot(to: Callee): Promise<string> {
  return nodeSchema.parse(await getJson(to, "/v1/files/")).id;
}

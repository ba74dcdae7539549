/** A tree in a gateway's core, with good calls of each operation on it, and calls it does not allow. */
import { newAccount } from "./account-token.ts";
import type { TestCore } from "./gateway-core.ts";

export interface Example {
  readonly nodeId?: string;
  readonly path?: string;
  /** Other parts of the path, by their names in it. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly metadata?: unknown;
  readonly file?: string;
  readonly token?: string;
  readonly method?: string;
}

/** The path of an operation, with what the example says in it. Nothing is encoded: tests send what should be, and is not. */
export function filledPath(template: string, { nodeId = "", path = "", parameters = {} }: Example): string {
  const known: Readonly<Record<string, string>> = { nodeId, path, ...parameters };
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const part = known[name];
    if (part === undefined) throw new Error(`The example says no {${name}} of ${template}.`);
    return part;
  });
}

export interface Examples {
  /** Good calls by operation, the usual one first. */
  readonly examples: Readonly<Record<string, readonly Example[]>>;
  /** Calls the tree does not allow. */
  readonly conflicts: Readonly<Record<string, Example>>;
}

export async function makeExamples(core: TestCore): Promise<Examples> {
  const root = core.workspace.root;
  const file = await core.file("/d/f", "x");
  const other = await core.file("/d/g", "xx");
  const tag = (await core.call("GET", "/v1/files/d/f")).headers.etag ?? "";
  const gone = await core.file("/d/h", "x");
  const again = await core.file("/d/i", "x");
  for (const { id } of [gone, again]) await core.call("DELETE", `/v1/nodes/${id}`);
  const { accounts } = core.accounts;
  const ada = newAccount(core.accounts, "ada");
  const eve = newAccount(core.accounts, "eve");
  accounts.setRole(ada.id, core.workspace.id, "viewer");
  accounts.setRole(eve.id, core.workspace.id, "owner");
  const reference = { copyOf: other.id, attributes: { mode: 0o600 }, idempotencyKey: "k" };
  const examples = {
    listWorkspaces: [{}],
    listNodes: [{ query: { path: "/d" } }, { query: { parentId: root, after: "", orderBy: "name" } }],
    getNode: [{ nodeId: file.id }, { nodeId: file.id, headers: { "if-none-match": "*" } }],
    getNodeByPath: [{ path: "d/f" }, { path: "d/f", headers: { "if-none-match": tag } }],
    getContent: [
      { nodeId: file.id },
      { nodeId: file.id, headers: { range: "bytes=0-0" } },
      { nodeId: file.id, headers: { "if-none-match": `"${file.head}"` } },
    ],
    upload: [
      { path: "d/new", file: "x", metadata: { attributes: { mode: 0o644 } } },
      { path: "d/f", file: "y" },
    ],
    writeContent: [{ nodeId: file.id, file: "x" }],
    writeReference: [{ nodeId: file.id, json: reference }],
    createNode: [
      { json: { parentId: root, name: "n", kind: "folder", attributes: { xattrs: { a: "YQ==" } } } },
      { json: { parentId: root, name: "copy", copyOf: file.id, version: file.head } },
    ],
    patchNode: [{ nodeId: file.id, json: { name: "n", parentId: root, attributes: { mode: null } } }],
    exchangeNodes: [{ nodeId: file.id, json: { with: other.id } }],
    deleteNode: [{ nodeId: file.id }],
    restoreNode: [{ nodeId: gone.id }, { nodeId: again.id, json: { idempotencyKey: "r" } }],
    listVersions: [{ nodeId: file.id }],
    appendJournal: [{ json: { nodeId: file.id, kind: "seen" } }],
    readJournal: [{}],
    streamJournal: [{}],
    getAccount: [{}],
    listGrants: [{}, { query: { after: "", orderBy: "-role" } }],
    setGrant: [{ json: { account: "ada", role: "editor" } }],
    removeGrant: [{ query: { account: "ada" } }],
  };
  const conflicts = {
    upload: { path: "d", file: "x" },
    createNode: { json: { parentId: root, name: "d", kind: "folder" } },
    patchNode: { nodeId: file.id, json: { name: "g" } },
    deleteNode: { nodeId: String(file.parentId) },
    restoreNode: { nodeId: file.id },
    // The only owner.
    setGrant: { json: { account: "eve", role: "viewer" } },
    removeGrant: { query: { account: "eve" } },
  };
  return { examples, conflicts };
}

/** Examples for the OpenAPI document, by the name of the schema they are of. */
import type {
  AccountStatus,
  ContentReference,
  Grant,
  JournalEntry,
  NewJournalEntry,
  NewNode,
  Node,
  NodePatch,
  Problem,
  UploadMetadata,
  Version,
  Workspace,
  WrittenNode,
} from "./resources.ts";

const ids = {
  account: "5e0c6f0e-8a3e-4d3b-9c1b-6c2d8e4f9a15",
  workspace: "0b0ad2f4-5f3c-4c7e-9a51-3a1f2f1f5d10",
  root: "f7d2c1a0-6e0b-4f8b-8a73-2b9e5c4d1e11",
  folder: "6d9a2a52-1f0e-4a3e-b6a5-77d6f3f0c112",
  file: "3c1b7a70-9d0f-4c55-9f0e-5b8f1f6a7c13",
  version: "a1b5b1e6-70a5-4d0e-8b0a-0c8a1d2e3f14",
};
/** Of "hello". */
const hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const moment = "2026-01-31T12:00:05.000Z";

const node: Node = {
  id: ids.file,
  kind: "file",
  path: "/docs/hello.txt",
  name: "hello.txt",
  parentId: ids.folder,
  mimeType: "text/plain",
  size: 5,
  head: ids.version,
  contentHash: hash,
  lastKey: null,
  revision: 1,
  createdAt: moment,
  modifiedAt: moment,
  attributes: { mode: 0o644, mtime: "1769860805.000000000" },
};
const writtenNode: WrittenNode = { ...node, position: 42 };
const workspace: Workspace = {
  id: ids.workspace,
  name: "main",
  rootId: ids.root,
  quota: 10_737_418_240,
  used: 5,
  role: "editor",
};
const version: Version = {
  id: ids.version,
  nodeId: ids.file,
  number: 1,
  branch: "main",
  size: 5,
  contentHash: hash,
  mimeType: "text/plain",
  createdAt: moment,
};
const journalEntry: JournalEntry = {
  position: 42,
  time: moment,
  kind: "created",
  nodeId: ids.file,
  revision: 1,
  parentId: ids.folder,
  name: "hello.txt",
  head: ids.version,
  contentHash: hash,
  key: null,
};
const uploadMetadata: UploadMetadata = { idempotencyKey: "save-1", contentHash: hash };
const contentReference: ContentReference = { copyOf: ids.file, version: ids.version };
const newNode: NewNode = { parentId: ids.root, name: "docs", kind: "folder" };
const nodePatch: NodePatch = { name: "renamed.txt", attributes: { mode: 0o600 } };
const newJournalEntry: NewJournalEntry = { nodeId: ids.folder, kind: "reviewed" };
const problem: Problem = {
  type: "about:blank",
  status: 400,
  title: "Bad Request",
  detail: "pageSize: expected a whole number from 1 to 1000",
  field: "pageSize",
};

const account = { id: ids.account, name: "ada" };
const inWorkspace = { id: workspace.id, name: workspace.name };
const accountStatus: AccountStatus = {
  account,
  scopes: ["account.workspace.read", "node.file.read"],
  workspace: null,
  expiresAt: moment,
  workspaces: [{ ...inWorkspace, role: "editor" }],
};
const grant: Grant = {
  id: `${workspace.id}.${ids.account}`,
  account,
  workspace: inWorkspace,
  role: "editor",
  createdAt: moment,
};

/** Those without one are shown by the examples of what they are made of. */
export const EXAMPLES: Readonly<Record<string, unknown>> = {
  Node: node,
  WrittenNode: writtenNode,
  Workspace: workspace,
  Version: version,
  JournalEntry: journalEntry,
  ToldNode: writtenNode,
  ToldEntry: { ...journalEntry, kind: "reviewed" },
  UploadMetadata: uploadMetadata,
  ContentReference: contentReference,
  NewNode: newNode,
  NodePatch: nodePatch,
  Restoration: { idempotencyKey: "restore-1" },
  Exchange: { with: ids.file, withRevision: 1 },
  NewJournalEntry: newJournalEntry,
  AccountRef: account,
  WorkspaceRef: inWorkspace,
  AccountStatus: accountStatus,
  Author: { account: "ada", mount: "laptop" },
  Grant: grant,
  NewGrant: { account: "ada", role: "viewer" },
  Problem: problem,
};

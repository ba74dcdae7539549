/** Examples for the OpenAPI document, by the name of their schema. */
import type { ApiKey, NewApiKey } from "./api-keys.ts";
import type { Engine, Execution, Installation, LogLine, NewExecution, NewInstallation } from "./engines.ts";
import type {
  AccountStatus,
  ContentReference,
  FormerState,
  Grant,
  JournalEntry,
  NewJournalEntry,
  NewNode,
  Node,
  NodePatch,
  Problem,
  RestoredItem,
  UploadMetadata,
  Version,
  Workspace,
  WrittenNode,
} from "./resources.ts";
import type { NewTrigger, Trigger } from "./triggers.ts";

const ids = {
  account: "5e0c6f0e-8a3e-4d3b-9c1b-6c2d8e4f9a15",
  workspace: "0b0ad2f4-5f3c-4c7e-9a51-3a1f2f1f5d10",
  root: "f7d2c1a0-6e0b-4f8b-8a73-2b9e5c4d1e11",
  folder: "6d9a2a52-1f0e-4a3e-b6a5-77d6f3f0c112",
  file: "3c1b7a70-9d0f-4c55-9f0e-5b8f1f6a7c13",
  engine: "d0c3f5a8-2b61-4f0e-9d7c-1e4a6b8c0d16",
  installation: "e1d4a6b9-3c72-4a1f-8e8d-2f5b7c9d1e17",
  execution: "f2e5b7ca-4d83-4b20-9f9e-3a6c8dae2f18",
  apiKey: "03f6c8db-5e94-4c31-a0af-4b7d9ebf3a19",
  trigger: "14a7d9ec-6fa5-4d42-b1b0-5c8eafc04b20",
  version: "a1b5b1e6-70a5-4d0e-8b0a-0c8a1d2e3f14",
};
/** The SHA-256 of "hello". */
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
const formerState: FormerState = {
  parentId: ids.folder,
  name: "hello.txt",
  head: ids.version,
  attributes: node.attributes,
  isDeleted: true,
};
const restoredItem: RestoredItem = { action: "restore", nodeId: ids.file, kind: "file", path: node.path };
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

const engineRef = { id: ids.engine, name: "thumbnails" };
const author = { account: "ada" };
const engine: Engine = {
  ...engineRef,
  description: "Makes a small picture of each large one",
  timeLimitSeconds: 600,
  scopes: ["node.node.read-all", "node.file.read", "node.node.create", "node.node.update", "node.journal.create"],
  inputSchema: { type: "object", properties: { size: { type: "integer" } } },
  createdAt: moment,
};
const installation: Installation = {
  id: ids.installation,
  engine: engineRef,
  workspace: inWorkspace,
  folderId: ids.folder,
  createdAt: moment,
  by: author,
};
const newInstallation: NewInstallation = { engine: "thumbnails" };
const newExecution: NewExecution = { engine: "thumbnails", input: { size: 200 }, idempotencyKey: "run-1" };
const execution: Execution = {
  id: ids.execution,
  engine: engineRef,
  workspace: inWorkspace,
  installationId: ids.installation,
  state: "succeeded",
  input: { size: 200 },
  cause: null,
  createdAt: moment,
  startedAt: moment,
  endedAt: moment,
  exitCode: 0,
  detail: null,
  logBytes: 14,
  by: author,
};
const logLine: LogLine = { number: 1, time: moment, stream: "out", text: "hello.jpg done" };
const newApiKey: NewApiKey = { name: "backup", scopes: ["node.node.read-all", "node.file.read"] };
const apiKey: ApiKey = {
  id: ids.apiKey,
  name: "backup",
  account,
  workspace: inWorkspace,
  scopes: newApiKey.scopes,
  createdAt: moment,
  expiresAt: null,
  lastUsedAt: null,
};
const newTrigger: NewTrigger = {
  name: "new pictures",
  engine: "thumbnails",
  on: { journal: { kinds: ["created", "updated"], path: "/pictures/**" } },
  input: { size: 200 },
};
const trigger: Trigger = {
  id: ids.trigger,
  name: newTrigger.name,
  workspace: inWorkspace,
  engine: engineRef,
  on: newTrigger.on,
  input: newTrigger.input,
  isEnabled: true,
  createdAt: moment,
  by: author,
  lastExecutionId: ids.execution,
  nextAt: null,
  failures: 0,
  detail: null,
};

/** Schemas without an entry are shown by the examples of their parts. */
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
  ListedNode: { ...node, deletedAt: moment, deletedBy: author },
  FormerState: formerState,
  Restoration: { name: "hello again.txt", idempotencyKey: "restore-1" },
  TreeRestoration: { at: moment, exact: true, plan: true },
  RestoredItem: restoredItem,
  RestoredSlice: { items: [restoredItem], next: null, position: 43 },
  Exchange: { with: ids.file, withRevision: 1 },
  NewJournalEntry: newJournalEntry,
  AccountRef: account,
  WorkspaceRef: inWorkspace,
  AccountStatus: accountStatus,
  Author: { account: "ada", mount: "laptop" },
  Grant: grant,
  NewWorkspace: { name: "main" },
  EngineRef: engineRef,
  Engine: engine,
  Installation: installation,
  NewInstallation: newInstallation,
  Execution: execution,
  NewExecution: newExecution,
  LogLine: logLine,
  ApiKey: apiKey,
  CreatedApiKey: { ...apiKey, key: "wsfs_key_qk7sX0b1mVnN3o9y2LrT8wZc5eHfJ4uA6dGpKiQxRzE" },
  NewApiKey: newApiKey,
  Trigger: trigger,
  NewTrigger: newTrigger,
  TriggerPatch: { isEnabled: false },
  NewGrant: { account: "ada", role: "viewer" },
  Problem: problem,
};

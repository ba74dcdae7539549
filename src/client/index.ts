/**
 * `wsfs/client`, the SDK for apps and engines: the gateway's files, nodes, journal and engines for a program of your
 * own, without a mount. docs/sdk.md has examples.
 *
 *     import { connect, tokenFile } from "wsfs/client";
 *
 *     const gateway = connect({
 *       baseUrl: "https://gateway.example",
 *       credentials: tokenFile("/home/me/.token"),
 *       workspace: "docs",
 *     });
 *     for await (const node of gateway.nodes.list({ path: "/reports" })) console.log(node.name, node.size);
 *     await gateway.close();
 *
 * A call that fails rejects with a `RemoteError`, whose `code` says what to do, unless it says otherwise.
 */
/// <reference types="node" preserve="true" />
export type { ApiKey, CreatedApiKey } from "../contract/api-keys.ts";
export type { Attributes, AttributesPatch } from "../contract/attributes.ts";
export type { Engine, Execution, Installation, LogLine } from "../contract/engines.ts";
export { EXECUTION_STATES, type ExecutionState } from "../contract/execution-states.ts";
export type { Features } from "../contract/features.ts";
export type { ContentSource, HttpAnswer, HttpRequest, Transport } from "../contract/http.ts";
export type {
  AccountStatus,
  Author,
  Grant,
  JournalEntry,
  JournalPage,
  ListedNode,
  Node,
  NodePage,
  RestoredItem,
  RestoredSlice,
  Version,
  VersionPage,
  Workspace,
  WorkspacePage,
  WrittenNode,
} from "../contract/resources.ts";
export type { Role } from "../contract/roles.ts";
export type { Trigger, TriggerCondition, TriggerPatch } from "../contract/triggers.ts";
export type { Logger, LogLevel } from "../lib/log.ts";
export type { Timer } from "../lib/runtime.ts";
export type { Client, CopySource, NodeChange, TriggerDescription } from "./client.ts";
export { type ClientClock as Clock, type ConnectOptions, connect, type Gateway } from "./connect.ts";
export { type Credentials, staticToken, tokenFile } from "./credentials.ts";
export { REMOTE_ERROR_CODES, RemoteError, type RemoteErrorCode, type RemoteErrorDetails } from "./errors.ts";
export { createHttpTransport, type HttpTransportOptions, type SilenceLimits } from "./http-transport.ts";
export type { Keyring } from "./keyring.ts";
export { type DeviceLoginEvent, type DeviceLoginOptions, deviceLogin } from "./login/device-login.ts";
export type { Login, Store } from "./login/login-file.ts";
export {
  checkStore,
  describeLogin,
  endLogin,
  type SavedLoginOptions,
  type StoreOptions,
  savedLogin,
  saveLogin,
} from "./login/saved-login.ts";
export type { ProfileFile } from "./profile.ts";
export type { AccountCalls, GrantListOptions, GrantOptions } from "./sdk/account.ts";
export type { ApiKeyListOptions, ApiKeyOptions, ApiKeys, NewApiKeyOptions } from "./sdk/api-keys.ts";
export type { RequestOptions, WriteOptions } from "./sdk/context.ts";
export type { Downloaded, DownloadOptions } from "./sdk/download.ts";
export { engine, type RunningEngine } from "./sdk/engine.ts";
export type {
  EngineListOptions,
  Engines,
  InstallationListOptions,
  Installations,
  InstallOptions,
} from "./sdk/engines.ts";
export type {
  ExecutionListOptions,
  Executions,
  LogFollowOptions,
  LogListOptions,
  LogOptions,
  StartOptions,
} from "./sdk/executions.ts";
export type { Files, UploadOptions, WriteContentOptions } from "./sdk/files.ts";
export type { FollowOptions } from "./sdk/follow.ts";
export type { Journal, JournalListOptions } from "./sdk/journal.ts";
export type {
  ChangeOptions,
  CreateOptions,
  NodeListOptions,
  Nodes,
  PathOptions,
  RestoreOptions,
  RestoreTreeOptions,
} from "./sdk/nodes.ts";
export type { Page, Paged } from "./sdk/paged.ts";
export type { FileContent, ReadOptions } from "./sdk/read.ts";
export type { RetryOptions } from "./sdk/retry.ts";
export type { Uploadable } from "./sdk/sources.ts";
export type { NewTriggerOptions, TriggerListOptions, Triggers } from "./sdk/triggers.ts";
export type { VersionListOptions, Versions, VersionsPage } from "./sdk/versions.ts";
export type { WorkspaceListOptions, Workspaces } from "./sdk/workspaces.ts";
export { describeToken, type TokenClaims } from "./token-claims.ts";
export { type TokenCommandOptions, tokenCommand } from "./token-command.ts";

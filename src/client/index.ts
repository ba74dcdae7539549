/**
 * `wsfs/client`: the gateway's files, nodes and journal from a program of your own, without a mount.
 *
 *     import { createClient, createHttpTransport, tokenFile } from "wsfs/client";
 *
 *     const client = createClient({
 *       transport: createHttpTransport({ baseUrl: "https://gateway.example" }),
 *       credentials: tokenFile("/home/me/.token"),
 *     });
 *     const workspace = await client.findWorkspace("docs");
 *     if (workspace === undefined) throw new Error("no workspace docs");
 *     for (const node of (await client.listFolder(workspace.rootId)).items) console.log(node.name, node.size);
 *     await client.close();
 *
 * Every call rejects with a `RemoteError`; its `code` says what to do.
 */
export type { Attributes, AttributesPatch } from "../contract/attributes.ts";
export type { ContentSource, HttpAnswer, HttpRequest, Transport } from "../contract/http.ts";
export type {
  JournalEntry,
  JournalPage,
  Node,
  NodePage,
  Version,
  VersionPage,
  Workspace,
  WrittenNode,
} from "../contract/resources.ts";
export type {
  CallOptions,
  Capabilities,
  Client,
  Content,
  ContentOptions,
  ListOptions,
  UploadOptions,
} from "./client.ts";
export { type ClientOptions, createClient } from "./create-client.ts";
export { type Credentials, staticToken, tokenFile } from "./credentials.ts";
export { REMOTE_ERROR_CODES, RemoteError, type RemoteErrorCode, type RemoteErrorDetails } from "./errors.ts";
export { createHttpTransport, type HttpTransportOptions, type SilenceLimits } from "./http-transport.ts";
export { describeToken, type TokenClaims } from "./token-claims.ts";

/** Puts the client together: every call, bound to one transport and one source of tokens. */
import type { Transport } from "../contract/http.ts";
import type { WallTime } from "../lib/clocks.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import { getAccount, listGrants, removeGrant, setGrant } from "./accounts.ts";
import { adaptTransport } from "./adapt.ts";
import { createApiKey, listApiKeys, revokeApiKey } from "./api-keys.ts";
import { createSend } from "./call.ts";
import type { Client } from "./client.ts";
import { getContent } from "./content.ts";
import type { Credentials } from "./credentials.ts";
import {
  cancelExecution,
  createInstallation,
  getEngine,
  getExecution,
  getInstallation,
  listEngines,
  listExecutions,
  listInstallations,
  readLogs,
  removeInstallation,
  startExecution,
  streamLogs,
} from "./engines.ts";
import { createGatewayClock } from "./gateway-clock.ts";
import { appendJournal, readJournal, streamJournal } from "./journal.ts";
import { listFolder, listNodes, listVersions } from "./listings.ts";
import { streamNodes } from "./node-lines.ts";
import {
  copyNode,
  createFolder,
  deleteNode,
  exchangeNodes,
  getNode,
  getNodeByPath,
  patchNode,
  restoreNode,
  restoreTree,
} from "./nodes.ts";
import { OWN_PROFILE, type Profile } from "./profile.ts";
import { createTrigger, getTrigger, listTriggers, removeTrigger, updateTrigger } from "./triggers.ts";
import { upload, uploadByPath, writeContent, writeContentByReference } from "./uploads.ts";
import { createWorkspace, findWorkspace, listWorkspacePage, listWorkspaces } from "./workspaces.ts";

export interface ClientOptions {
  /** Closed together with the client. */
  readonly transport: Transport;
  readonly credentials: Credentials;
  /** One line per request at debug, never with a token. Default: none. */
  readonly log?: Logger;
  /** For Retry-After dates and for gateways without positions. Default: the machine's clock. */
  readonly now?: () => WallTime;
  /** Default: the machine's clock. */
  readonly elapsed?: Clock["elapsed"];
  /**
   * Called when the gateway has refused a token. If a fresh token then makes the call succeed, no error shows the
   * refusal.
   */
  readonly onRefusal?: () => void;
  /** The name of the mount that makes the changes, as the journal shows it: 1 to 128 visible ASCII characters. */
  readonly mount?: string | undefined;
  /** The differences of the gateway from the contract. Default: none. */
  readonly profile?: Profile;
}

export function createClient(options: ClientOptions): Client {
  const { credentials, log = SILENT, now = systemClock.wallClock, profile = OWN_PROFILE } = options;
  const { transport: network, elapsed = systemClock.elapsed } = options;
  if (profile.warning !== undefined) log.warn({}, profile.warning);
  const transport = profile === OWN_PROFILE ? network : adaptTransport(network, profile, now);
  const gatewayClock = createGatewayClock(now, elapsed);
  const { onRefusal, mount } = options;
  const send = createSend({ transport, credentials, log, now, gatewayClock, onRefusal, mount });
  return {
    features: profile.features,
    gatewayTime: gatewayClock.now,
    listWorkspaces: (...args) => listWorkspaces(send, ...args),
    findWorkspace: (...args) => findWorkspace(send, ...args),
    listWorkspacePage: (...args) => listWorkspacePage(send, ...args),
    listFolder: (...args) => listFolder(send, ...args),
    listNodes: (options) => listNodes(send, options),
    streamNodes: (options) => streamNodes(send, options),
    getNode: (...args) => getNode(send, ...args),
    getNodeByPath: (...args) => getNodeByPath(send, ...args),
    getContent: (...args) => getContent(send, ...args),
    listVersions: (...args) => listVersions(send, ...args),
    upload: (...args) => upload(send, ...args),
    uploadByPath: (...args) => uploadByPath(send, ...args),
    writeContent: (...args) => writeContent(send, ...args),
    writeContentByReference: (...args) => writeContentByReference(send, ...args),
    createFolder: (...args) => createFolder(send, ...args),
    copyNode: (...args) => copyNode(send, ...args),
    patchNode: (...args) => patchNode(send, ...args),
    exchangeNodes: (...args) => exchangeNodes(send, ...args),
    deleteNode: (...args) => deleteNode(send, ...args),
    restoreNode: (...args) => restoreNode(send, ...args),
    restoreTree: (...args) => restoreTree(send, ...args),
    readJournal: (...args) => readJournal(send, ...args),
    streamJournal: (...args) => streamJournal(send, ...args),
    appendJournal: (...args) => appendJournal(send, ...args),
    getAccount: (...args) => getAccount(send, ...args),
    listGrants: (...args) => listGrants(send, ...args),
    setGrant: (...args) => setGrant(send, ...args),
    removeGrant: (...args) => removeGrant(send, ...args),
    createWorkspace: (...args) => createWorkspace(send, ...args),
    listEngines: (...args) => listEngines(send, ...args),
    getEngine: (...args) => getEngine(send, ...args),
    createInstallation: (...args) => createInstallation(send, ...args),
    listInstallations: (...args) => listInstallations(send, ...args),
    getInstallation: (...args) => getInstallation(send, ...args),
    removeInstallation: (...args) => removeInstallation(send, ...args),
    startExecution: (...args) => startExecution(send, ...args),
    listExecutions: (...args) => listExecutions(send, ...args),
    getExecution: (...args) => getExecution(send, ...args),
    cancelExecution: (...args) => cancelExecution(send, ...args),
    readLogs: (...args) => readLogs(send, ...args),
    streamLogs: (...args) => streamLogs(send, ...args),
    createApiKey: (...args) => createApiKey(send, ...args),
    listApiKeys: (...args) => listApiKeys(send, ...args),
    revokeApiKey: (...args) => revokeApiKey(send, ...args),
    createTrigger: (...args) => createTrigger(send, ...args),
    listTriggers: (...args) => listTriggers(send, ...args),
    getTrigger: (...args) => getTrigger(send, ...args),
    updateTrigger: (...args) => updateTrigger(send, ...args),
    removeTrigger: (...args) => removeTrigger(send, ...args),
    close: () => transport.close(),
  };
}

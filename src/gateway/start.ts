/** A gateway as a program uses it: a data folder served over HTTP, and tokens for it. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { SCOPES } from "../contract/scopes.ts";
import { type Checkpoints, startCheckpoints } from "../lib/checkpoints.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { type AccountStore, openAccounts } from "./accounts/index.ts";
import { createBareGateway } from "./bare.ts";
import { startCheckpointWorker } from "./checkpoint-worker.ts";
import type { GatewayOptions } from "./context.ts";
import { createGateway, type Gateway } from "./core.ts";
import {
  blobFolder,
  databasePath,
  ensureSigningKey,
  executionFolders,
  lockDataFolder,
  makeDataFolder,
  readSigningKey,
} from "./data-folder.ts";
import { openDiskBlobs } from "./disk-blobs.ts";
import { createEngineProcesses, type EngineHost, openLogs } from "./engines/index.ts";
import { startServer } from "./server.ts";
import { createSignIn } from "./sign-in/index.ts";
import { openDatabase } from "./store.ts";
import { signToken } from "./tokens.ts";

/** How `wsfs mount` learns to speak to a bare gateway. */
export const BARE_PROFILE = fileURLToPath(new URL("../../src/gateway/bare.profile.json", import.meta.url));
export const DEFAULT_WORKSPACE = "workspace";

const TIDY_MS = 3600 * 1000;
export const MAX_EXECUTIONS = 4;

export interface StartGatewayOptions extends Partial<GatewayOptions> {
  /** Made when missing; owner-only. */
  readonly dataDir: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Names that clients know it by, besides its addresses; requests for others are refused. */
  readonly names?: readonly string[];
  /** Default 0: any that is free. */
  readonly port?: number;
  /** For a Unix socket by which its owner alone reaches it as well. Default: none. */
  readonly socketPath?: string;
  /** Names of workspaces to be there; made when missing. Without any, a gateway that has none gets "workspace". */
  readonly workspaces?: readonly string[];
  /** So many executions run at a time. Default 4. */
  readonly maxExecutions?: number;
  /** Speak only the plainest calls; see bare.ts. */
  readonly bare?: boolean;
  readonly log?: Logger;
  /** Whether there is a control endpoint, with which anybody who reaches the gateway makes it misbehave. */
  readonly control?: boolean;
}

export interface TokenOptions {
  /** Name or id of the workspace the token is bound to. */
  readonly workspace?: string;
  /** Default: all. */
  readonly scopes?: readonly string[];
  /** Default: one hour. */
  readonly ttlSeconds?: number;
}

export interface RunningGateway {
  readonly baseUrl: string;
  readonly port: number;
  /** It is reached by `socketPath`, which not every disk can hold. */
  readonly hasSocket: boolean;
  issueToken(options?: TokenOptions): Promise<string>;
  /** Lag, latency and failures, while it runs. */
  setOptions(options: Partial<GatewayOptions>): void;
  /** Ends within 5 s, open connections included, and frees the folder. */
  close(): Promise<void>;
}

/** Throws when the folder is served already or from a newer program, the port is taken, or a quota names no workspace. */
export async function startGateway(options: StartGatewayOptions): Promise<RunningGateway> {
  const {
    dataDir,
    host = "127.0.0.1",
    names = [],
    port = 0,
    socketPath,
    workspaces,
    log = SILENT,
    maxExecutions = MAX_EXECUTIONS,
    bare = false,
    control = false,
    quota,
    ...behaviour
  } = options;
  await makeDataFolder(dataDir);
  const lock = lockDataFolder(dataDir);
  let database: Database.Database | undefined;
  let accounts: AccountStore | undefined;
  let checkpoints: Checkpoints | undefined;
  let tidying: NodeJS.Timeout | undefined;
  const free = async () => {
    clearInterval(tidying);
    await checkpoints?.close();
    database?.close();
    accounts?.close();
    lock.release();
  };
  try {
    const signingKey = await ensureSigningKey(dataDir);
    database = openDatabase(databasePath(dataDir));
    const store = openAccounts(dataDir, systemClock);
    accounts = store;
    const blobs = await openDiskBlobs(blobFolder(dataDir));
    let issuer: string | undefined;
    const gateway = createGateway({
      clock: systemClock,
      database,
      blobs,
      signingKey,
      accounts: store,
      issuer: () => issuer,
      options: behaviour,
      log,
      turn: setImmediate,
      control,
      // A bare one has no word for them.
      ...(bare ? {} : { engines: engineHost(dataDir, maxExecutions) }),
    });
    for (const name of workspaces ?? [DEFAULT_WORKSPACE]) gateway.ensureWorkspace(name);
    if (quota !== undefined) gateway.setOptions({ quota });
    systemClock.step("gateway: opened");
    await gateway.engines?.recover();
    await tidy(gateway, log);
    tidying = setInterval(() => void tidy(gateway, log), TIDY_MS);
    tidying.unref();
    const path = databasePath(dataDir);
    const worker = startCheckpointWorker(path);
    checkpoints = startCheckpoints({ worker, databasePath: path, lookMs: 500, logBytes: 8 * 1024 * 1024, log });
    const served = bare ? createBareGateway(gateway) : gateway;
    const signInAt = (baseUrl: string) => {
      issuer = baseUrl;
      return createSignIn({ store, clock: systemClock, issuer, log, workspacesOf: gateway.workspacesOf });
    };
    // Another language than ours has no word for people.
    const server = await startServer({
      ...{ gateway: served, clock: systemClock, host, names, port, log },
      ...(socketPath === undefined ? {} : { socketPath }),
      ...(bare ? {} : { signInAt }),
    });
    gateway.engines?.begin(server.baseUrl);
    let closed: Promise<void> | undefined;
    return {
      baseUrl: server.baseUrl,
      port: server.port,
      hasSocket: server.hasSocket,
      issueToken: (token) => issueToken(dataDir, token),
      setOptions: (changes) => gateway.setOptions(changes),
      close() {
        gateway.endStreams();
        closed ??= Promise.all([gateway.engines?.close(), server.close()])
          .then(() => gateway.settle())
          .finally(free);
        return closed;
      },
    };
  } catch (error) {
    await free();
    throw error;
  }
}

function engineHost(dataDir: string, maxExecutions: number): EngineHost {
  const { work, logs } = executionFolders(dataDir);
  return {
    processes: createEngineProcesses({ folder: work, clock: systemClock, environment: process.env }),
    logs: openLogs({ folder: logs, clock: systemClock }),
    maxExecutions,
  };
}

/** What nothing refers to any more, and keys that have lived long enough. */
async function tidy(gateway: Gateway, log: Logger): Promise<void> {
  try {
    gateway.tidyAccounts();
    await gateway.forget();
    const collected = await gateway.collectBlobs();
    if (collected > 0) log.info({ collected }, "removed blobs of unfinished uploads");
  } catch (error) {
    log.error({ err: error }, "what is not needed any more could not be removed");
  }
}

/** A token of the gateway whose data folder this is, running or not. Throws when there is none, or no such workspace. */
export async function issueToken(dataDir: string, options: TokenOptions = {}): Promise<string> {
  const { workspace, scopes = SCOPES, ttlSeconds = 3600 } = options;
  const key = await readSigningKey(dataDir);
  if (key === undefined || !existsSync(databasePath(dataDir))) {
    throw new Error(`There is no gateway's data in ${dataDir}: start "wsfs gateway --data" on it first.`);
  }
  const bound = workspace === undefined ? undefined : workspaceId(dataDir, workspace);
  const accounts = openAccounts(dataDir, systemClock);
  try {
    return signToken(key, systemClock, { scopes, ttlSeconds, workspace: bound }, accounts.revokedUntil());
  } finally {
    accounts.close();
  }
}

/** Ends every token and every login of the gateway, running or not. */
export function revokeAll(dataDir: string): void {
  const accounts = openAccounts(dataDir, systemClock);
  try {
    accounts.revokeAll();
  } finally {
    accounts.close();
  }
}

/** The workspaces of a gateway, running or not, by name. */
export function workspacesIn(dataDir: string): { readonly id: string; readonly name: string }[] {
  const database = new Database(databasePath(dataDir), { readonly: true });
  try {
    return database.prepare<[], { id: string; name: string }>("SELECT id, name FROM workspace ORDER BY name").all();
  } finally {
    database.close();
  }
}

function workspaceId(dataDir: string, nameOrId: string): string {
  const rows = workspacesIn(dataDir);
  const row = rows.find(({ id, name }) => id === nameOrId || name === nameOrId);
  if (row !== undefined) return row.id;
  const names = rows.map(({ name }) => JSON.stringify(name)).join(", ");
  throw new Error(
    `There is no workspace ${JSON.stringify(nameOrId)}; there ${rows.length === 1 ? "is" : "are"} ${names}.`,
  );
}

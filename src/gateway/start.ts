/** A gateway as a program uses it: a data folder served over HTTP, and tokens for it. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { SCOPES } from "../contract/scopes.ts";
import { type Checkpoints, startCheckpoints } from "../lib/checkpoints.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import type { Timer } from "../lib/runtime.ts";
import { type Connection, openSqlite } from "../lib/sqlite/index.ts";
import { systemClock } from "../lib/system-clock.ts";
import { HOUR_MS } from "../lib/time.ts";
import { type AccountStore, openAccounts } from "./accounts/index.ts";
import { createBareGateway } from "./bare.ts";
import { startCheckpointWorker } from "./checkpoint-worker.ts";
import type { GatewayOptions } from "./context.ts";
import { createGateway, type Gateway } from "./core.ts";
import {
  blobFolder,
  checkHold,
  databasePath,
  ensureSigningKey,
  executionFolders,
  type HoldCheck,
  lockDataFolder,
  makeDataFolder,
  readSigningKey,
} from "./data-folder.ts";
import { openDiskBlobs } from "./disk-blobs.ts";
import { createEngineProcesses, type EngineHost, openLogs } from "./engines/index.ts";
import { ensureFirstOwner } from "./first-owner.ts";
import { ownerCalls } from "./owner-calls.ts";
import { pruneDaily } from "./retention/daily.ts";
import { startServer } from "./server.ts";
import { createSignIn, type OutsideIssuer } from "./sign-in/index.ts";
import { openDatabase } from "./store.ts";
import { startClaims, tokenFileKeeper, tokenPath, writeTokenFile } from "./token-file.ts";
import { signToken, type TokenClaims } from "./tokens.ts";

/** The profile by which `wsfs mount` learns to speak to a bare gateway. */
export const BARE_PROFILE = fileURLToPath(new URL("../../src/gateway/bare.profile.json", import.meta.url));
const DEFAULT_WORKSPACE = "workspace";

const TIDY_MS = HOUR_MS;
const TOKEN_LOOK_MS = 1000;
const MAX_EXECUTIONS = 4;

export interface StartGatewayOptions extends Partial<GatewayOptions> {
  /** Created when missing, readable by its owner only. */
  readonly dataDir: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Names by which clients know the gateway, besides its addresses. Requests for other names are refused. */
  readonly names?: readonly string[];
  /** Default 0: any free port. */
  readonly port?: number;
  /** Path of a Unix socket by which only the owner reaches the gateway as well. Default: none. */
  readonly socketPath?: string;
  /**
   * Names of the required workspaces, created when missing. Without this, a gateway that has no workspace gets
   * "workspace".
   */
  readonly workspaces?: readonly string[];
  /** The largest number of executions at a time. Default 4. */
  readonly maxExecutions?: number;
  /** Offers only the plainest calls; see bare.ts. */
  readonly bare?: boolean;
  readonly log?: Logger;
  /** The OpenID issuer at which people sign in, instead of by a password of this gateway. */
  readonly outside?: OutsideIssuer | undefined;
  /** True if there is a control endpoint, by which every client of the gateway can make it misbehave. */
  readonly control?: boolean;
}

interface TokenOptions {
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
  /** True if it can be reached by `socketPath`, which some disks cannot hold. */
  readonly hasSocket: boolean;
  issueToken(options?: TokenOptions): Promise<string>;
  /** Changes lag, latency and failures while the gateway runs. */
  setOptions(options: Partial<GatewayOptions>): void;
  /** Ends the gateway and its open connections within 5 s, and frees the folder. */
  close(): Promise<void>;
}

/**
 * Rejects with an Error if the folder is served already or was written by a newer program, or if the port is taken
 * (EADDRINUSE); with a ProblemError (400) if a quota names an unknown workspace.
 */
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
    outside,
    quota,
    ...behaviour
  } = options;
  await makeDataFolder(dataDir);
  const lock = lockDataFolder(dataDir);
  let database: Connection | undefined;
  let accounts: AccountStore | undefined;
  let hold: HoldCheck | undefined;
  let pruning: Timer | undefined;
  let checkpoints: Checkpoints | undefined;
  const timers: NodeJS.Timeout[] = [];
  const every = (milliseconds: number, work: () => void) => void timers.push(setInterval(work, milliseconds).unref());
  const free = async () => {
    for (const timer of timers) clearInterval(timer);
    pruning?.cancel();
    await checkpoints?.close();
    hold?.close();
    database?.close();
    accounts?.close();
    lock.release();
  };
  try {
    const signingKey = await ensureSigningKey(dataDir);
    database = openDatabase(databasePath(dataDir));
    const store = openAccounts(dataDir, systemClock);
    accounts = store;
    hold = checkHold(dataDir);
    const blobs = await openDiskBlobs(blobFolder(dataDir), hold.isHeld);
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
      // The protocol of a bare gateway has no engines.
      ...(bare ? {} : { engines: engineHost(dataDir, maxExecutions) }),
    });
    const required = workspaces ?? (workspacesIn(dataDir).length > 0 ? [] : [DEFAULT_WORKSPACE]);
    for (const name of required) gateway.ensureWorkspace(name);
    if (quota !== undefined) gateway.setOptions({ quota });
    systemClock.step("gateway: opened");
    await gateway.engines?.recover();
    await tidy(gateway, log);
    every(TIDY_MS, () => void tidy(gateway, log));
    const { issueToken: issue, readOwnToken: read } = gateway;
    const keepTokenFile = tokenFileKeeper({ dataDir, accounts: store.accounts, log, issue, read });
    keepTokenFile();
    every(TOKEN_LOOK_MS, keepTokenFile);
    const path = databasePath(dataDir);
    const worker = startCheckpointWorker(path);
    checkpoints = startCheckpoints({ worker, databasePath: path, lookMs: 500, logBytes: 8 * 1024 * 1024, log });
    const served = bare ? createBareGateway(gateway) : gateway;
    const signInAt = (baseUrl: string) => {
      issuer = baseUrl;
      return createSignIn({ store, clock: systemClock, issuer, log, outside, workspacesOf: gateway.workspacesOf });
    };
    // The language of a bare gateway has no sign-in of people.
    const server = await startServer({
      ...{ gateway: served, clock: systemClock, host, names, port, log },
      ...(socketPath === undefined ? {} : { socketPath, owner: ownerCalls(gateway.retention) }),
      ...(bare ? {} : { signInAt }),
    });
    gateway.engines?.begin(server.baseUrl);
    pruning = pruneDaily(systemClock, gateway.retention, log);
    let closed: Promise<void> | undefined;
    return {
      baseUrl: server.baseUrl,
      port: server.port,
      hasSocket: server.hasSocket,
      issueToken: (token) => issueToken(dataDir, token),
      setOptions: (changes) => gateway.setOptions(changes),
      close() {
        gateway.endStreams();
        pruning?.cancel();
        closed ??= Promise.all([gateway.engines?.close(), gateway.retention.close(), server.close()])
          .then(() => gateway.finishRequests())
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

/** Removes unused blobs, and expired keys and sign-ins. */
async function tidy(gateway: Gateway, log: Logger): Promise<void> {
  try {
    gateway.tidyAccounts();
    await gateway.forget();
    const collected = await gateway.collectBlobs();
    if (collected > 0) log.info({ collected }, "removed blobs of unfinished uploads");
  } catch (error) {
    log.error({ err: error }, "unused blobs, expired keys or sign-ins could not be removed");
  }
}

/**
 * Issues a token of the gateway with this data folder, running or not. Rejects with an Error if the folder has no
 * gateway's data, or if there is no such workspace.
 */
export async function issueToken(dataDir: string, options: TokenOptions = {}): Promise<string> {
  const { workspace, scopes = SCOPES, ttlSeconds = 3600 } = options;
  return withSigner(dataDir, (_, sign) => {
    const bound = workspace === undefined ? undefined : workspaceId(dataDir, workspace);
    return sign({ scopes, ttlSeconds, workspace: bound });
  });
}

/** The access that `wsfs start` gives its user. */
interface StartAccess {
  readonly tokenFile: string;
  /** The user's sign-in; undefined when the account was removed, or when others existed before. */
  readonly owner: { readonly account: string; readonly passwordFile: string | undefined } | undefined;
}

/**
 * Makes the account of `wsfs start` when it is due (first-owner.ts), and writes the token file. The caller holds the
 * lock of start. `name`: name of the person. `workspace`: name or id. `isRenewed`: the running gateway keeps the token
 * file.
 */
export async function prepareStart(
  dataDir: string,
  { name, workspace, isRenewed }: { readonly name: string; readonly workspace: string; readonly isRenewed: boolean },
): Promise<StartAccess> {
  return withSigner(dataDir, async (store, sign) => {
    const ids = workspacesIn(dataDir).map(({ id }) => id);
    await ensureFirstOwner(store, dataDir, name, ids);
    const tokenFile = tokenPath(dataDir);
    writeTokenFile(tokenFile, sign(startClaims(store.accounts, workspaceId(dataDir, workspace), isRenewed)));
    const owner = store.accounts.firstOwner();
    const passwordFile = store.firstPassword()?.file;
    return { tokenFile, owner: owner === undefined ? undefined : { account: owner.name, passwordFile } };
  });
}

async function withSigner<T>(
  dataDir: string,
  work: (store: AccountStore, sign: (claims: TokenClaims) => string) => T | Promise<T>,
): Promise<T> {
  const key = await readSigningKey(dataDir);
  if (key === undefined || !existsSync(databasePath(dataDir))) {
    throw new Error(`There is no gateway's data in ${dataDir}: start "wsfs gateway --data" on it first.`);
  }
  const store = openAccounts(dataDir, systemClock);
  try {
    return await work(store, (claims) => signToken(key, systemClock, claims, store.revokedUntil()));
  } finally {
    store.close();
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

/** Returns the workspaces of a gateway, running or not, in the order of their creation. */
export function workspacesIn(dataDir: string): { readonly id: string; readonly name: string }[] {
  const database = openSqlite(databasePath(dataDir), { readonly: true });
  try {
    return database.prepare<[], { id: string; name: string }>("SELECT id, name FROM workspace ORDER BY rowid").all();
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

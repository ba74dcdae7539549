/** `wsfs start`: a local gateway and a mount of its workspace in one command. */
import { readdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type GatewayRecord, gatewaySocket, runningGateway, startLock } from "../daemon/gateway-record.ts";
import { readMountTable } from "../daemon/mount-table.ts";
import { startGatewayOf } from "../daemon/start-gateway.ts";
import { unclaimFolder } from "../lib/claim-folder.ts";
import { forbidCore } from "../lib/core-file.ts";
import { makeFolders, unmakeFolders } from "../lib/make-folders.ts";
import { checkApart } from "./apart.ts";
import { crashesAMinute, userFolders } from "./environment.ts";
import { LOCAL } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import { FLAGS } from "./flags.ts";
import { isUnusedData, makeDataFolder } from "./gateway.ts";
import { isGatewayUsed } from "./gateway-watch.ts";
import { checkKernel, mountAndStay, ofTransport, ownFolders, prepareMountpoint, readProfile } from "./mount.ts";
import { findPlace } from "./mountpoint.ts";
import type { Values } from "./options.ts";
import { pollUntil } from "./poll.ts";
import { absolute } from "./working-folder.ts";

const ASK_AGAIN_MS = 200;
const ANSWER_LIMIT_MS = 10_000;
/** The longest wait for another `start` on the same gateway, until its mount is usable. */
const OTHERS_LIMIT_MS = 60_000;

export async function start(values: Values<"start">): Promise<number> {
  checkKernel();
  forbidCore();
  const crashes = crashesAMinute();
  const folders = userFolders();
  const dir = values.dir ?? join(folders.home, "Workspace");
  const data = absolute(values.data ?? join(folders.data, "gateway"));
  checkApart(dir, [
    { what: values.data === undefined ? `the gateway's folder ${data}` : `--data ${values.data}`, path: data },
    ...ownFolders(values["state-dir"]),
  ]);
  const profile = readProfile(values.profile);
  const { mountpoint, made } = await makeMountpoint(dir);
  const madeData = makeDataFolder(values.data ?? data);
  // The lock is held until the mount is there. Meanwhile the gateway does not end, and no second one is started.
  const lock = startLock(data);
  let release = () => {
    release = () => {};
    lock.close();
  };
  let gateway: UsedGateway | undefined;
  let isNewData = false;
  let isMounted = false;
  try {
    if (!(await pollUntil(lock.take, OTHERS_LIMIT_MS))) {
      throw new Failure(`another wsfs start has been at work in ${data} for ${OTHERS_LIMIT_MS / 1000} s`);
    }
    isNewData = isUnusedData(data);
    gateway = await useGateway(data, values.wait, folders.runtimes);
    const { letGo } = gateway;
    const { baseUrl, workspace, hasSocket, isKept, renewsToken = false } = gateway.record;
    const { prepareStart } = await import("../gateway/start.ts");
    const { tokenFile, owner } = await prepareStart(data, { name: userName(), workspace, isRenewed: renewsToken });
    const account = owner?.account ?? null;
    const passwordFile = owner?.passwordFile ?? null;
    const exitCode = await mountAndStay({
      dir,
      background: values.background,
      allowOther: false,
      settings: {
        mountpoint,
        baseUrl,
        ...(hasSocket === true ? { gatewaySocket: gatewaySocket(data) } : {}),
        ...(isKept === true ? { keptGateway: data } : {}),
        workspace,
        tokenFile,
        ...profile,
        ...(values["state-dir"] === undefined ? {} : { stateDir: absolute(values["state-dir"]) }),
        cacheSize: FLAGS["cache-size"].default,
        namesAhead: FLAGS["names-ahead"].default,
        patienceMs: values.wait * 1000,
        shortenWaits: 1,
        readOnly: false,
        passthrough: true,
        ...ofTransport(values.transport, crashes, { workspace, allowOther: false }),
        ...(values.owners === undefined ? {} : { owners: values.owners }),
        durability: "local",
        logLevel: values.debug ? "debug" : values["log-level"],
      },
      onReady(pid) {
        isMounted = true;
        letGo();
        release();
        process.stdout.write(
          values.json
            ? `${JSON.stringify({ baseUrl, workspace, account, passwordFile, tokenFile, mountpoint, pid })}\n`
            : describe({
                ...{ baseUrl, workspace, account, passwordFile, tokenFile, mountpoint, data },
                isDefault: values.data === undefined,
                background: values.background,
              }),
        );
      },
    });
    if (!values.background) await gateway.ended();
    return exitCode;
  } catch (error) {
    release();
    gateway?.letGo();
    await gateway?.ended();
    if (!isMounted) {
      unmakeFolders(made);
      // If the gateway did not start, the folder stays, because its log has the reason.
      if (isNewData && gateway !== undefined) takeBackData(data, madeData);
    }
    throw error;
  }
}

/** Removes the folder of a new gateway after a failed mount, unless the folder is in use or has content by now. */
function takeBackData(data: string, made: readonly string[]): void {
  const lock = startLock(data);
  try {
    if (lock.take() && runningGateway(data) === undefined && !hasContent(data)) unclaimFolder(data, made);
  } finally {
    lock.close();
  }
}

function hasContent(data: string): boolean {
  const entries = readdirSync(join(data, "blobs"), { recursive: true, withFileTypes: true });
  return entries.some((entry) => entry.isFile());
}

interface Started {
  readonly baseUrl: string;
  readonly workspace: string;
  /** Null: the account that `start` made was removed, or there were other accounts before. */
  readonly account: string | null;
  /** Null: the password was changed. */
  readonly passwordFile: string | null;
  readonly tokenFile: string;
  readonly mountpoint: string;
  readonly data: string;
  /** The data folder is the one that the environment `local` uses. */
  readonly isDefault: boolean;
  readonly background: boolean;
}

function describe(at: Started): string {
  const { baseUrl, tokenFile, mountpoint } = at;
  const login = at.isDefault
    ? `wsfs login --env ${LOCAL}`
    : `wsfs env add NAME --base-url ${baseUrl} && wsfs login --env NAME`;
  return [
    `Workspace ${at.workspace} is mounted at ${mountpoint}`,
    `  gateway     ${baseUrl}`,
    `  sign in     ${login}; the page is ${baseUrl}/sign-in`,
    `  account     ${accountOf(at)}`,
    `  token file  ${tokenFile}`,
    `  try         curl -H "Authorization: Bearer $(cat '${tokenFile}')" '${baseUrl}/v1/nodes?path=/'`,
    at.background ? `  end         wsfs umount '${mountpoint}'` : "  end         Ctrl-C",
    "",
  ].join("\n");
}

function accountOf({ account, passwordFile, data }: Started): string {
  if (account === null) return `those of wsfs gateway user list --data '${data}'`;
  return passwordFile === null ? `${account}, with your password` : `${account}, with the password in ${passwordFile}`;
}

/** The user's name on this machine; "" when the user has none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}

/** `made`: the folders that did not exist before. Rejects with a Failure. */
async function makeMountpoint(dir: string): Promise<{ mountpoint: string; made: readonly string[] }> {
  const place = findPlace(dir, readMountTable());
  let made: readonly string[] = [];
  if (place.is === "nothing") {
    try {
      made = makeFolders(place.path);
    } catch (cause) {
      throw new Failure(`${dir} cannot be made (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, { cause });
    }
  }
  return { mountpoint: await prepareMountpoint(dir), made };
}

interface UsedGateway {
  readonly record: GatewayRecord;
  /** From now on a gateway that this command started lives for as long as mounts use it. */
  letGo(): void;
  /**
   * Resolves when a gateway that this command started has ended, or when other mounts keep it. Resolves at once for one
   * that ran before.
   */
  ended(): Promise<void>;
}

/** The gateway that serves the folder already, when it answers; otherwise a new one. Rejects with a Failure. */
async function useGateway(data: string, seconds: number, runtimes: readonly string[]): Promise<UsedGateway> {
  const end = performance.now() + seconds * 1000;
  for (let isReported = false; ; isReported = true) {
    const running = runningGateway(data);
    if (running === undefined) return startOwnGateway(data, runtimes);
    const trouble = await troubleOf(running);
    if (trouble === undefined) return { record: running, letGo() {}, ended: async () => {} };
    const what = `the gateway of ${data} (process ${running.process?.pid}, ${running.baseUrl}) does not answer: ${trouble}`;
    if (performance.now() >= end) throw new Failure(what);
    if (!isReported) process.stderr.write(`wsfs: ${what}; asking again for ${seconds} s\n`);
    await pause(ASK_AGAIN_MS);
  }
}

/** Undefined when it answers: any answer shows that it listens. */
async function troubleOf({ baseUrl }: GatewayRecord): Promise<string | undefined> {
  try {
    await fetch(baseUrl, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) });
    return undefined;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return lineOf(cause);
  }
}

async function startOwnGateway(data: string, runtimes: readonly string[]): Promise<UsedGateway> {
  const gateway = startGatewayOf(data);
  let hasExited = false;
  void gateway.exited.then(() => {
    hasExited = true;
  });
  const announced = await gateway.announced;
  // The gateway writes its record before its first line of output.
  const record = announced === undefined ? undefined : runningGateway(data);
  if (record === undefined) {
    gateway.letGo();
    await gateway.exited;
    throw new Failure(`the local gateway of ${data} could not be started; ${gateway.logPath} says why`);
  }
  return {
    record,
    letGo: gateway.letGo,
    async ended() {
      // A gateway that died was followed by another one.
      const isOver = () => hasExited && runningGateway(data) === undefined;
      await pollUntil(() => isOver() || isGatewayUsed(runtimes, record.baseUrl, data));
    },
  };
}

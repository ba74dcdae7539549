/** `wsfs gateway`: serves a local gateway until it is told to end. */
import { readFileSync, statSync } from "node:fs";
import { gatewaySocket, readGatewayRecord, runningGateway, writeGatewayRecord } from "../daemon/gateway-record.ts";
import { identifyProcess } from "../daemon/processes.ts";
import { type Claim, claimFolder, FolderOfOthers, isUnused } from "../lib/claim-folder.ts";
import { forbidCore } from "../lib/core-file.ts";
import type { LogLevel } from "../lib/log.ts";
import { userFolders } from "./environment.ts";
import { EXIT, Failure } from "./failure.ts";
import { createGatewayLog } from "./gateway-log.ts";
import type { Values } from "./options.ts";
import { absolute } from "./working-folder.ts";

type OutsideIssuer = import("../gateway/sign-in/index.ts").OutsideIssuer;

const TOKEN_SECONDS = 30 * 86_400;
/** The limit for requests under way at the end. A command that waits for this process to end waits 5 s. */
const CLOSE_LIMIT_MS = 3000;

export async function gateway(values: Values<"gateway">): Promise<number> {
  forbidCore();
  const data = absolute(values.data);
  if (values.bare && values.quota.length > 0) {
    throw new Failure("--quota: a bare gateway has no quota", EXIT.usage);
  }
  const outside = outsideIssuer(values);
  // Files that are made in the folder must belong to the owner alone.
  process.umask(0o077);
  makeDataFolder(values.data);
  const other = runningGateway(data);
  if (other !== undefined) {
    throw new Failure(`${values.data} is already served by process ${other.process?.pid} at ${other.baseUrl}`);
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
  const asked = values["workspace-list"];
  const noted = readGatewayRecord(data)?.workspace;
  // A data folder that was restored has workspaces, and no record.
  const required = asked.length > 0 ? asked : noted === undefined ? undefined : [noted];
  const running = await listen(values, data, required, outside);
  const { workspacesIn } = await import("../gateway/start.ts");
  const workspaces = required ?? workspacesIn(data).map(({ name }) => name);
  const [workspace = ""] = workspaces;
  const identity = identifyProcess(process.pid);
  const isKept = values["until-unmounted"];
  const { baseUrl, port, hasSocket } = running;
  const record = { baseUrl, port, workspace, hasSocket, isKept, renewsToken: true };
  writeGatewayRecord(data, { ...record, ...(identity === undefined ? {} : { process: identity }) });
  await announce(values, data, baseUrl, workspaces);
  const ends = [aborted(stop.signal)];
  if (isKept) {
    const { waitUntilUnused } = await import("./gateway-watch.ts");
    ends.push(waitUntilUnused(userFolders().runtimes, baseUrl, data));
  }
  await Promise.race(ends);
  await withLimit(running.close(), CLOSE_LIMIT_MS);
  writeGatewayRecord(data, record);
  return EXIT.ok;
}

const CLAIM: Claim = {
  marker: "wsfs-gateway",
  text: "Workspaces of a local gateway of wsfs, all versions of all files. Removing the folder removes them.",
  formerNames: ["gateway.db", "signing-key"],
};

/**
 * Makes a gateway's folder, and changes nothing in a folder with other content. Returns the folders it made, the
 * highest first. Throws a Failure.
 */
export function makeDataFolder(given: string): string[] {
  const data = absolute(given);
  try {
    return claimFolder(data, CLAIM);
  } catch (cause) {
    if (cause instanceof FolderOfOthers) throw new Failure(`--data: ${given} is not a gateway's: ${cause.message}`);
    throw new Failure(`--data: ${given} cannot be used (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, {
      cause,
    });
  }
}

/** True if no gateway has served the folder yet. The caller must hold the lock. */
export function isUnusedData(data: string): boolean {
  return isUnused(data, CLAIM, ["start.lock"]);
}

/**
 * The issuer that people sign in at. The secret is in a file that only its owner may read, because all users can see
 * arguments.
 */
function outsideIssuer(values: Values<"gateway">): OutsideIssuer | undefined {
  const { issuer, "client-id": clientId, "client-secret-file": file } = values;
  if ((issuer === undefined) !== (clientId === undefined) || (issuer === undefined && file !== undefined)) {
    throw new Failure("--issuer and --client-id go together; --client-secret-file goes with them", EXIT.usage);
  }
  if (issuer === undefined || clientId === undefined) return undefined;
  if (values.bare) throw new Failure("--issuer: a bare gateway has no sign-in", EXIT.usage);
  return { issuer, clientId, clientSecret: file === undefined ? undefined : readSecret(file) };
}

function readSecret(file: string): string {
  let text: string;
  try {
    if ((statSync(absolute(file)).mode & 0o077) !== 0) {
      throw new Failure(`--client-secret-file: others may read ${file}; chmod 600 ${file}`);
    }
    text = readFileSync(absolute(file), "utf8").trim();
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw new Failure(`--client-secret-file: ${file} cannot be read (${code})`, EXIT.failure, { cause });
  }
  if (text === "") throw new Failure(`--client-secret-file: ${file} is empty`);
  return text;
}

/** Without --port it takes the port of last time, so that saved addresses stay valid. Rejects with a Failure. */
async function listen(
  values: Values<"gateway">,
  data: string,
  workspaces: readonly string[] | undefined,
  outside: OutsideIssuer | undefined,
) {
  const { startGateway } = await import("../gateway/start.ts");
  const faults = await misbehaviour(values);
  const at = (port: number) =>
    startGateway({
      dataDir: data,
      host: values.host,
      names: values["allow-host"],
      port,
      socketPath: gatewaySocket(data),
      ...(workspaces === undefined ? {} : { workspaces }),
      ...faults,
      control: values.faults,
      outside,
      maxFileBytes: values["max-upload"],
      maxExecutions: values["max-executions"],
      bare: values.bare,
      log: createGatewayLog({ level: logLevel(values), json: values.json }),
    });
  const last = readGatewayRecord(data)?.port ?? 0;
  try {
    return await at(values.port ?? last);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" && values.port === undefined && last !== 0) {
      process.stderr.write(
        `wsfs: another program has port ${last}, which this gateway had before: it takes another one\n`,
      );
      return at(0);
    }
    const { ProblemError } = await import("../gateway/problems.ts");
    // A workspace of --quota that does not exist. Only the gateway knows its workspaces.
    if (error instanceof ProblemError) throw new Failure(`--${error.message}`, EXIT.usage);
    throw listenFailure(error, values);
  }
}

/** Translates the flags into the options of gateway/fault-options.ts, which checks them. */
async function misbehaviour(values: Values<"gateway">) {
  const { excessOfRates, FAULT_TARGETS, FAULTS, faultOptions } = await import("../gateway/fault-options.ts");
  const times = (name: "latency" | "path-lag" | "journal-lag" | "id-lag") => values[name];
  const faults: Record<string, Record<string, number>> = {};
  for (const { target, fault, rate } of values.fault) {
    const name = fault.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (!FAULT_TARGETS.some((known) => known === target)) {
      throw new Failure(`--fault: expected one of ${FAULT_TARGETS.join(", ")}, got "${target}"`, EXIT.usage);
    }
    if (!FAULTS.some((known) => known === name)) {
      const known = FAULTS.map((one) => one.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
      throw new Failure(`--fault: expected one of ${known.join(", ")}, got "${fault}"`, EXIT.usage);
    }
    if (faults[target]?.[name] !== undefined) {
      throw new Failure(`--fault: expected one rate for each, got ${target}:${fault} twice`, EXIT.usage);
    }
    faults[target] = { ...faults[target], [name]: rate };
  }
  const options = faultOptions.parse({
    latencyMs: times("latency").ms,
    latencyJitterMs: times("latency").jitterMs,
    pathLagMs: times("path-lag").ms,
    pathLagJitterMs: times("path-lag").jitterMs,
    journalLagMs: times("journal-lag").ms,
    journalLagJitterMs: times("journal-lag").jitterMs,
    idLagMs: times("id-lag").ms,
    idLagJitterMs: times("id-lag").jitterMs,
    failRate: values["fail-rate"],
    faults,
    retryAfterSeconds: values["retry-after"],
    uploadBytesPerSecond: values["upload-speed"],
    downloadBytesPerSecond: values["download-speed"],
    tokenSeconds: values["token-life"] ?? 0,
    clockSkewMs: values["clock-skew"],
    quota: quotas(values),
  });
  // Each value was checked when it was read.
  const excess = excessOfRates(options);
  if (excess === undefined) return options;
  throw new Failure(`${options.failRate > 0 ? "--fail-rate and " : ""}--fault: ${excess.problem}`, EXIT.usage);
}

function quotas(values: Values<"gateway">): Record<string, number> {
  const found = new Map<string, number>();
  for (const { workspace, bytes } of values.quota) {
    const whose = workspace === "all" ? "each workspace" : `"${workspace}"`;
    if (found.has(workspace)) throw new Failure(`--quota: the quota of ${whose} is given twice`, EXIT.usage);
    found.set(workspace, bytes);
  }
  return Object.fromEntries(found);
}

function listenFailure(error: unknown, values: Values<"gateway">): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return new Failure(`--port: ${values.port} is in use by another program`);
  if (code === "EACCES") return new Failure(`--port: ${values.port} may not be used by this user`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return new Failure(`--host: ${values.host} is no address of this machine`);
  }
  return error;
}

/** Prints the address, and how to use the first of the workspaces. */
async function announce(
  values: Values<"gateway">,
  data: string,
  baseUrl: string,
  workspaces: readonly string[],
): Promise<void> {
  const [workspace = ""] = workspaces;
  if (values["until-unmounted"]) {
    // The process that started it takes the token from the folder.
    process.stdout.write(`${JSON.stringify({ baseUrl, workspace })}\n`);
    return;
  }
  if (values.json) {
    const { issueToken } = await import("../gateway/start.ts");
    const token = await issueToken(data, { workspace, ttlSeconds: TOKEN_SECONDS });
    process.stdout.write(`${JSON.stringify({ baseUrl, workspace, token })}\n`);
    return;
  }
  const token = `wsfs gateway token --data ${quoted(data)} --workspace ${quoted(workspace)}`;
  const { BARE_PROFILE } = await import("../gateway/start.ts");
  const list = values.bare ? "/v1/workspaces" : "/v1/nodes?path=/";
  const read = values.bare ? [] : [`  read:   ${baseUrl}/docs (for programs: ${baseUrl}/openapi.json)`];
  const profile = values.bare ? ` --profile ${quoted(BARE_PROFILE)}` : "";
  process.stdout.write(
    [
      `Gateway at ${baseUrl}, workspace${workspaces.length === 1 ? "" : "s"} ${workspaces.join(", ")}, data in ${data}. Ctrl-C ends it.`,
      `  try:    curl -H "Authorization: Bearer $(${token})" '${baseUrl}${list}'`,
      ...read,
      `  token:  ${token} > token; chmod 600 token`,
      `  mount:  wsfs mount DIR --base-url ${baseUrl} --workspace ${quoted(workspace)} --token-file token${profile}`,
      "",
    ].join("\n"),
  );
}

/** The text as one word of a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The log of the gateway that `start` keeps is a file that is never rotated, so it has no line for each request. */
function logLevel({ debug, quiet, ...values }: Values<"gateway">): LogLevel {
  if (debug) return "debug";
  return quiet || values["until-unmounted"] ? "warn" : "info";
}

/** Resolves at once if the signal came while the gateway started. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function withLimit(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  await Promise.race([promise, new Promise((resolve) => setTimeout(resolve, milliseconds).unref())]);
}

/** `wsfs gateway`: serves a local gateway until it is told to end. */
import { resolve } from "node:path";
import { identifyProcess } from "../daemon/processes.ts";
import { type Claim, claimFolder, FolderOfOthers } from "../lib/claim-folder.ts";
import type { Logger, LogLevel } from "../lib/log.ts";
import { EXIT, Failure } from "./failure.ts";
import { readGatewayRecord, runningGateway, writeGatewayRecord } from "./gateway-record.ts";
import { waitUntilUnused } from "./gateway-watch.ts";
import { userFolders, type Values } from "./options.ts";

const TOKEN_SECONDS = 30 * 86_400;
/** Requests under way get this long; a command of ours that waits for them ends within 5 s. */
const CLOSE_LIMIT_MS = 3000;

export async function gateway(values: Values<"gateway">): Promise<number> {
  const data = resolve(values.data);
  // Whatever is made in the folder is the owner's alone.
  process.umask(0o077);
  makeDataFolder(values.data);
  const other = runningGateway(data);
  if (other !== undefined) {
    throw new Failure(`${values.data} is already served by process ${other.process?.pid} at ${other.baseUrl}`);
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
  const { DEFAULT_WORKSPACE } = await import("../gateway/start.ts");
  const asked = values["workspace-list"];
  const workspaces = asked.length > 0 ? asked : [readGatewayRecord(data)?.workspace ?? DEFAULT_WORKSPACE];
  const workspace = workspaces[0] ?? DEFAULT_WORKSPACE;
  const running = await listen(values, data, workspaces);
  const identity = identifyProcess(process.pid);
  const record = { baseUrl: running.baseUrl, port: running.port, workspace };
  writeGatewayRecord(data, { ...record, ...(identity === undefined ? {} : { process: identity }) });
  await announce(values, data, running.baseUrl, workspace);
  const ends = [aborted(stop.signal)];
  if (values["until-unmounted"]) ends.push(waitUntilUnused(userFolders().runtime, running.baseUrl));
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

/** Nothing of a folder that is somebody's is changed. */
export function makeDataFolder(given: string): void {
  const data = resolve(given);
  try {
    claimFolder(data, CLAIM);
  } catch (cause) {
    if (cause instanceof FolderOfOthers) throw new Failure(`--data: ${given} is not a gateway's: ${cause.message}`);
    throw new Failure(`--data: ${given} cannot be used (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, {
      cause,
    });
  }
}

/** On the port of last time where none is asked for, so that addresses written down stay true. */
async function listen(values: Values<"gateway">, data: string, workspaces: readonly string[]) {
  const { startGateway } = await import("../gateway/start.ts");
  const at = (port: number) =>
    startGateway({
      dataDir: data,
      host: values.host,
      port,
      workspaces,
      latencyMs: values.latency,
      pathLagMs: values["path-lag"],
      journalLagMs: values["journal-lag"],
      failRate: values["fail-rate"],
      log: standardErrorLog(values.debug ? "debug" : "warn"),
    });
  const last = readGatewayRecord(data)?.port ?? 0;
  try {
    return await at(values.port ?? last);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" && values.port === undefined && last !== 0) return at(0);
    throw listenFailure(error, values);
  }
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

async function announce(values: Values<"gateway">, data: string, baseUrl: string, workspace: string): Promise<void> {
  if (values.json) {
    const { issueToken } = await import("../gateway/start.ts");
    const token = await issueToken(data, { workspace, ttlSeconds: TOKEN_SECONDS });
    process.stdout.write(`${JSON.stringify({ baseUrl, workspace, token })}\n`);
    return;
  }
  process.stdout.write(
    [
      `Gateway at ${baseUrl}, workspace ${workspace}, data in ${data}. Ctrl-C ends it.`,
      `  token:  wsfs gateway token --data '${data}' --workspace '${workspace}' > token; chmod 600 token`,
      `  list:   curl -H "Authorization: Bearer $(cat token)" '${baseUrl}/v1/nodes?path=/'`,
      `  mount:  wsfs mount DIR --base-url ${baseUrl} --workspace '${workspace}' --token-file token`,
      "",
    ].join("\n"),
  );
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** One line a message; of an error, what went wrong. */
function standardErrorLog(level: LogLevel): Logger {
  const isLevelEnabled = (asked: LogLevel) => LEVELS.indexOf(asked) >= LEVELS.indexOf(level);
  const at = (own: LogLevel) => (fields: object, message: string) => {
    if (!isLevelEnabled(own)) return;
    const shown = Object.entries(fields).map(
      ([name, value]) => `${name}=${value instanceof Error ? value.message : JSON.stringify(value)}`,
    );
    process.stderr.write(`wsfs gateway: ${[message, ...shown].join(" ").replace(/\s*\n\s*/g, " ")}\n`);
  };
  return { isLevelEnabled, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

async function withLimit(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  await Promise.race([promise, new Promise((resolve) => setTimeout(resolve, milliseconds).unref())]);
}

/**
 * Who serves a gateway's data folder, so that `start` and its mounts find it, and the port it had, so that it
 * gets it again: gateway.json in the folder, with the Unix socket and the lock that lie beside it.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type LockFile, lockFile } from "./lock-file.ts";
import { isAlive, processIdentity } from "./processes.ts";

const record = z.object({
  baseUrl: z.string(),
  port: z.number().int(),
  /** The first workspace: what `start` mounts. */
  workspace: z.string(),
  /** It is reached by its Unix socket, too. */
  hasSocket: z.boolean().optional(),
  /** It was started by `start`: it ends with the last mount, and if it dies before, it is started again. */
  isKept: z.boolean().optional(),
  /** It writes another token into the token file of `start` in time; absent: it is of a former release. */
  renewsToken: z.boolean().optional(),
  /** Absent: it has ended. */
  process: processIdentity.optional(),
});
export type GatewayRecord = z.infer<typeof record>;

export function writeGatewayRecord(data: string, value: GatewayRecord): void {
  const path = join(data, "gateway.json");
  writeFileSync(`${path}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined when there is none that can be read. */
export function readGatewayRecord(data: string): GatewayRecord | undefined {
  try {
    return record.parse(JSON.parse(readFileSync(join(data, "gateway.json"), "utf8")));
  } catch {
    return undefined;
  }
}

export function runningGateway(data: string): GatewayRecord | undefined {
  const found = readGatewayRecord(data);
  return found?.process !== undefined && isAlive(found.process) ? found : undefined;
}

/** Only the owner of the data folder gets to it, whoever has the port. */
export function gatewaySocket(data: string): string {
  return join(data, "gateway.sock");
}

/** Who has it begins a mount from the gateway of this folder, starts that gateway again, or ends it. */
export function startLock(data: string): LockFile {
  return lockFile(join(data, "start.lock"));
}

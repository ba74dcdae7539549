/**
 * The record of a gateway's data folder, gateway.json in that folder. `start` and its mounts find the process that
 * serves the folder by it, and the next gateway takes the same port. The Unix socket and the lock lie beside it.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type LockFile, lockFile } from "./lock-file.ts";
import { isAlive, processIdentity } from "./processes.ts";

const record = z.object({
  baseUrl: z.string(),
  port: z.number().int(),
  /** The first workspace, the one that `start` mounts. */
  workspace: z.string(),
  /** The gateway is also reached by its Unix socket. */
  hasSocket: z.boolean().optional(),
  /** The gateway was started by `start`: it ends with the last mount, and is started again if it dies before. */
  isKept: z.boolean().optional(),
  /** The gateway renews the token in the token file of `start` in time. Absent: it is of an earlier release. */
  renewsToken: z.boolean().optional(),
  /** Absent: the gateway has ended. */
  process: processIdentity.optional(),
});
export type GatewayRecord = z.infer<typeof record>;

export function writeGatewayRecord(data: string, value: GatewayRecord): void {
  const path = join(data, "gateway.json");
  writeFileSync(`${path}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined when there is no readable record. */
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

/**
 * The path of the gateway's socket. Only the owner of the data folder can connect there. Any user may take the port.
 */
export function gatewaySocket(data: string): string {
  return join(data, "gateway.sock");
}

/** The lock for mounting from this folder's gateway, for starting that gateway again, and for ending it. */
export function startLock(data: string): LockFile {
  return lockFile(join(data, "start.lock"));
}

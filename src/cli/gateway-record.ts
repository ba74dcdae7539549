/**
 * Who serves a gateway's data folder, so that `start` finds it, and the port it had, so that it
 * gets it again: gateway.json in the folder.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isAlive, processIdentity } from "../daemon/processes.ts";

const record = z.object({
  baseUrl: z.string(),
  port: z.number().int(),
  /** The first workspace: what `start` mounts. */
  workspace: z.string(),
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

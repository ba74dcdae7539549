/** Starts `gateway-process.ts` and ends it, gently or not. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const hello = z.object({ baseUrl: z.string(), token: z.string() });

export interface GatewayChild {
  readonly baseUrl: string;
  readonly token: string;
  readonly pid: number;
  end(signal: NodeJS.Signals): Promise<void>;
}

export async function startGatewayChild(dataDir: string): Promise<GatewayChild> {
  const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const child: ChildProcess = spawn(
    process.execPath,
    ["--import", path("../../scripts/typescript.mjs"), path("gateway-process.ts"), dataDir],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const { stdout, pid } = child;
  if (stdout === null || pid === undefined) throw new Error("The gateway did not start.");
  const exit = once(child, "exit");
  const line = await Promise.race([once(createInterface(stdout), "line"), exit.then(() => undefined)]);
  if (line === undefined) throw new Error("The gateway ended before it was ready.");
  return {
    ...hello.parse(JSON.parse(String(line[0]))),
    pid,
    async end(signal) {
      child.kill(signal);
      await exit;
    },
  };
}

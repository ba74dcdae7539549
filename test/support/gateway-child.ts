/** Starts `gateway-process.mjs` and ends it, gently or not. */
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

/** A process that has loaded everything and touched nothing yet. */
export interface WarmGateway {
  start(): Promise<GatewayChild>;
  /** Of one that was not started. */
  discard(): Promise<void>;
}

export async function startGatewayChild(dataDir: string): Promise<GatewayChild> {
  return warmGateway(dataDir).start();
}

/** `compiled`: of the files in dist/, which have to be there; it loads in less time. */
export function warmGateway(dataDir: string, compiled = false): WarmGateway {
  const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const script = path("gateway-process.mjs");
  const command = compiled
    ? [script, dataDir, path("../../dist/gateway/start.js")]
    : ["--import", path("../../scripts/typescript.mjs"), script, dataDir, path("../../src/gateway/start.ts")];
  const child: ChildProcess = spawn(process.execPath, command, { stdio: ["pipe", "pipe", "inherit"] });
  const { stdin, stdout, pid } = child;
  if (stdin === null || stdout === null || pid === undefined) throw new Error("The gateway did not start.");
  stdin.on("error", () => {});
  const exit = once(child, "exit");
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await exit;
  };
  return {
    async start() {
      stdin.write("start\n");
      const line = await Promise.race([once(createInterface(stdout), "line"), exit.then(() => undefined)]);
      if (line === undefined) throw new Error("The gateway ended before it was ready.");
      return { ...hello.parse(JSON.parse(String(line[0]))), pid, end };
    },
    discard: () => end("SIGKILL"),
  };
}

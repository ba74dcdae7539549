/** Starts a gateway's process (a bundle of gateway-bundle.ts) and ends it, gently or not. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Callee } from "./gateway-calls.ts";

const LOADER = fileURLToPath(new URL("gateway-process.cjs", import.meta.url));
const hello = z.object({ baseUrl: z.string(), token: z.string() });

/** At which time of coming by which fault point it dies. */
export interface DeathAt {
  readonly label: string;
  readonly times: number;
}

export interface GatewayChild extends Callee {
  readonly pid: number;
  end(signal: NodeJS.Signals): void;
  readonly ended: Promise<void>;
}

/** A process that has loaded everything and touched nothing yet. */
export interface WarmGateway {
  /** Undefined when it ended before it was ready. */
  start(death?: DeathAt): Promise<GatewayChild | undefined>;
  end(signal: NodeJS.Signals): void;
  readonly ended: Promise<void>;
}

export function warmGateway(bundle: string, dataDir: string): WarmGateway {
  const stdio = ["pipe", "pipe", "inherit"] as const;
  const child: ChildProcess = spawn(process.execPath, [LOADER, bundle, dataDir], { stdio: [...stdio] });
  const { stdin, stdout, pid } = child;
  if (stdin === null || stdout === null || pid === undefined) throw new Error("The gateway did not start.");
  stdin.on("error", () => {});
  const agent = new http.Agent({ keepAlive: true });
  const ended = once(child, "exit").then(() => agent.destroy());
  const end = (signal: NodeJS.Signals) => void child.kill(signal);
  return {
    async start(death) {
      stdin.write(`${JSON.stringify(death ?? {})}\n`);
      const line = await Promise.race([once(createInterface(stdout), "line"), ended]);
      if (line === undefined) return undefined;
      return { ...hello.parse(JSON.parse(String(line[0]))), pid, agent, end, ended };
    },
    end,
    ended,
  };
}

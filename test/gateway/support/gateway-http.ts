/** A core for tests (test/support/gateway-core.ts) behind a real socket: what is tested is what goes over the wire. */
import net from "node:net";
import { onTestFinished } from "vitest";
import { type Silence, startServer } from "../../../src/gateway/server.ts";
import { type Logger, SILENT } from "../../../src/lib/log.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import type { TestCore } from "../../support/gateway-core.ts";

export interface ServeOptions {
  readonly silence?: Silence;
  readonly host?: string;
  readonly names?: readonly string[];
  readonly log?: Logger;
}

export async function serveCore(
  core: TestCore,
  options: ServeOptions = {},
): Promise<{ readonly baseUrl: string; readonly port: number }> {
  const server = await startServer({
    gateway: core.gateway,
    clock: systemClock,
    host: "127.0.0.1",
    port: 0,
    log: SILENT,
    ...options,
  });
  onTestFinished(() => {
    core.gateway.endStreams();
    return server.close();
  });
  return { baseUrl: `http://127.0.0.1:${server.port}`, port: server.port };
}

/** Sends text as it is and answers all that comes back until the connection ends, however it does. */
export function sendRaw(port: number, ...texts: string[]): Promise<string> {
  return sendRawTo("127.0.0.1", port, ...texts);
}

export function sendRawTo(address: string, port: number, ...texts: string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, address);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
    for (const text of texts) socket.write(text);
  });
}

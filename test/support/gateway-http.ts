/** A core for tests (gateway-core.ts) behind a real socket, so that what is tested is what goes over the wire. */
import { onTestFinished } from "vitest";
import { startServer } from "../../src/gateway/server.ts";
import { SILENT } from "../../src/lib/log.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import type { TestCore } from "./gateway-core.ts";

export async function serveCore(core: TestCore): Promise<{ readonly baseUrl: string }> {
  const server = await startServer({
    gateway: core.gateway,
    clock: systemClock,
    host: "127.0.0.1",
    port: 0,
    log: SILENT,
  });
  onTestFinished(() => server.close());
  return { baseUrl: `http://127.0.0.1:${server.port}` };
}

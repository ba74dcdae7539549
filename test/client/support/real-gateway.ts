/** A real local gateway over HTTP in this process, and `connect` on it; both end with the test. */
import { onTestFinished } from "vitest";
import { type ConnectOptions, connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { type RunningGateway, type StartGatewayOptions, startGateway } from "../../../src/gateway/start.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface RealGateway {
  readonly server: RunningGateway;
  readonly token: string;
  readonly gateway: Gateway;
}

export async function realGateway(
  options: Partial<ConnectOptions> = {},
  serverOptions: Partial<StartGatewayOptions> = {},
): Promise<RealGateway> {
  const dataDir = serverOptions.dataDir ?? (await temporaryFolder());
  const server = await startGateway({ dataDir, ...serverOptions });
  onTestFinished(() => server.close());
  const token = await server.issueToken({ workspace: "workspace" });
  const gateway = connect({ baseUrl: server.baseUrl, credentials: staticToken(token), ...options });
  // Before the server, which would wait for its connections.
  onTestFinished(() => gateway.close());
  return { server, token, gateway };
}

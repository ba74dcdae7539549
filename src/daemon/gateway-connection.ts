/**
 * Connects a daemon with its gateway: over the network, or through a Unix socket of this user for the gateway of `wsfs
 * start`.
 */
import { Worker } from "node:worker_threads";
import type { ThreadOptions } from "../client/thread-messages.ts";
import { createThreadTransport } from "../client/thread-transport.ts";
import type { Transport } from "../contract/http.ts";
import type { Logger } from "../lib/log.ts";
import { onGatewayFailure } from "./gateway-failures.ts";
import { keepGateway } from "./keep-gateway.ts";
import type { DaemonSettings } from "./settings.ts";
import { silenceLimits } from "./waiting.ts";

/**
 * The largest number of connections for each of uploads, downloads and other requests, in this thread and again in the
 * thread for small changes. With a long round trip, many are needed to fill the line.
 */
const CONNECTIONS = 32;

interface GatewayConnection {
  readonly transport: Transport;
  /** To be called when the mount is there: from then on a gateway of `wsfs start` that dies is started again. */
  keep(): void;
  letGo(): void;
}

type Settings = Pick<DaemonSettings, "baseUrl" | "gatewaySocket" | "keptGateway" | "shortenWaits">;

export function openGatewayConnection(
  { baseUrl, gatewaySocket, keptGateway, shortenWaits }: Settings,
  log: Logger,
): GatewayConnection {
  const network = createThreadTransport({
    baseUrl,
    limits: silenceLimits(shortenWaits),
    connections: CONNECTIONS,
    guarded: true,
    ...(gatewaySocket === undefined ? {} : { socketPath: gatewaySocket }),
    startThread: (workerData) => startHttpThread(workerData, log),
  });
  const keeper = keptGateway === undefined ? undefined : keepGateway(keptGateway, baseUrl, log);
  return {
    transport: onGatewayFailure(network, log, () => void keeper?.look()),
    keep: () => keeper?.begin(),
    letGo: () => keeper?.end(),
  };
}

function startHttpThread(workerData: ThreadOptions, log: Logger): Worker {
  const withoutOne = (err: unknown) => log.error({ err }, "small changes are sent without a thread of their own");
  try {
    const worker = new Worker(new URL("../client/http-thread.js", import.meta.url), {
      name: "http",
      workerData,
      // The thread needs little memory at a time. By default it could collect as much garbage as a whole program.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    });
    worker.on("error", withoutOne);
    return worker;
  } catch (error) {
    withoutOne(error);
    throw error;
  }
}

/** How a daemon reaches its gateway: over the network, or that of `wsfs start` through a Unix socket of this user. */
import { Worker } from "node:worker_threads";
import type { ThreadOptions } from "../client/thread-messages.ts";
import { createThreadTransport } from "../client/thread-transport.ts";
import type { Transport } from "../contract/http.ts";
import type { Logger } from "../lib/log.ts";
import { onGatewayFailure } from "./gateway-failures.ts";
import { keepGateway } from "./keep-gateway.ts";
import type { DaemonSettings } from "./settings.ts";
import { silenceLimits } from "./waiting.ts";

/** For each of uploads, downloads and the rest, of this thread and of that of the small changes; at most. A far gateway is kept at work by many. */
const CONNECTIONS = 32;

export interface GatewayConnection {
  readonly transport: Transport;
  /** The mount is there: from now on a gateway of `wsfs start` that dies is started again. */
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
      // It holds little at a time; a thread may otherwise let as much rubbish lie as a whole program.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    });
    worker.on("error", withoutOne);
    return worker;
  } catch (error) {
    withoutOne(error);
    throw error;
  }
}

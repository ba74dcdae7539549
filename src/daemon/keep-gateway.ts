/**
 * Keeps the gateway of `wsfs start` alive: when it dies under its mounts, their daemons start it again. Of several
 * daemons at once, the one that gets the lock does it. `look` is called whenever the gateway does not answer, because
 * nothing else tells that it has died.
 */
import type { Logger } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import { runningGateway, startLock } from "./gateway-record.ts";
import { rateLimit } from "./rate-limit.ts";
import { startGatewayOf } from "./start-gateway.ts";

/** The limit of starts. A gateway that dies of the data in its folder must not be started for ever. */
const STARTS = 5;
const WITHIN_MS = 60_000;

interface GatewayKeeper {
  /** To be called when the mount is there: from now on it needs the gateway. */
  begin(): void;
  /** To be called when the gateway does not answer: it may have died. Never rejects. */
  look(): Promise<void>;
  end(): void;
}

/** `startGateway` and `elapsed`: others for tests. */
export function keepGateway(
  data: string,
  baseUrl: string,
  log: Logger,
  startGateway: typeof startGatewayOf = startGatewayOf,
  elapsed: Clock["elapsed"] = systemClock.elapsed,
): GatewayKeeper {
  const mayStart = rateLimit(STARTS, WITHIN_MS, elapsed);
  let isWanted = false;
  let isLooking = false;

  async function look(): Promise<void> {
    if (!isWanted || isLooking || runningGateway(data) !== undefined) return;
    isLooking = true;
    try {
      const lock = startLock(data);
      try {
        if (lock.take() && runningGateway(data) === undefined && mayStart()) await start();
      } finally {
        lock.close();
      }
    } catch (error) {
      log.error({ err: error }, "the gateway cannot be started again");
    } finally {
      isLooking = false;
    }
  }

  async function start(): Promise<void> {
    log.warn({}, "the gateway has died, and is started again");
    const gateway = startGateway(data);
    try {
      const at = await gateway.announced;
      if (at === undefined) throw new Error(`it ended at once; ${gateway.logPath} says why`);
      if (at.baseUrl !== baseUrl) {
        log.warn({}, `another program has the port of ${baseUrl} by now: the gateway is at ${at.baseUrl}`);
      }
    } finally {
      gateway.letGo();
    }
  }

  return {
    look,
    begin() {
      isWanted = true;
    },
    end() {
      isWanted = false;
    },
  };
}

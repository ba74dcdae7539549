/**
 * Tracks which supervisor looks after this daemon: the one that started it, or one that replaced that. It knows when
 * another one is needed, not how it is started.
 */
import { isConnected } from "../fuse/native.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { mountsOf, readMountTable } from "./mount-table.ts";
import { identifyProcess, type ProcessIdentity } from "./processes.ts";
import { rateLimit } from "./rate-limit.ts";
import type { DaemonSettings } from "./settings.ts";
import { startSupervisor } from "./start-supervisor.ts";
import type { SupervisorLink } from "./supervisor-link.ts";

export interface Overseer {
  readonly identity: ProcessIdentity;
  /** From now on the supervisor is replaced when it dies. */
  replace(link: SupervisorLink, device: number, connection: number): void;
  /** From now on `tell` hears of each new supervisor. */
  onChange(tell: (identity: ProcessIdentity) => void): void;
}

/** So many supervisors as the setting `crashes` says may be started within this time. */
const WITHIN_MS = 60_000;

export function createSupervisorWatch(settings: DaemonSettings, first: ProcessIdentity, log: Logger): Overseer {
  const mayReplace = rateLimit(settings.crashes, WITHIN_MS, systemClock.elapsed);
  let identity = first;
  let tell: (identity: ProcessIdentity) => void = () => {};
  return {
    get identity() {
      return identity;
    },
    replace(link, device, connection) {
      link.replaceWith(() => {
        // A mount that is gone needs no supervisor.
        if (!isConnected(device) || mountsOf(readMountTable(), connection).length === 0 || !mayReplace()) return;
        const another = startSupervisor(settings, device, link.servedMs(), log);
        const next = another === undefined ? undefined : identifyProcess(another.pid);
        if (another === undefined || next === undefined) return;
        identity = next;
        tell(next);
        return another.open;
      });
    },
    onChange(then) {
      tell = then;
    },
  };
}

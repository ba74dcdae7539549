/**
 * This daemon gives way to a successor on the same mount (`wsfs reload`). The successor takes over as from a daemon
 * that died, with two differences: a start of the successor is tried while programs are still served, and no request is
 * left half done. This file knows the order in which parts come to rest, not their work.
 *
 * A death of this daemon on the way is an ordinary death. Only the last message to the supervisor makes it a reload.
 */
import { execFile } from "node:child_process";
import type { WallTime } from "../lib/clocks.ts";
import { deferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import type { ReloadRequest } from "./control-messages.ts";
import { Refused } from "./control-server.ts";
import { type DaemonSettings, reloadTag, SETTINGS_VARIABLE, settingsText } from "./settings.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import { withTimeout } from "./with-timeout.ts";

/** The limit for requests in flight. Those that take longer are resent to the successor. */
const IN_HAND_LIMIT_MS = 10_000;
/** The limit for this daemon's own work. Work that still hangs then is left as after a crash. */
const REST_LIMIT_MS = 10_000;
const CHECK_LIMIT_MS = 30_000;
const DELIVERY_LIMIT_MS = 10_000;
/** Argument for the daemon's program: it only checks whether it could start, and ends. */
export const CHECK_ARGUMENT = "--check";

type Program = NonNullable<ReloadRequest["program"]>;

export interface Served {
  /** No more notifications are sent to the kernel. Resolves when the kernel has taken in all earlier ones. */
  hushKernel(): Promise<unknown>;
  /** Undoes `hushKernel`. */
  unhushKernel(): void;
  /** From now on new requests wait in the kernel. */
  pause(): void;
  /** Resolves when every request that was read is answered. */
  drained(): Promise<void>;
  /** The kernel resends unanswered requests to the successor. */
  readonly resend: boolean;
  /** Requests that are still unanswered do not become crash suspects. */
  forgive(): void;
  leave(quiet: () => Promise<unknown>): Promise<void>;
}

export interface Wish extends Pick<ReloadRequest, "id" | "program"> {
  /** The settings of the successor. */
  readonly settings: DaemonSettings;
}

export interface HandOver {
  /** Does all steps that may fail. Rejects with Refused; then everything is as before. */
  prepare(wish: Wish): Promise<void>;
  /** Begins the handover. To be called after `prepare`. */
  begin(): void;
  readonly isUnderWay: boolean;
  readonly begun: Promise<"handOver">;
  /** Brings all parts to rest. The process must end when it resolves. Never rejects. */
  rest(): Promise<void>;
  /**
   * Sends the last message to the supervisor. A supervisor that did not receive it takes our end for a death: it also
   * starts a successor, so open files must stay open. False: there is no supervisor, and the mount must be detached.
   */
  tell(link: Pick<SupervisorLink, "reload" | "isGone">): Promise<boolean>;
}

export function createHandOver(
  settings: Pick<DaemonSettings, "shortenWaits">,
  served: Served,
  /** True if all open handles are written down. Otherwise no daemon can take over. */
  canBeTakenOver: () => boolean,
  log: Logger,
): HandOver {
  const begun = deferred<"handOver">();
  let next: Wish | undefined;
  let since: WallTime | undefined;
  const inHandMs = IN_HAND_LIMIT_MS / settings.shortenWaits;

  /** With a kernel that resends nothing, unanswered requests would fail in programs. So all of them are waited for. */
  function pauseAndDrain(): Promise<unknown> {
    since = systemClock.wallClock();
    served.pause();
    return served.resend ? withTimeout(served.drained(), inHandMs) : served.drained();
  }

  return {
    get isUnderWay() {
      return next !== undefined;
    },
    begun: begun.promise,
    async prepare(wish) {
      if (next !== undefined) throw new Refused("another reload is under way");
      if (!canBeTakenOver()) throw new Refused("the open files of programs could not be written down");
      next = wish;
      try {
        await checkProgram(wish.settings, wish.program ?? ownProgram());
        systemClock.step("reload: checked");
        // A notification may wait in the kernel for a program that waits for an answer of this daemon. This process
        // could then not end before the successor has answered.
        if (!(await withTimeout(served.hushKernel(), DELIVERY_LIMIT_MS))) {
          served.unhushKernel();
          throw new Refused(`the kernel has been busy for ${DELIVERY_LIMIT_MS / 1000} s; try again`);
        }
        systemClock.step("reload: kernel told");
      } catch (error) {
        next = undefined;
        throw error;
      }
    },
    begin: () => begun.resolve("handOver"),
    async rest() {
      let resting: Promise<unknown> | undefined;
      const quiet = () => {
        resting ??= pauseAndDrain();
        return resting;
      };
      try {
        const isLeft = await withTimeout(served.leave(quiet), inHandMs + REST_LIMIT_MS);
        if (!isLeft) log.warn({}, "some parts of the daemon did not stop in time");
      } catch (error) {
        log.error({ err: error }, "a part of the daemon could not stop");
      }
      await quiet();
      systemClock.step("reload: at rest");
    },
    async tell(link) {
      if (next === undefined) return false;
      served.forgive();
      const errno = await link.reload(
        reloadTag({ id: next.id, since: since ?? systemClock.wallClock() }),
        JSON.stringify(next.settings),
        next.program,
      );
      if (errno !== 0) log.error({ errno }, "the supervisor could not be told of the reload");
      systemClock.step("reload: said");
      return errno === 0 || !link.isGone();
    },
  };
}

/** For a mount that no other daemon can serve: every wish is refused. */
export function noHandOver(why: string): HandOver {
  return {
    isUnderWay: false,
    begun: new Promise(() => {}),
    prepare: () => Promise.reject(new Refused(why)),
    begin() {},
    rest: () => Promise.resolve(),
    tell: () => Promise.resolve(false),
  };
}

/** The command line that this daemon was started with. */
function ownProgram(): Program {
  return [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
}

/** Checks whether the program, as it is on the disk now, can start with these settings. Rejects with Refused. */
async function checkProgram(settings: DaemonSettings, program: Program): Promise<void> {
  const text = settingsText(settings, program);
  if (text === undefined) throw new Refused("the profile is too long");
  const env = { ...process.env, [SETTINGS_VARIABLE]: text };
  const [node = "", ...args] = program;
  const options = { cwd: "/", env, timeout: CHECK_LIMIT_MS, killSignal: "SIGKILL" } as const;
  await new Promise<void>((resolve, reject) => {
    execFile(node, [...args, CHECK_ARGUMENT], options, (error, _, stderr) => {
      if (error === null) return resolve();
      const said = stderr.split("\n").find((line) => /^\w*Error\b/.test(line)) ?? error.message;
      reject(new Refused(`the installed daemon cannot start: ${said.trim()}`));
    });
  });
}

/**
 * This daemon gives way to a successor on the same mount (`wsfs reload`). That one takes over as from a daemon that
 * died; but what could be wrong with it is looked for while programs are still served, and nothing is left at hand.
 * Knows the order in which things come to rest, not what they are.
 *
 * Dying anywhere in it is a daemon's death like any other: the last word to the supervisor makes it a reload.
 */
import { execFile } from "node:child_process";
import { deferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import type { ReloadRequest } from "./control-messages.ts";
import { Refused } from "./control-server.ts";
import { type DaemonSettings, reloadTag, SETTINGS_VARIABLE, settingsText } from "./settings.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import { withTimeout } from "./with-timeout.ts";

/** For requests at hand: those that take longer come to the successor again. */
const AT_HAND_LIMIT_MS = 10_000;
/** For what this daemon does by itself; whatever hangs is as after a crash. */
const REST_LIMIT_MS = 10_000;
const CHECK_LIMIT_MS = 30_000;
const TOLD_LIMIT_MS = 10_000;
/** To the daemon's program: say whether you could start, and end. */
export const CHECK_ARGUMENT = "--check";

type Program = NonNullable<ReloadRequest["program"]>;

export interface Served {
  /** The kernel is told nothing any more; resolves when it has taken in all that it was told. */
  hushKernel(): Promise<unknown>;
  /** Undoes that. */
  unhushKernel(): void;
  /** What comes from now on waits in the kernel. */
  pause(): void;
  /** Resolves when everything that came is answered. */
  drained(): Promise<void>;
  /** The kernel sends what was not answered to the successor. */
  readonly resend: boolean;
  /** What is not answered is not this daemon's fault. */
  forgive(): void;
  leave(quiet: () => Promise<unknown>): Promise<void>;
}

export interface Wish extends Pick<ReloadRequest, "id" | "program"> {
  /** Of the successor. */
  readonly settings: DaemonSettings;
}

export interface HandOver {
  /** All that may fail. Rejects with Refused, and everything is as before. */
  prepare(wish: Wish): Promise<void>;
  /** After `prepare`. */
  begin(): void;
  readonly isUnderWay: boolean;
  readonly begun: Promise<"handOver">;
  /** Brings all to rest; the process is to end when it resolves. Never rejects. */
  rest(): Promise<void>;
  /**
   * The last word to the supervisor. One that has not taken it takes our end for a death: then too a successor comes, and
   * what is open must stay as it is. False: there is no supervisor, and the mount is to be taken off.
   */
  tell(link: Pick<SupervisorLink, "reload" | "isGone">): Promise<boolean>;
}

export function createHandOver(
  settings: Pick<DaemonSettings, "shortenWaits">,
  served: Served,
  /** Whether what is open is written down; without, no daemon can take over. */
  canBeTakenOver: () => boolean,
  log: Logger,
): HandOver {
  const begun = deferred<"handOver">();
  let next: Wish | undefined;
  let since = 0;
  const atHandMs = AT_HAND_LIMIT_MS / settings.shortenWaits;

  /** A kernel that sends nothing again would leave programs with an error. */
  function pauseAndDrain(): Promise<unknown> {
    since = Date.now();
    served.pause();
    return served.resend ? withTimeout(served.drained(), atHandMs) : served.drained();
  }

  return {
    get isUnderWay() {
      return next !== undefined;
    },
    begun: begun.promise,
    async prepare(wish) {
      if (next !== undefined) throw new Refused("another reload is under way");
      if (!canBeTakenOver()) throw new Refused("what programs have open could not be written down");
      next = wish;
      try {
        await checkProgram(wish.settings, wish.program ?? ownProgram());
        systemClock.step("reload: checked");
        // A notification may wait for a program, and that for an answer: we could not end before the successor begins.
        if (!(await withTimeout(served.hushKernel(), TOLD_LIMIT_MS))) {
          served.unhushKernel();
          throw new Refused(`the kernel has been busy for ${TOLD_LIMIT_MS / 1000} s; try again`);
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
        const isLeft = await withTimeout(served.leave(quiet), atHandMs + REST_LIMIT_MS);
        if (!isLeft) log.warn({}, "not all came to rest in time");
      } catch (error) {
        log.error({ err: error }, "not all came to rest");
      }
      await quiet();
      systemClock.step("reload: at rest");
    },
    async tell(link) {
      if (next === undefined) return false;
      served.forgive();
      const errno = await link.reload(reloadTag({ id: next.id, since }), JSON.stringify(next.settings), next.program);
      if (errno !== 0) log.error({ errno }, "the supervisor could not be told of the reload");
      systemClock.step("reload: said");
      return errno === 0 || !link.isGone();
    },
  };
}

/** Of a mount that no other daemon can serve: every wish for it is refused. */
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

/** As we were started. */
function ownProgram(): Program {
  return [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
}

/** The program as it is on the disk now, and these settings. */
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
      reject(new Refused(`a daemon of the program as it is now cannot start: ${said.trim()}`));
    });
  });
}

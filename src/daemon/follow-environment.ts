/**
 * A mount goes on with what the configuration file says of its environment: what `wsfs reload` could take over is taken over
 * by a daemon after this one, in the same way. A file with a fault changes nothing.
 */
import type { Logger } from "../lib/log.ts";
import { shareRuns } from "../lib/shared-run.ts";
import type { MountStatus } from "./control-messages.ts";
import { type EntrySettings, follow } from "./entry-settings.ts";
import type { DaemonSettings, FollowedEntry } from "./settings.ts";

export interface FollowOptions {
  readonly settings: DaemonSettings;
  readonly environment: FollowedEntry;
  /** Why the daemon that was to take this one's place could not serve, if there was one. */
  readonly failed: string | undefined;
  readonly log: Logger;
  /** What the file says now. Rejects with a line that says what is wrong with it. */
  read(name: string): Promise<EntrySettings>;
  /** Which file it is. */
  identity(): Promise<string>;
  watch(onChange: () => void): { close(): unknown };
  /** Rejects when this daemon goes on after all. */
  giveWay(next: DaemonSettings): Promise<void>;
}

export interface Follower {
  status(): NonNullable<MountStatus["environment"]>;
  close(): unknown;
}

export function followEnvironment(options: FollowOptions): Follower {
  const { settings, environment, failed, log } = options;
  const { name, file } = environment;
  let trouble: string | undefined;
  let isOver = false;

  function tell(now: string | undefined): void {
    if (now === trouble) return;
    trouble = now;
    if (now === undefined) log.info({ file }, "all of the configuration counts again");
    else log.warn({ file }, `not taken over from the configuration: ${now}`);
  }

  const look = shareRuns(async () => {
    if (isOver) return;
    try {
      const { next, taken, refused } = follow(settings, await options.read(name));
      tell(refused.length === 0 ? undefined : refused.join("; "));
      if (taken.length === 0 || isOver) return;
      log.info({ file, taken }, "the configuration has changed: another daemon takes over with it");
      await options.giveWay(next);
      isOver = true;
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error));
    }
  });

  /** It may have changed before it was watched. What a daemon has just failed with is not tried again. */
  async function begin(): Promise<void> {
    if ((await options.identity()) === environment.seen) return;
    if (failed === undefined) await look();
    else tell(failed);
  }

  const watcher = options.watch(() => void look());
  void begin();
  return {
    status: () => ({ name, file, ...(trouble === undefined ? {} : { trouble }) }),
    close() {
      isOver = true;
      return watcher.close();
    },
  };
}

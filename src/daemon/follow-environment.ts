/**
 * Keeps a mount in step with its environment's entry in the configuration file. A changed entry is adopted as by `wsfs
 * reload`: another daemon takes over with the new settings. A file with a fault changes nothing.
 */
import type { Logger } from "../lib/log.ts";
import { shareRuns } from "../lib/shared-run.ts";
import type { MountStatus } from "./control-messages.ts";
import { type EntrySettings, follow } from "./entry-settings.ts";
import type { DaemonSettings, FollowedEntry } from "./settings.ts";

export interface FollowOptions {
  readonly settings: DaemonSettings;
  readonly environment: FollowedEntry;
  /** Why a daemon with the new settings could not serve, if this daemon runs because of that failure. */
  readonly failed: string | undefined;
  readonly log: Logger;
  /** Reads the file. Rejects with a message of one line that names the file's fault. */
  read(name: string): Promise<EntrySettings>;
  /** The identity of the file as it is now (`fileIdentity`). */
  identity(): Promise<string>;
  watch(onChange: () => void): { close(): unknown };
  /** Hands the mount over. Rejects when this daemon goes on after all. */
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
    if (now === undefined) log.info({ file }, "the whole configuration is in effect again");
    else log.warn({ file }, `part of the configuration is not in effect: ${now}`);
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

  /**
   * The file may have changed before it was watched. Settings with which a daemon has just failed are not tried again.
   */
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

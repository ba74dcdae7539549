/** Chooses the folder of this machine that holds a mount's state, and makes sure that this daemon alone uses it. */
import { basename, dirname } from "node:path";
import type { Client } from "../client/client.ts";
import { RemoteError } from "../client/errors.ts";
import { lockStateFolder, StateFolderBusy, type StateLock } from "../content/state-lock.ts";
import * as systemCalls from "../content/system-calls.ts";
import { StartError } from "../engine/api/index.ts";
import {
  atOnce,
  findRoot,
  notVisible,
  noWorkspace,
  ONE_TRY,
  type RetryBudget,
  retryAtStart,
  viewKey,
} from "../engine/start/index.ts";
import { claimFolder, FolderOfOthers, isUnused, unclaimFolder } from "../lib/claim-folder.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { listServed } from "./runtime-folder.ts";
import type { DaemonSettings } from "./settings.ts";
import { defaultStateFolder, findStateFolder, STATE_CLAIM } from "./state-folder.ts";

/**
 * Chooses the folder for a mount without --state-dir. Its name contains the ids of the workspace and of the mounted
 * folder, and the gateway is asked for these. Without an answer, the folder of an earlier mount is found by the
 * workspace's name or id. Rejects with a StartError.
 */
export async function chooseStateFolder(
  settings: DaemonSettings,
  client: Client,
  patience: RetryBudget,
  log: Logger,
): Promise<string> {
  const { stateHome, baseUrl, workspace: nameOrId } = settings;
  const known = findStateFolder(stateHome, baseUrl, nameOrId, viewKey(settings));
  try {
    const withRetries = <T>(ask: () => Promise<T>) =>
      retryAtStart(systemClock, known === undefined ? patience : ONE_TRY, ask);
    const ask = async () => {
      const workspace = await withRetries(() => client.findWorkspace(nameOrId));
      if (workspace === undefined || settings.path === undefined) return { workspace };
      return { workspace, folder: (await withRetries(() => findRoot(client, workspace, settings))).id };
    };
    const asked = ask();
    const answer = known === undefined ? { value: await asked } : await atOnce(systemClock, asked);
    if (known !== undefined && answer === undefined) return known;
    const { workspace, folder } = answer?.value ?? {};
    if (workspace !== undefined) {
      return defaultStateFolder(stateHome, workspace.id, { folder, isPast: settings.at !== undefined });
    }
    throw await noWorkspace(client, nameOrId);
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    if (known !== undefined) {
      log.info({ err: error, stateDir: known }, "the gateway cannot be asked; the state dir of last time is used");
      return known;
    }
    if (error.code === "notFound") throw new StartError(notVisible(nameOrId), 1, { cause: error });
    const without = error.code === "unauthorized" ? "the token cannot be used" : "the gateway cannot be asked";
    const why = `workspace "${nameOrId}" is not known on this machine, and ${without}: ${error.message}`;
    throw new StartError(why, 1, { cause: error });
  }
}

interface OwnState {
  readonly lock: StateLock;
  /** Only for a folder that was unused: removes all that was put into it, and the folders that were made for it. */
  readonly takeBack?: () => void;
}

/** Takes the lock of the state dir. The records in `runtimeFolder` tell which mount uses it. Throws a StartError. */
export function lockState(path: string, runtimeFolder: string): OwnState {
  const stateDir = dirname(path);
  try {
    const made = claimFolder(stateDir, STATE_CLAIM);
    const lock = lockStateFolder(systemCalls, path);
    const isNew = isUnused(stateDir, STATE_CLAIM, [basename(path)]);
    return { lock, ...(isNew ? { takeBack: () => unclaimFolder(stateDir, made) } : {}) };
  } catch (error) {
    if (error instanceof StateFolderBusy) {
      throw new StartError(whoseState(stateDir, error, runtimeFolder), 1, { cause: error });
    }
    const why =
      error instanceof FolderOfOthers
        ? `${stateDir} is not a mount's: ${error.message}`
        : `${stateDir} cannot be used (${(error as NodeJS.ErrnoException).code})`;
    throw new StartError(`the state dir ${why}`, 1, { cause: error });
  }
}

function whoseState(stateDir: string, { message }: StateFolderBusy, runtimeFolder: string): string {
  const record = listServed(runtimeFolder).find((one) => one.stateDir === stateDir);
  const where =
    record === undefined
      ? message
      : `"${record.workspace.name}" is mounted already at ${record.mountpoint} (${message})`;
  return `${where}; --state-dir with a new folder makes another mount`;
}

/** `wsfs reload`: lets the daemon of a mount give way to a new one, and waits until that one serves. */
import { randomUUID } from "node:crypto";
import type { ReloadRequest } from "../daemon/control-messages.ts";
import { mountsOf, readMountTable } from "../daemon/mount-table.ts";
import { isAlive, isSame } from "../daemon/processes.ts";
import { ON_RELOAD, type SettingsChange } from "../daemon/reload-settings.ts";
import { daemonSocket, listServed, type MountRecord } from "../daemon/runtime-folder.ts";
import { entrySettings } from "./entry-settings.ts";
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure } from "./failure.ts";
import { hasEnded, requireServed, type Served } from "./find-mount.ts";
import { FLAGS } from "./flags.ts";
import { followedFile } from "./followed.ts";
import { DAEMON } from "./launch.ts";
import { checkTokenFile, readProfile } from "./mount.ts";
import { FIXED, flagName, type Values } from "./options.ts";
import { pollUntil } from "./poll.ts";
import { formatWait } from "./wording.ts";
import { absolute } from "./working-folder.ts";

/** The limit for the start of a daemon, which checks its state dir and may wait for a slow gateway. */
const START_LIMIT_MS = 180_000;

export async function reload(values: Values<"reload">): Promise<number> {
  const { dir } = values;
  const changes = changesOf(values);
  const { served } = await requireServed(dir);
  const { mountId } = served.record;
  if (mountId === undefined) throw new Failure(`the daemon of ${dir} is of a release that knows no reload`);
  const id = randomUUID();
  await ask(served, { id, changes, ...environmentOf(values), program: [...DAEMON] });
  const { record, version } = await successor(dir, served, mountId);
  const { reload } = record;
  if (reload?.id !== id) {
    // The daemon gave way to another reload before it answered this one. The record keeps the last reload, which may be
    // one from before this command.
    if (reload !== undefined && reload.id !== served.record.reload?.id)
      throw new Failure("another reload is under way");
    throw new Failure(`the daemon of ${dir} ended before it could give way; another one serves it as before`);
  }
  const { failed, waitedMs, isMigrated = false } = reload;
  if (failed !== undefined) {
    throw new Failure(`${dir} is still served with the old settings, because a new daemon could not start: ${failed}`);
  }
  const { pid } = record.daemon;
  const result = { release: version, pid, waitedMs, isMigrated };
  const line = `${dir} is served by a new daemon (release ${version}, pid ${pid}); programs waited for ${formatWait(waitedMs)}`;
  process.stdout.write(values.json === true ? `${JSON.stringify(result)}\n` : `${line}\n`);
  if (isMigrated) {
    process.stderr.write(`wsfs: its database was changed for this release: no earlier one can serve ${dir} any more\n`);
  }
  return EXIT.ok;
}

/** Throws a Failure (usage) for a setting that cannot change while mounted. */
function changesOf(values: Values<"reload">): SettingsChange {
  for (const name of FIXED) {
    if (values[name] === undefined) continue;
    const { why } = ON_RELOAD[FLAGS[name].setting];
    throw new Failure(`--${flagName(name)} cannot change while a workspace is mounted: ${why}`, EXIT.usage);
  }
  const tokenFile = values["token-file"] === undefined ? undefined : absolute(values["token-file"]);
  if (tokenFile !== undefined) checkTokenFile(tokenFile);
  const changes = {
    tokenFile,
    ...readProfile(values.profile),
    cacheSize: values["cache-size"],
    namesAhead: values["names-ahead"],
    keepFree: values["keep-free"],
    unsentLimit: values["unsent-limit"],
    durability: values.durability,
    patienceMs: values.wait === undefined ? undefined : values.wait * 1000,
    logLevel: values["log-level"],
  };
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

function environmentOf({ dir, env }: Values<"reload">): Pick<ReloadRequest, "environment"> {
  if (env === undefined) return {};
  const at = chooseEnvironment(env);
  const { name, file } = followedFile(dir, at);
  return { environment: { name, file, entry: entrySettings(at) } };
}

async function ask({ record, socket }: Served, request: ReloadRequest): Promise<void> {
  const { ControlError, postReload } = await import("../daemon/control-client.ts");
  try {
    await postReload(socket, request);
  } catch (error) {
    // The daemon has ended, perhaps because it gave way: the successor's record tells.
    if (!(error instanceof ControlError) || !(await hasEnded(record.daemon))) throw error;
  }
}

/**
 * The daemon after the one that was asked. It answers only after it has told its supervisor that it serves. Rejects
 * with a Failure.
 */
async function successor(
  dir: string,
  asked: Served,
  mountId: string,
): Promise<{ record: MountRecord; version: string }> {
  const { ControlError, getStatus } = await import("../daemon/control-client.ts");
  for (;;) {
    const record = await findNext(dir, asked, mountId);
    try {
      return { record, ...(await getStatus(daemonSocket(asked.folder, record.daemon.pid, asked.socket.owner))) };
    } catch (error) {
      if (!(error instanceof ControlError) || !(await hasEnded(record.daemon))) throw error;
    }
  }
}

async function findNext(dir: string, { record, folder }: Served, mountId: string): Promise<MountRecord> {
  let next: MountRecord | undefined;
  const isThere = () => {
    next = listServed(folder).find(
      (other) => other.mountId === mountId && !isSame(other.daemon, record.daemon) && isAlive(other.daemon),
    );
    return next !== undefined || mountsOf(readMountTable(), record.connection).length === 0;
  };
  await pollUntil(isThere, START_LIMIT_MS);
  if (next !== undefined) return next;
  const isMounted = mountsOf(readMountTable(), record.connection).length > 0;
  const how = isMounted ? `has not begun to serve for ${START_LIMIT_MS / 1000} s` : "found nothing mounted any more";
  throw new Failure(`the new daemon of ${dir} ${how}; ${record.stateDir}/daemon.log may say why`);
}

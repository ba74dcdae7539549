/**
 * Finds the workspace of a history command. Without --workspace it is the one of the mount that the path lies in, with
 * that mount's sign-in. With --workspace the user's own sign-in is used. The command never reads the mount itself.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { connect, type Gateway, RemoteError, savedLogin, tokenFile } from "../../client/index.ts";
import { mountName, parseMountName } from "../../contract/mount-name.ts";
import type { OperationName } from "../../contract/operations.ts";
import { type MountEntry, readMountTable } from "../../daemon/mount-table.ts";
import { isAlive } from "../../daemon/processes.ts";
import { type DaemonSettings, readSettings } from "../../daemon/settings.ts";
import { forbidCore } from "../../lib/core-file.ts";
import { chooseEnvironment } from "../environments.ts";
import { EXIT, Failure } from "../failure.ts";
import { requireServed, type Served } from "../find-mount.ts";
import { findPlace } from "../mountpoint.ts";
import { pathInMount } from "../queue-retry.ts";
import { withGateway } from "../service.ts";
import { scopesOf, signedIn } from "../signed-in.ts";
import { addressNow } from "../status.ts";

interface Given {
  /** Used only with --workspace: a mount has its own gateway. */
  readonly env: string | undefined;
  readonly "in-workspace": string | undefined;
  /** With --workspace: the mount whose changes are meant, by its name in the journal. */
  readonly "of-mount"?: string | undefined;
}

export interface OfMount {
  readonly dir: string;
  readonly served: Served;
  /** The mount's name in the journal. */
  readonly name: string;
  /** The folder that it shows, as a path of the workspace. */
  readonly folder: string;
}

interface AtWorkspace {
  readonly gateway: Gateway;
  /** The given paths, as paths of the workspace. */
  readonly paths: readonly string[];
  /** Absent with --workspace. */
  readonly mount: OfMount | undefined;
}

/**
 * `words`: paths in one mount, or in the workspace that is named. The token is good for these operations. Rejects with
 * a Failure.
 */
export async function atWorkspace<T>(
  given: Given,
  words: readonly string[],
  operations: readonly OperationName[],
  use: (at: AtWorkspace) => Promise<T>,
): Promise<T> {
  forbidCore();
  const named = given["in-workspace"];
  if (named === undefined) return inMount(words, operations, use);
  const at = chooseEnvironment(given.env);
  const credentials = await signedIn(at, { scopes: await scopesOf(at, operations), workspace: named });
  const mount = parseMountName(given["of-mount"] ?? "");
  const gateway = connect({ baseUrl: at.baseUrl, credentials, workspace: named, mount });
  const paths = words.map((word) => resolve("/", word));
  return withGateway(gateway, async () => {
    // If the workspace is not visible, the sign-in rejects with the right error. Otherwise the path would seem missing.
    await credentials.token();
    return use({ gateway, paths, mount: undefined });
  });
}

async function inMount<T>(
  words: readonly string[],
  operations: readonly OperationName[],
  use: (at: AtWorkspace) => Promise<T>,
): Promise<T> {
  const table = readMountTable();
  const mounts = words.map((word) => mountOf(word, table));
  const [mount] = mounts;
  if (mount === undefined) throw new Failure("expected a path", EXIT.usage);
  if (mounts.some(({ connection }) => connection !== mount.connection)) {
    throw new Failure(`${words.join(" and ")} are in different mounts; expected paths of one`, EXIT.usage);
  }
  const dir = mount.mountpoint;
  const { served } = await requireServed(dir);
  const { record, socket } = served;
  if (record.mountpoint !== dir) {
    throw new Failure(`${dir} shows the mount at ${record.mountpoint}: name the path as it is there`);
  }
  if (record.at !== undefined) {
    throw new Failure(
      `${dir} shows a moment of the past: name the path as it is now, in a mount of now or with --workspace`,
    );
  }
  if (socket.owner !== process.getuid?.()) {
    throw new Failure(`user ${socket.owner} mounted ${dir}, and only that user's commands may use its sign-in`);
  }
  const settings = settingsOf(served, dir);
  const workspace = record.workspace.id;
  const name = mountName(hostname(), dir);
  const gateway = connect({
    baseUrl: addressNow(served) ?? record.baseUrl,
    credentials: await credentialsOf(settings, [...operations, "getNode"], workspace),
    workspace,
    mount: name,
    ...(settings.profile === undefined ? {} : { profile: JSON.parse(settings.profile.text) }),
  });
  return withGateway(gateway, async () => {
    const folder = record.folder === undefined ? "/" : await pathOf(gateway, record.folder, dir);
    const paths = words.map((word) => pathBelow(folder, pathInMount(word, mount, table)));
    return use({ gateway, paths, mount: { dir, served, name, folder } });
  });
}

/** The path of the workspace for `inside`, a path from the root of a mount of this folder. */
export function pathBelow(folder: string, inside: string): string {
  if (folder === "/") return inside;
  return inside === "/" ? folder : `${folder}${inside}`;
}

async function pathOf(gateway: Gateway, folder: string, dir: string): Promise<string> {
  try {
    return (await gateway.nodes.get(folder)).path;
  } catch (cause) {
    if (!(cause instanceof RemoteError) || cause.code !== "notFound") throw cause;
    const how = "wsfs list --deleted --workspace W shows it, wsfs undelete --workspace W PATH brings it back";
    throw new Failure(`the folder that is mounted at ${dir} was deleted; ${how}`, EXIT.failure, { cause });
  }
}

function mountOf(word: string, table: readonly MountEntry[]): MountEntry {
  const place = findPlace(word, table);
  if (place.is === "ourMount" || place.is === "insideOurMount") return place.mount;
  throw new Failure(`${word} is in no mount of wsfs; --workspace names the workspace of a path`, EXIT.notMounted);
}

/** The settings that the daemon was started with say where the mount's sign-in is. They contain no secret. */
function settingsOf({ record }: Served, dir: string): DaemonSettings {
  const { daemon } = record;
  let variables: string;
  try {
    variables = readFileSync(`/proc/${daemon.pid}/environ`, "utf8");
  } catch (cause) {
    throw new Failure(`the settings of the mount at ${dir} cannot be read`, EXIT.failure, { cause });
  }
  // The process id may belong to another process by now.
  if (!isAlive(daemon)) throw new Failure(`the daemon of ${dir} has just ended; try again`);
  const pairs = variables.split("\0").map((pair): [string, string] => {
    const [name = ""] = pair.split("=", 1);
    return [name, pair.slice(name.length + 1)];
  });
  return readSettings(Object.fromEntries(pairs));
}

async function credentialsOf(
  { login, tokenFile: file }: DaemonSettings,
  operations: readonly OperationName[],
  workspace: string,
) {
  if (login === undefined) return tokenFile(file ?? "");
  const scopes = await scopesOf({ loginFile: login.file }, operations);
  return savedLogin(login.file, { scopes, workspace, howToSignIn: login.howToSignIn });
}

/** Rejects with a Failure if the gateway keeps no history. */
export async function requireHistory(gateway: Gateway): Promise<void> {
  if ((await gateway.calls()).features.isFull) return;
  throw new Failure("this gateway keeps no such history: its profile says that it is plain");
}

/**
 * The state dir: metadata, unsent bytes and cache of a mount. Without --state-dir it is named by the workspace's id,
 * which only the gateway knows. A small file in it names the workspace and the gateway, so that a mount also finds it
 * without the gateway. The engine decides whether the folder really belongs to the workspace.
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Claim } from "../lib/claim-folder.ts";

/** The database file in a state dir. */
export const DATABASE = "metadata.db";

/** The mark of every state dir, wherever it is. */
export const STATE_CLAIM: Claim = {
  marker: "wsfs-state",
  text: "State of a wsfs mount: changes not uploaded yet, metadata and cache. Removing it loses what was not uploaded.",
  formerNames: ["lock", "metadata.db"],
};

const FILE = "workspace.json";
/** `view`: the part or moment of the workspace that is mounted (engine/start/view.ts); absent: all of it, as it is. */
const owner = z.object({ id: z.string(), name: z.string(), baseUrl: z.string(), view: z.string().optional() });
type StateOwner = z.infer<typeof owner>;

/** `folder`: node id of the folder that is mounted; undefined: all of the workspace. */
export function defaultStateFolder(
  stateHome: string,
  workspaceId: string,
  { folder, isPast = false }: { readonly folder?: string | undefined; readonly isPast?: boolean } = {},
): string {
  // An id is text of the gateway: it must stay one path component, and must not be the name of one of our own folders.
  const textOf = (id: string) => encodeURIComponent(id).replaceAll(".", "%2E");
  const ofFolder = folder === undefined ? "" : `.folder-${textOf(folder)}`;
  return join(stateHome, `workspace-${textOf(workspaceId)}${ofFolder}${isPast ? ".past" : ""}`);
}

export function writeOwner(stateDir: string, value: StateOwner): void {
  const path = join(stateDir, FILE);
  // Skipped when nothing changes: on a full disk a takeover then needs no write.
  if (isDeepStrictEqual(readOwner(stateDir), value)) return;
  writeFileSync(`${path}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined when the folder has no readable file. */
export function readOwner(stateDir: string): StateOwner | undefined {
  try {
    return owner.parse(JSON.parse(readFileSync(join(stateDir, FILE), "utf8")));
  } catch {
    return undefined;
  }
}

/** The name of the workspace that the folder belongs to. Undefined: it is unknown, or is the one of this name or id. */
export function ownerOtherThan(stateDir: string, nameOrId: string): string | undefined {
  const found = readOwner(stateDir);
  return found === undefined || found.id === nameOrId || found.name === nameOrId ? undefined : found.name;
}

/** The default folder that belongs to this view of the workspace of this name or id on this gateway, if there is one. */
export function findStateFolder(
  stateHome: string,
  baseUrl: string,
  nameOrId: string,
  view?: string,
): string | undefined {
  let names: string[];
  try {
    names = readdirSync(stateHome);
  } catch {
    return undefined;
  }
  return names
    .map((name) => join(stateHome, name))
    .find((path) => {
      const found = readOwner(path);
      const isOfWorkspace = found?.baseUrl === baseUrl && (found.name === nameOrId || found.id === nameOrId);
      return isOfWorkspace && found.view === view;
    });
}

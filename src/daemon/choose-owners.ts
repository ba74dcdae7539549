/**
 * Decides whether a mount shows real owners: as the settings say, else as its state dir was used before. A mount that
 * shows no real owners still stores owners that programs set. An upgrade must not begin to enforce those.
 */

import { StartError } from "../engine/api/index.ts";
import type { createSettings } from "../metadata/settings.ts";
import { type DaemonSettings, owners } from "./settings.ts";
import { readOwner } from "./state-folder.ts";

export function chooseOwners(
  { owners: asked, allowOther = false, fuseNative }: DaemonSettings,
  stateDir: string,
  rows: ReturnType<typeof createSettings>,
): "mine" | "real" {
  const isNew = rows.get("workspace") === undefined && readOwner(stateDir) === undefined;
  const isShared = allowOther && fuseNative === undefined && process.getuid?.() === 0;
  const kept = owners.optional().parse(rows.get("owners"));
  const chosen = asked ?? kept ?? (isNew && isShared ? "real" : "mine");
  if (chosen === "real" && fuseNative !== undefined) {
    const why = "libfuse does not tell who makes a file";
    throw new StartError(`--transport fuse-native shows no real owners (${why}): give --owners mine`);
  }
  if (chosen !== (kept ?? "mine")) rows.set("owners", chosen);
  return chosen;
}

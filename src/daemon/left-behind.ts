/** What is left to upload for a folder on which nothing is mounted. */
import { join } from "node:path";
import { readUnsent, type Unsent } from "../metadata/unsent.ts";
import { type LastMount, lastMountsAt } from "./last-mounts.ts";
import { DATABASE } from "./state-folder.ts";

export type LeftBehind = Pick<LastMount, "stateDir" | "workspace"> & Unsent;

export function leftBehindAt(stateHome: string, mountpoint: string): LeftBehind[] {
  return lastMountsAt(stateHome, mountpoint).flatMap(({ stateDir, workspace }) => {
    const unsent = readUnsent(join(stateDir, DATABASE));
    return unsent === undefined || unsent.dirty === 0 ? [] : [{ stateDir, workspace, ...unsent }];
  });
}

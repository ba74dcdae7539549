/** Finds unsent changes for a folder on which nothing is mounted. */
import { join } from "node:path";
import { readUnsent, type Unsent } from "../metadata/unsent.ts";
import { type LastMount, lastMountsAt } from "./last-mounts.ts";
import { DATABASE } from "./state-folder.ts";

type UnsentOfMount = Pick<LastMount, "stateDir" | "workspace" | "path"> & Unsent;

export function findUnsent(stateHome: string, mountpoint: string): UnsentOfMount[] {
  return lastMountsAt(stateHome, mountpoint).flatMap(({ mountpoint: _, ...last }) => {
    const unsent = readUnsent(join(last.stateDir, DATABASE));
    return unsent === undefined || unsent.dirty === 0 ? [] : [{ ...last, ...unsent }];
  });
}

/**
 * The account that `wsfs start` makes for the person who owns the data folder: an owner of all workspaces. It is made
 * once in the life of a folder, and only when there is no account yet. Its password is in a file readable by its owner
 * only, until it is changed.
 */
import { randomBytes } from "node:crypto";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type AccountStore, newPasswordPath, passwordPath } from "./accounts/index.ts";

const PASSWORD_BYTES = 15;

/**
 * `name`: the name of the account, made valid. `workspaces`: ids of all workspaces. Two calls at once would overwrite
 * each other's password, so the caller holds the lock of `wsfs start`.
 */
export async function ensureFirstOwner(
  { accounts }: AccountStore,
  dataDir: string,
  name: string,
  workspaces: readonly string[],
): Promise<void> {
  const written = newPasswordPath(dataDir);
  if (accounts.lacksFirstOwner()) {
    const password = randomBytes(PASSWORD_BYTES).toString("base64url");
    // The password is on the disk before the account exists: an account with an unknown password would be useless.
    writeFileSync(written, `${password}\n`, { mode: 0o600, flush: true });
    const made = await accounts.addFirstOwner(name, password, workspaces);
    if (made === undefined) rmSync(written);
  }
  // The file may be that of an earlier process, which died before it could rename it.
  if (accounts.firstOwner() !== undefined && existsSync(written)) renameSync(written, passwordPath(dataDir));
}

/**
 * The account that `wsfs start` makes for the person whose data folder it is: an owner of all workspaces, once in a folder's
 * life and only where there is no account yet. Its password lies in an owner-only file until it is changed.
 */
import { randomBytes } from "node:crypto";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type AccountStore, newPasswordPath, passwordPath } from "./accounts/index.ts";

const PASSWORD_BYTES = 15;

/**
 * `name`: what the account is called, made fit. `workspaces`: ids of all there are. Two at once would write over each other's
 * password: the caller holds the lock of `wsfs start`.
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
    // On the disk before the account is: a password that nobody knows would let nobody in.
    writeFileSync(written, `${password}\n`, { mode: 0o600, flush: true });
    const made = await accounts.addFirstOwner(name, password, workspaces);
    if (made === undefined) rmSync(written);
  }
  // Also that of a process which died before this line.
  if (accounts.firstOwner() !== undefined && existsSync(written)) renameSync(written, passwordPath(dataDir));
}

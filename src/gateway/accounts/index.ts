/**
 * The door to accounts.db: the accounts, their roles, the keys that sign tokens, and the engines. A running gateway and
 * commands beside it have it open at the same time, so a change by one of them holds for the next call of the other.
 */
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import type { Clock } from "../../lib/runtime.ts";
import { type Connection, openSqlite } from "../../lib/sqlite/index.ts";
import { type Accounts, createAccounts } from "./accounts.ts";
import { type ApiKeys, createApiKeys } from "./api-keys.ts";
import { createEngines, type Engines } from "./engines.ts";
import { createOauthRecords, type OauthRecords } from "./oauth-records.ts";
import { COST, LEAST_COST, type PasswordCost } from "./passwords.ts";
import { migrateAccounts, openAccountsDatabase } from "./schema.ts";
import { createSigningKeys, type SigningKeys } from "./signing-keys.ts";

export { readAccessToken } from "./access-tokens.ts";
export { type Account, AccountError, type Accounts, type Membership } from "./accounts.ts";
export type { ApiKeyRow, ApiKeys } from "./api-keys.ts";
export { type EngineEntry, EngineError, type Engines, type NewEngine } from "./engines.ts";
export { LOGIN, type OauthRecord, type OauthRecords } from "./oauth-records.ts";

export interface AccountStore {
  readonly accounts: Accounts;
  readonly engines: Engines;
  readonly keys: SigningKeys;
  readonly apiKeys: ApiKeys;
  readonly records: OauthRecords;
  /** Seconds since the epoch: tokens that the command line issued until then have ended. */
  revokedUntil(): number;
  /** Ends every token, login and API key. */
  revokeAll(): void;
  /** The file with the password that `wsfs start` made, while it is the account's password. */
  firstPassword(): { readonly account: string; readonly file: string } | undefined;
  close(): void;
}

type StoreClock = Pick<Clock, "wallClock" | "setTimer">;

export const accountsPath = (dataFolder: string) => path.join(dataFolder, "accounts.db");

/** The file with the password of the account that `wsfs start` makes (first-owner.ts). */
export const passwordPath = (dataFolder: string) => path.join(dataFolder, "password");
/** The file with the password while the account does not exist yet. */
export const newPasswordPath = (dataFolder: string) => `${passwordPath(dataFolder)}.new`;

/**
 * Opens the accounts of a data folder; makes them when missing. Throws an Error if a newer program has written them.
 */
export function openAccounts(dataFolder: string, clock: StoreClock): AccountStore {
  return storeOf(openAccountsDatabase(accountsPath(dataFolder)), clock, COST, dataFolder);
}

/**
 * Accounts that live as long as the connection or the process. Their hashes are on no disk, and cost next to nothing.
 */
export function accountsInMemory(clock: StoreClock, database = openSqlite(":memory:")): AccountStore {
  migrateAccounts(database);
  return storeOf(database, clock, LEAST_COST);
}

function storeOf(database: Connection, clock: StoreClock, cost: PasswordCost, folder?: string): AccountStore {
  const records = createOauthRecords(database, clock);
  const keys = createSigningKeys(database, clock);
  const apiKeys = createApiKeys(database, clock);
  const revokedUntil = database.prepare<[], number>("SELECT value FROM setting WHERE name = 'revoked-until'").pluck();
  const revoke = database.prepare("INSERT OR REPLACE INTO setting VALUES ('revoked-until', ?)");
  const accounts = createAccounts(database, clock, cost, {
    endLogins: records.endLogins,
    forgetFirstPassword() {
      if (folder === undefined) return;
      for (const file of [passwordPath(folder), newPasswordPath(folder)]) rmSync(file, { force: true });
    },
  });
  return {
    accounts,
    engines: createEngines(database, clock),
    keys,
    apiKeys,
    records,
    revokedUntil: () => revokedUntil.get() ?? 0,
    revokeAll: database.transaction(() => {
      revoke.run(Math.floor(clock.wallClock() / 1000));
      records.endAll();
      apiKeys.removeAll();
      keys.replaceAll();
    }).immediate,
    firstPassword() {
      const account = accounts.firstOwner()?.name;
      if (account === undefined || folder === undefined) return undefined;
      const file = passwordPath(folder);
      return existsSync(file) ? { account, file } : undefined;
    },
    close() {
      apiKeys.close();
      database.close();
    },
  };
}

/**
 * The door to accounts.db: who there is, what each may do where, and what signs tokens. A running gateway and commands
 * beside it have it open at the same time, so whatever one of them changes holds for the other's next call.
 */
import path from "node:path";
import Database from "better-sqlite3";
import { type Accounts, createAccounts } from "./accounts.ts";
import { createOauthRecords, type OauthRecords } from "./oauth-records.ts";
import { migrateAccounts, openAccountsDatabase } from "./schema.ts";
import { createSigningKeys, type SigningKeys } from "./signing-keys.ts";

export { type Account, AccountError, type Accounts, type Membership } from "./accounts.ts";
export { LOGIN, type OauthRecord, type OauthRecords } from "./oauth-records.ts";
export type { Jwk, SigningKeys } from "./signing-keys.ts";

export interface AccountStore {
  readonly accounts: Accounts;
  readonly keys: SigningKeys;
  readonly records: OauthRecords;
  close(): void;
}

export const accountsPath = (dataFolder: string) => path.join(dataFolder, "accounts.db");

/** Opens the accounts of a data folder, made when missing. Throws when a newer program has written them. */
export function openAccounts(dataFolder: string, clock: { wallClock(): number }): AccountStore {
  return storeOf(openAccountsDatabase(accountsPath(dataFolder)), clock);
}

/** Accounts that live as long as the process. */
export function accountsInMemory(clock: { wallClock(): number }): AccountStore {
  const database = new Database(":memory:");
  migrateAccounts(database);
  return storeOf(database, clock);
}

function storeOf(database: Database.Database, clock: { wallClock(): number }): AccountStore {
  const records = createOauthRecords(database, clock);
  return {
    accounts: createAccounts(database, clock, records.endLogins),
    keys: createSigningKeys(database, clock),
    records,
    close: () => void database.close(),
  };
}

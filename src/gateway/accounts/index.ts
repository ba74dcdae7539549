/**
 * The door to accounts.db: who there is, what each may do where, what signs tokens, and which engines there are. A running
 * gateway and commands beside it have it open at the same time, so whatever one of them changes holds for the other's
 * next call.
 */
import path from "node:path";
import Database from "better-sqlite3";
import type { Clock } from "../../lib/runtime.ts";
import { type Accounts, createAccounts } from "./accounts.ts";
import { type ApiKeys, createApiKeys } from "./api-keys.ts";
import { createEngines, type Engines } from "./engines.ts";
import { createOauthRecords, type OauthRecords } from "./oauth-records.ts";
import { migrateAccounts, openAccountsDatabase } from "./schema.ts";
import { createSigningKeys, type SigningKeys } from "./signing-keys.ts";

export { readAccessToken } from "./access-tokens.ts";
export { type Account, AccountError, type Accounts, type Membership } from "./accounts.ts";
export type { ApiKeyRow, ApiKeys } from "./api-keys.ts";
export { type EngineEntry, EngineError, type Engines, type NewEngine } from "./engines.ts";
export { LOGIN, type OauthRecord, type OauthRecords } from "./oauth-records.ts";
export type { Jwk, SigningKeys } from "./signing-keys.ts";

export interface AccountStore {
  readonly accounts: Accounts;
  readonly engines: Engines;
  readonly keys: SigningKeys;
  readonly apiKeys: ApiKeys;
  readonly records: OauthRecords;
  /** Seconds since the epoch: what the command line issued until then has ended. */
  revokedUntil(): number;
  /** Ends every token, login and API key there is. */
  revokeAll(): void;
  close(): void;
}

type StoreClock = Pick<Clock, "wallClock" | "setTimer">;

export const accountsPath = (dataFolder: string) => path.join(dataFolder, "accounts.db");

/** Opens the accounts of a data folder, made when missing. Throws when a newer program has written them. */
export function openAccounts(dataFolder: string, clock: StoreClock): AccountStore {
  return storeOf(openAccountsDatabase(accountsPath(dataFolder)), clock);
}

/** Accounts that live as long as the process. */
export function accountsInMemory(clock: StoreClock): AccountStore {
  const database = new Database(":memory:");
  migrateAccounts(database);
  return storeOf(database, clock);
}

function storeOf(database: Database.Database, clock: StoreClock): AccountStore {
  const records = createOauthRecords(database, clock);
  const keys = createSigningKeys(database, clock);
  const apiKeys = createApiKeys(database, clock);
  const revokedUntil = database.prepare<[], number>("SELECT value FROM setting WHERE name = 'revoked-until'").pluck();
  const revoke = database.prepare("INSERT OR REPLACE INTO setting VALUES ('revoked-until', ?)");
  return {
    accounts: createAccounts(database, clock, records.endLogins),
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
    close() {
      apiKeys.close();
      database.close();
    },
  };
}

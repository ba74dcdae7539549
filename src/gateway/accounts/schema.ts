/**
 * The tables of accounts.db: accounts, their roles in workspaces, the keys that sign access tokens, and the memory of
 * the OAuth server. They are a database of their own beside the gateway's store, because the command line changes them
 * while a gateway runs: the store has a single writer, this one has short transactions of several processes.
 *
 * Migrations are numbered. A released one is never changed; new ones are appended.
 */
import { closeSync, openSync } from "node:fs";
import { type Connection, openSqlite } from "../../lib/sqlite/index.ts";

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE account (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,        -- what a person types to sign in; never changes
    password TEXT,                    -- as passwords.ts writes it; null: signs in elsewhere only
    subject TEXT UNIQUE,              -- "ISSUER SUBJECT" of an outside OpenID provider
    created_at INTEGER NOT NULL       -- ms
  );
  CREATE TABLE membership (           -- a role in a workspace; the contract calls it a grant
    account TEXT NOT NULL REFERENCES account(id) ON DELETE CASCADE,
    workspace TEXT NOT NULL,          -- id, in the gateway's store
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,      -- ms
    PRIMARY KEY (account, workspace)
  ) WITHOUT ROWID;
  CREATE INDEX membership_workspace ON membership(workspace, account);
  CREATE TABLE signing_key (
    kid TEXT PRIMARY KEY,
    algorithm TEXT NOT NULL,
    private_jwk TEXT NOT NULL,        -- JSON
    created_at INTEGER NOT NULL,      -- ms; the newest one signs
    retired_at INTEGER                -- ms; null: it signs
  );
  CREATE TABLE setting (
    name TEXT PRIMARY KEY,            -- revoked-until: tokens of the command line issued until then (s) have ended
    value INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE oauth (                -- codes, sessions, refresh tokens: the OAuth server's adapter
    kind TEXT NOT NULL,
    id TEXT NOT NULL,                 -- SHA-256 of a secret one, base64url (oauth-records.ts)
    payload TEXT NOT NULL,            -- JSON
    login TEXT,                       -- the OAuth server's grant: all tokens of one sign-in
    user_code TEXT,
    uid TEXT,
    consumed_at INTEGER,              -- s
    expires_at INTEGER,               -- s
    PRIMARY KEY (kind, id)
  ) WITHOUT ROWID;
  CREATE INDEX oauth_login ON oauth(login) WHERE login IS NOT NULL;
  CREATE INDEX oauth_user_code ON oauth(user_code) WHERE user_code IS NOT NULL;
  CREATE INDEX oauth_uid ON oauth(uid) WHERE uid IS NOT NULL;
  CREATE INDEX oauth_expiry ON oauth(expires_at) WHERE expires_at IS NOT NULL;
  `,
  `
  CREATE TABLE first_owner (          -- the account that wsfs start made; the row stays when the account is removed
    account TEXT PRIMARY KEY
  ) WITHOUT ROWID;
  `,
  `
  CREATE TABLE engine (               -- programs that the gateway's owner has registered (engines.ts)
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    command TEXT NOT NULL,            -- JSON: the program and its arguments
    time_limit INTEGER NOT NULL,      -- s
    scopes TEXT NOT NULL,             -- JSON
    input_schema TEXT,                -- JSON; null: any input
    created_at INTEGER NOT NULL       -- ms
  );
  `,
  `
  CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,        -- SHA-256 of the key, base64url: nothing else is kept of it
    name TEXT NOT NULL,
    account TEXT REFERENCES account(id) ON DELETE CASCADE,   -- null: of none
    workspace TEXT NOT NULL,          -- id, in the gateway's store
    scopes TEXT NOT NULL,             -- space separated
    created_at INTEGER NOT NULL,      -- ms
    expires_at INTEGER,               -- ms; null: it does not expire
    used_at INTEGER                   -- ms, of a whole minute; null: never
  ) WITHOUT ROWID;
  CREATE INDEX api_key_workspace ON api_key(workspace);
  CREATE INDEX api_key_account ON api_key(account) WHERE account IS NOT NULL;
  `,
];

/** The longest wait for a transaction of another process. */
const BUSY_MS = 5000;

/** Throws when a newer program has written it. */
export function openAccountsDatabase(path: string): Connection {
  // The files that SQLite makes beside it get the same mode.
  closeSync(openSync(path, "a", 0o600));
  const database = openSqlite(path, { timeout: BUSY_MS });
  try {
    database.pragma("journal_mode = WAL");
    // Without full sync, a power loss could make a used refresh token unused again, so that it could be used twice.
    database.pragma("synchronous = FULL");
    database.pragma("foreign_keys = ON");
    migrateAccounts(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

export function migrateAccounts(database: Connection): void {
  // The command line may open a new file at the same moment.
  database
    .transaction(() => {
      const version = Number(database.pragma("user_version", { simple: true }));
      if (version > MIGRATIONS.length) {
        throw new Error(
          `The accounts have schema ${version}, this program knows schemas up to ${MIGRATIONS.length}: a newer wsfs wrote them.`,
        );
      }
      for (const sql of MIGRATIONS.slice(version)) database.exec(sql);
      database.pragma(`user_version = ${MIGRATIONS.length}`);
    })
    .immediate();
}

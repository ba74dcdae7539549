/**
 * API keys. Of a key only its SHA-256 is stored. The key has 256 random bits, so that its hash needs no salt, and a
 * copy of the file gives no access. The time of a key's last use is noted in memory and written later, because a write
 * may have to wait for another process and for the disk.
 */

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { API_KEY_PREFIX } from "../../contract/api-keys.ts";
import type { Clock, Timer } from "../../lib/runtime.ts";
import { type Connection, SqliteError } from "../../lib/sqlite/index.ts";
import { MINUTE_MS } from "../../lib/time.ts";

interface NewApiKeyRow {
  readonly name: string;
  /** Id of the account. Null: the key belongs to no account. */
  readonly account: string | null;
  /** Id of the workspace. */
  readonly workspace: string;
  readonly scopes: readonly string[];
  /** Milliseconds since the epoch. Null: it does not expire. */
  readonly expiresAt: number | null;
}

export interface ApiKeyRow extends NewApiKeyRow {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Milliseconds since the epoch, a whole minute. Null: never used. */
  readonly usedAt: number | null;
}

export interface ApiKeys {
  /** Undefined: the account was removed meanwhile. `key` is returned only this once. */
  create(key: NewApiKeyRow): { readonly row: ApiKeyRow; readonly key: string } | undefined;
  /** The keys of a workspace. */
  list(workspace: string): ApiKeyRow[];
  byId(id: string): ApiKeyRow | undefined;
  byKey(key: string): ApiKeyRow | undefined;
  /** False: there was none. */
  remove(id: string): boolean;
  removeAll(): void;
  /** Notes that a key is used now. */
  use(id: string): void;
  /** Writes the noted uses for the last time. */
  close(): void;
}

const KEY_BYTES = 32;

interface Row extends Omit<ApiKeyRow, "scopes"> {
  readonly scopes: string;
}

export function createApiKeys(database: Connection, clock: Pick<Clock, "wallClock" | "setTimer">): ApiKeys {
  const insert = database.prepare(
    `INSERT INTO api_key (id, hash, name, account, workspace, scopes, created_at, expires_at)
     VALUES (@id, @hash, @name, @account, @workspace, @scopes, @createdAt, @expiresAt)`,
  );
  const columns = `SELECT id, name, account, workspace, scopes, created_at AS createdAt, expires_at AS expiresAt,
    used_at AS usedAt FROM api_key WHERE`;
  const ofWorkspace = database.prepare<[string], Row>(`${columns} workspace = ? ORDER BY created_at, id`);
  const byId = database.prepare<[string], Row>(`${columns} id = ?`);
  const byHash = database.prepare<[string], Row>(`${columns} hash = ?`);
  const removeRow = database.prepare("DELETE FROM api_key WHERE id = ?");
  const removeRows = database.prepare("DELETE FROM api_key");
  const setUse = database.prepare("UPDATE api_key SET used_at = ? WHERE id = ?");
  /** When each key was used last, milliseconds since the epoch, while that is not written yet. */
  const uses = new Map<string, number>();
  const writeUses = database.transaction(() => {
    for (const [id, time] of uses) setUse.run(time, id);
  });
  let timer: Timer | undefined;

  /** Waits neither for another process nor for the disk: a lost use does no harm. */
  function keepUses(): void {
    const [wait, sync] = ["busy_timeout", "synchronous"].map((name) => database.pragma(name, { simple: true }));
    database.pragma("busy_timeout = 0");
    database.pragma("synchronous = NORMAL");
    try {
      writeUses.immediate();
      uses.clear();
    } catch (error) {
      // The disk is full, or another process writes: it is tried again later.
      if (!(error instanceof SqliteError)) throw error;
    } finally {
      database.pragma(`synchronous = ${sync}`);
      database.pragma(`busy_timeout = ${wait}`);
    }
  }

  function keepLater(): void {
    timer ??= clock.setTimer(MINUTE_MS, () => {
      timer = undefined;
      keepUses();
      if (uses.size > 0) keepLater();
    });
  }

  const shown = ({ scopes, ...row }: Row): ApiKeyRow => ({
    ...row,
    scopes: scopes.split(" "),
    usedAt: uses.get(row.id) ?? row.usedAt,
  });
  const found = (row: Row | undefined) => (row === undefined ? undefined : shown(row));

  return {
    create(given) {
      const key = `${API_KEY_PREFIX}${randomBytes(KEY_BYTES).toString("base64url")}`;
      const made = { ...given, id: randomUUID(), createdAt: Math.floor(clock.wallClock()) };
      try {
        insert.run({ ...made, hash: hashed(key), scopes: given.scopes.join(" ") });
      } catch (error) {
        if (error instanceof SqliteError && error.code === "SQLITE_CONSTRAINT_FOREIGNKEY") return undefined;
        throw error;
      }
      return { row: { ...made, usedAt: null }, key };
    },
    list: (workspace) => ofWorkspace.all(workspace).map(shown),
    byId: (id) => found(byId.get(id)),
    byKey: (key) => found(byHash.get(hashed(key))),
    remove: (id) => removeRow.run(id).changes > 0,
    removeAll: () => void removeRows.run(),
    use(id) {
      uses.set(id, Math.floor(clock.wallClock() / MINUTE_MS) * MINUTE_MS);
      keepLater();
    },
    close() {
      timer?.cancel();
      if (uses.size > 0) keepUses();
    },
  };
}

const hashed = (key: string) => createHash("sha256").update(key).digest("base64url");

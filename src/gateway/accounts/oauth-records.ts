/**
 * The memory of the OAuth server: device codes, logins (its "grants"), refresh tokens. Secrets by which clients prove
 * their identity are stored only as their SHA-256, so that a copy of the file gives no access. Device codes are the
 * exception: they live ten minutes and are looked up by the code that a person types. A login is everything that one
 * sign-in gave: its refresh tokens and, by a claim in them, its access tokens.
 */
import { createHash } from "node:crypto";
import type { Connection } from "../../lib/sqlite/index.ts";

export interface OauthRecord {
  readonly payload: Readonly<Record<string, unknown>>;
  /** Seconds since the epoch. Undefined: it is not used up. */
  readonly consumedAt: number | undefined;
}

export interface OauthRecords {
  /** `expiresIn` in seconds. */
  upsert(kind: string, id: string, payload: Readonly<Record<string, unknown>>, expiresIn: number | undefined): void;
  find(kind: string, id: string): OauthRecord | undefined;
  /** Like `find`, but undefined for an expired record. `find` leaves that check to the OAuth server. */
  findCurrent(kind: string, id: string): OauthRecord | undefined;
  findByUserCode(kind: string, userCode: string): OauthRecord | undefined;
  findByUid(kind: string, uid: string): OauthRecord | undefined;
  /** False: it was used up before. */
  consume(kind: string, id: string): boolean;
  /** Marks it as unused again. */
  unconsume(kind: string, id: string): void;
  destroy(kind: string, id: string): void;
  /** Ends a login: none of its tokens is valid any more. */
  endLogin(login: string): void;
  /** Ends all logins of an account, and its visits to the sign-in pages. */
  endLogins(account: string): void;
  /** Ends all logins. */
  endAll(): void;
  /** True if a login exists. Its access tokens are valid only then. */
  isLogin(login: string): boolean;
  /** Removes expired records. */
  tidy(): void;
}

/** The kind of record that stands for a login, in the words of the OAuth server. */
export const LOGIN = "Grant";
const DEVICE_CODE = "DeviceCode";

interface Row {
  readonly payload: string;
  readonly consumedAt: number | null;
}

export function createOauthRecords(database: Connection, clock: { wallClock(): number }): OauthRecords {
  const upsertRow = database.prepare(
    `INSERT INTO oauth (kind, id, payload, login, user_code, uid, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (kind, id) DO UPDATE SET payload = excluded.payload, login = excluded.login,
       user_code = excluded.user_code, uid = excluded.uid, expires_at = excluded.expires_at`,
  );
  const columns = "SELECT payload, consumed_at AS consumedAt FROM oauth WHERE kind = ?";
  const byId = database.prepare<[string, string], Row>(`${columns} AND id = ?`);
  const current = database.prepare<[string, string, number], Row>(
    `${columns} AND id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const byUserCode = database.prepare<[string, string], Row>(`${columns} AND user_code = ?`);
  const byUid = database.prepare<[string, string], Row>(`${columns} AND uid = ?`);
  const consumeRow = database.prepare(
    "UPDATE oauth SET consumed_at = ? WHERE kind = ? AND id = ? AND consumed_at IS NULL",
  );
  const unconsumeRow = database.prepare("UPDATE oauth SET consumed_at = NULL WHERE kind = ? AND id = ?");
  const destroyRow = database.prepare("DELETE FROM oauth WHERE kind = ? AND id = ?");
  const destroyLogin = database.prepare("DELETE FROM oauth WHERE login = ?");
  const loginsOf = database
    .prepare<[string], string>(`SELECT login FROM oauth WHERE kind = '${LOGIN}' AND payload ->> 'accountId' = ?`)
    .pluck();
  const destroyOwn = database.prepare("DELETE FROM oauth WHERE payload ->> 'accountId' = ?");
  const destroyAll = database.prepare("DELETE FROM oauth");
  const hasLogin = database.prepare<[string, number], 1>(
    `SELECT 1 FROM oauth WHERE kind = '${LOGIN}' AND id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const expire = database.prepare("DELETE FROM oauth WHERE expires_at <= ?");

  const seconds = () => Math.floor(clock.wallClock() / 1000);
  const text = (payload: Readonly<Record<string, unknown>>, name: string) => {
    const value = payload[name];
    return typeof value === "string" ? value : undefined;
  };
  const record = (row: Row | undefined): OauthRecord | undefined =>
    row === undefined ? undefined : { payload: JSON.parse(row.payload), consumedAt: row.consumedAt ?? undefined };

  return {
    upsert(kind, id, { jti: _, ...given }, expiresIn) {
      const payload = isSecret(kind) ? given : { ...given, jti: id };
      const login = kind === LOGIN ? id : text(payload, "grantId");
      const expiresAt = expiresIn === undefined ? null : seconds() + expiresIn;
      const indexed = [login, text(payload, "userCode"), text(payload, "uid")].map((value) => value ?? null);
      upsertRow.run(kind, stored(kind, id), JSON.stringify(payload), ...indexed, expiresAt);
    },
    find: (kind, id) => record(byId.get(kind, stored(kind, id))),
    findCurrent: (kind, id) => record(current.get(kind, stored(kind, id), seconds())),
    findByUserCode: (kind, userCode) => record(byUserCode.get(kind, userCode)),
    findByUid: (kind, uid) => record(byUid.get(kind, uid)),
    consume: (kind, id) => consumeRow.run(seconds(), kind, stored(kind, id)).changes > 0,
    unconsume: (kind, id) => void unconsumeRow.run(kind, stored(kind, id)),
    destroy: (kind, id) => void destroyRow.run(kind, stored(kind, id)),
    endLogin: (login) => void destroyLogin.run(login),
    endLogins(account) {
      for (const login of loginsOf.all(account)) destroyLogin.run(login);
      destroyOwn.run(account);
    },
    endAll: () => void destroyAll.run(),
    isLogin: (login) => hasLogin.get(login, seconds()) !== undefined,
    tidy: () => void expire.run(seconds()),
  };
}

/** The id of a login is no secret: access tokens contain it. */
const isSecret = (kind: string) => kind !== LOGIN && kind !== DEVICE_CODE;

const stored = (kind: string, id: string) =>
  isSecret(kind) ? createHash("sha256").update(id).digest("base64url") : id;

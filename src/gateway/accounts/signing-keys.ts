/**
 * The keys that sign access tokens: ECDSA over P-256 (ES256), so that any service can check a token with the public
 * keys. The newest key signs. A replaced key is known for as long as a token that it signed may live.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import type { Connection } from "../../lib/sqlite/index.ts";
import { DAY_MS } from "../../lib/time.ts";

const ALGORITHM = "ES256";
/** The time for which a key signs. */
const REPLACE_MS = 30 * DAY_MS;

/** A JSON Web Key (RFC 7517) of this kind. */
interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
  /** Only in a private key. */
  readonly d?: string;
  readonly kid: string;
  readonly alg: string;
  readonly use: string;
}

export interface SigningKeys {
  /** The keys with their private parts, the newest first. Makes a key if there is none. */
  all(): Jwk[];
  /** Undefined: not a key of ours, or one that has ended. */
  publicKey(kid: string, algorithm: string): KeyObject | undefined;
  /** If the last key is older than a month, a new one signs from now on. `lifeMs`: how long a token may live. */
  rotate(lifeMs: number): void;
  /** Ends all keys: no token that they signed is valid any more. */
  replaceAll(): void;
}

interface KeyRow {
  readonly kid: string;
  readonly algorithm: string;
  readonly privateJwk: string;
  readonly createdAt: number;
}

export function createSigningKeys(database: Connection, clock: { wallClock(): number }): SigningKeys {
  const rows = database.prepare<[], KeyRow>(
    `SELECT kid, algorithm, private_jwk AS privateJwk, created_at AS createdAt FROM signing_key
     ORDER BY retired_at IS NULL DESC, created_at DESC, kid`,
  );
  const one = database.prepare<[string], KeyRow>(
    "SELECT kid, algorithm, private_jwk AS privateJwk, created_at AS createdAt FROM signing_key WHERE kid = ?",
  );
  const insert = database.prepare(
    "INSERT INTO signing_key (kid, algorithm, private_jwk, created_at) VALUES (?, ?, ?, ?)",
  );
  const retire = database.prepare("UPDATE signing_key SET retired_at = ? WHERE retired_at IS NULL");
  const forget = database.prepare("DELETE FROM signing_key WHERE retired_at < ?");
  const forgetAll = database.prepare("DELETE FROM signing_key");
  /** Key objects, by the id of the key. The table is asked first, because another process may have removed the key. */
  const made = new Map<string, KeyObject>();

  function make(): void {
    const now = Math.floor(clock.wallClock());
    const kid = randomUUID();
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = { ...privateKey.export({ format: "jwk" }), kid, alg: ALGORITHM, use: "sig" };
    retire.run(now);
    insert.run(kid, ALGORITHM, JSON.stringify(jwk), now);
  }

  return {
    all() {
      if (rows.get() === undefined) {
        // Another process may have made one at the same moment.
        database.transaction(() => rows.get() ?? make()).immediate();
      }
      return rows.all().map((row) => JSON.parse(row.privateJwk) as Jwk);
    },
    publicKey(kid, algorithm) {
      const row = one.get(kid);
      if (row === undefined || row.algorithm !== algorithm) return undefined;
      let key = made.get(kid);
      if (key === undefined) {
        key = createPublicKey(createPrivateKey({ key: JSON.parse(row.privateJwk), format: "jwk" }));
        made.set(kid, key);
      }
      return key;
    },
    rotate(lifeMs) {
      database
        .transaction(() => {
          const now = clock.wallClock();
          const newest = rows.get();
          if (newest === undefined || newest.createdAt <= now - REPLACE_MS) make();
          forget.run(now - lifeMs);
        })
        .immediate();
    },
    replaceAll() {
      database
        .transaction(() => {
          forgetAll.run();
          make();
        })
        .immediate();
    },
  };
}

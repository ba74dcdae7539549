/**
 * Refresh tokens rotate: each use gives a successor. A client whose answer was lost, and two programs that share a
 * login, may use a token twice. For a minute, and while its successor is unused, the token gives that same successor. A
 * later use means that the token or its successor was stolen: the whole login ends (RFC 9700 §4.14.2).
 *
 * If two requests come at once, the first to claim the token makes the successor, and the second waits for it. A
 * process that dies between the claim and the successor leaves a used token without one: the next use makes one.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { OauthRecords } from "../accounts/index.ts";

export const REFRESH_TOKEN = "RefreshToken";
const SUCCESSOR = "Successor";
const REPEAT_SECONDS = 60;

export interface RefreshRotation {
  /** True if a used token may be used once more. */
  isRepeatable(token: string): boolean;
  /**
   * True if this request has to make a successor; otherwise `successor` answers it. Every claim is followed by
   * `release`.
   */
  claim(token: string): boolean;
  /**
   * Notes that the request that claimed `token` has ended. `successor` undefined: it was refused, and the token counts
   * as unused.
   */
  release(token: string, successor: string | undefined, login: string | undefined): void;
  /** Returns the successor of a used token; undefined when the request that used it failed. */
  successor(token: string): Promise<string | undefined>;
}

export function createRefreshRotation(records: OauthRecords, clock: { wallClock(): number }): RefreshRotation {
  const claimed = new Map<string, Deferred<void>>();

  function known(token: string): string | undefined {
    const sealed = records.find(SUCCESSOR, token)?.payload.sealed;
    return typeof sealed === "string" ? unseal(token, sealed) : undefined;
  }

  return {
    isRepeatable(token) {
      const usedAt = records.find(REFRESH_TOKEN, token)?.consumedAt;
      if (usedAt === undefined) return true;
      if (clock.wallClock() / 1000 - usedAt > REPEAT_SECONDS) return false;
      const next = known(token);
      return next === undefined || records.find(REFRESH_TOKEN, next)?.consumedAt === undefined;
    },
    claim(token) {
      if (claimed.has(token)) return false;
      if (!records.consume(REFRESH_TOKEN, token) && known(token) !== undefined) return false;
      claimed.set(token, deferred());
      return true;
    },
    release(token, successor, login) {
      if (successor === undefined) records.unconsume(REFRESH_TOKEN, token);
      else {
        const payload = { sealed: seal(token, successor), ...(login === undefined ? {} : { grantId: login }) };
        records.upsert(SUCCESSOR, token, payload, REPEAT_SECONDS + 1);
      }
      claimed.get(token)?.resolve();
      claimed.delete(token);
    },
    async successor(token) {
      await claimed.get(token)?.promise;
      return known(token);
    },
  };
}

/** Only the holder of the token can read its successor: a copy of the database gives no access. */
const keyOf = (token: string) => createHash("sha256").update(`successor of ${token}`).digest();
const IV_BYTES = 12;
const TAG_BYTES = 16;

function seal(token: string, successor: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(token), iv);
  const text = Buffer.concat([cipher.update(successor, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
}

function unseal(token: string, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64url");
  const decipher = createDecipheriv("aes-256-gcm", keyOf(token), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
}

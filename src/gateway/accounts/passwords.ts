/**
 * Passwords as they are stored: scrypt (RFC 7914), each with its own salt and with the cost beside it, so that the cost
 * can be raised later. Hashing runs on the thread pool: it takes about a tenth of a second on purpose.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";

export interface PasswordCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's recommendation of 2025: 64 MiB of memory for each guess. */
export const COST: PasswordCost = { N: 2 ** 16, r: 8, p: 2 };
/** For hashes that are never stored, and so cannot be stolen. */
export const LEAST_COST: PasswordCost = { N: 2 ** 4, r: 8, p: 1 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Bytes of UTF-8. A longer password is no better, and hashing it takes time. */
const LONGEST = 1024;
const SHORTEST_PASSWORD = 8;

/** Returns the fault of a new password. Undefined: there is none. */
function passwordProblem(password: string): string | undefined {
  const length = [...password].length;
  if (length < SHORTEST_PASSWORD) return `expected at least ${SHORTEST_PASSWORD} characters, got ${length}`;
  const bytes = Buffer.byteLength(password);
  return bytes > LONGEST ? `expected at most ${LONGEST} bytes, got ${bytes}` : undefined;
}

/** Throws when `passwordProblem` finds a problem. */
export async function hashPassword(password: string, cost: PasswordCost): Promise<string> {
  const problem = passwordProblem(password);
  if (problem !== undefined) throw new Error(`password: ${problem}`);
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, HASH_BYTES, cost);
  return storedForm(cost, salt, hash);
}

/** `stored` null: takes as long as a wrong one of this cost, so that the time does not reveal which accounts exist. */
export async function isPassword(password: string, stored: string | null, unknown: PasswordCost): Promise<boolean> {
  if (Buffer.byteLength(password) > LONGEST) return false;
  const [kind, N, r, p, salt = "", hash = ""] = (stored ?? nobodys(unknown)).split("$");
  if (kind !== "scrypt") throw new Error("A stored password is of a kind this program does not know.");
  const expected = Buffer.from(hash, "base64url");
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const actual = await derive(password, Buffer.from(salt, "base64url"), expected.length, cost);
  return timingSafeEqual(actual, expected) && stored !== null;
}

const storedForm = ({ N, r, p }: PasswordCost, salt: Buffer, hash: Buffer) =>
  ["scrypt", N, r, p, salt.toString("base64url"), hash.toString("base64url")].join("$");

const nobodys = (cost: PasswordCost) => storedForm(cost, Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

function derive(password: string, salt: Buffer, bytes: number, cost: PasswordCost) {
  // Keyboards may send the same letters composed or decomposed (RFC 8265), so the password is normalized.
  const text = password.normalize("NFC");
  const options: ScryptOptions = { ...cost, maxmem: 2 * 128 * cost.N * cost.r };
  return new Promise<Buffer>((resolve, reject) => {
    scrypt(text, salt, bytes, options, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
}

/**
 * The visit of a person to the sign-in pages: a cookie, and the account that signed in with it. Each sign-in begins a
 * new visit, so that a planted cookie is void. Before the sign-in nothing is stored for a visit. Forms carry a token
 * that only a page of the same visit has (CSRF).
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Account, AccountStore } from "../accounts/index.ts";

const KIND = "Visit";
export const VISIT_COOKIE = "wsfs-visit";
/** After this time a person has to sign in again. */
export const VISIT_SECONDS = 8 * 3600;
const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

export interface Visit {
  readonly id: string;
  readonly account: Account | undefined;
}

interface Visits {
  /**
   * Returns a visit by its cookie, without an account when the visit has ended; undefined: there is no valid cookie.
   */
  find(cookie: string | undefined): Visit | undefined;
  begin(account: Account | undefined): Visit;
  end(visit: Visit): void;
  formToken(visit: Visit): string;
  isFormToken(visit: Visit, token: string | undefined): boolean;
}

export function createVisits({ records, accounts }: AccountStore): Visits {
  /** Only this process has it: a form from before its start has to be filled in again. */
  const secret = randomBytes(ID_BYTES);
  const formToken = ({ id }: Visit) => createHmac("sha256", secret).update(id).digest("base64url");
  return {
    find(cookie) {
      if (cookie === undefined || !ID.test(cookie)) return undefined;
      const accountId = records.findCurrent(KIND, cookie)?.payload.accountId;
      return { id: cookie, account: typeof accountId === "string" ? accounts.find(accountId) : undefined };
    },
    begin(account) {
      const id = randomBytes(ID_BYTES).toString("base64url");
      if (account !== undefined) records.upsert(KIND, id, { accountId: account.id }, VISIT_SECONDS);
      return { id, account };
    },
    end: ({ id }) => records.destroy(KIND, id),
    formToken,
    isFormToken(visit, token) {
      const expected = Buffer.from(formToken(visit));
      const actual = Buffer.from(token ?? "");
      return actual.length === expected.length && timingSafeEqual(actual, expected);
    },
  };
}

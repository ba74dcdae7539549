/** The users and groups of this machine, as the flows see them; `daemon/accounts.ts` is the real one. See tree/owners.ts. */

export type AccountKind = "user" | "group";

/** Answers are undefined where there is no such account; they reject where that cannot be found out. */
export interface Accounts {
  numberOf(kind: AccountKind, name: string): Promise<number | undefined>;
  nameOf(kind: AccountKind, number: number): Promise<string | undefined>;
}

export const NO_ACCOUNTS: Accounts = { numberOf: async () => undefined, nameOf: async () => undefined };

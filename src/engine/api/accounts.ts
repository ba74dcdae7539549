/** Users and groups of this machine. The interface; `daemon/accounts.ts` implements it, `tree/owners.ts` uses it. */

export type AccountKind = "user" | "group";

/** Both calls resolve to undefined when there is no such account, and reject when the directory could not be asked. */
export interface Accounts {
  /** The uid or gid of this name. */
  numberOf(kind: AccountKind, name: string): Promise<number | undefined>;
  /** The name of this uid or gid. */
  nameOf(kind: AccountKind, number: number): Promise<string | undefined>;
}

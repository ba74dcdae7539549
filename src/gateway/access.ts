/**
 * Checks the rights of a caller in a workspace. The scopes of the token are checked first (scopes.ts), then the
 * account's role in the workspace. An account without a role does not learn that the workspace or node exists: 404, in
 * the same words as for something that does not exist. A role that is too low, or a token that is bound to another
 * workspace, gets a 403 with `grant`. A token without an account counts as an owner.
 */
import { type Author, author } from "../contract/resources.ts";
import { includesRole, type Role } from "../contract/roles.ts";
import type { Context } from "./context.ts";
import { lacksGrant, type ProblemError } from "./problems.ts";
import type { Caller } from "./tokens.ts";

/** Undefined: the caller may not know that the workspace exists. */
export function roleIn(context: Context, caller: Caller, workspace: string): Role | undefined {
  return caller.account === undefined ? "owner" : context.accounts.role(caller.account.id, workspace);
}

/** Throws `unseen` when the caller may not know of the workspace, and a 403 when its role or token is not enough. */
export function checkAccess(context: Context, caller: Caller, workspace: string, unseen: () => ProblemError): void {
  const role = roleIn(context, caller, workspace);
  if (role === undefined) throw unseen();
  const needed = caller.needs ?? "viewer";
  if (caller.workspace !== undefined && caller.workspace !== workspace) {
    throw lacksGrant(
      "It is in another workspace than the one that the token is bound to or workspace= names.",
      workspace,
      needed,
    );
  }
  if (includesRole(role, needed)) return;
  throw lacksGrant(`This takes the role ${needed} in the workspace; the account is ${role}.`, workspace, needed);
}

/** The record of a change's caller (changes.ts). */
export function changeOf({ account, mount, execution }: Caller, key: string | null | undefined, journaled = true) {
  const by: Author = {
    account: account?.name ?? null,
    ...(mount === undefined ? {} : { mount }),
    ...(execution === undefined ? {} : { execution }),
  };
  const isNobody = account === undefined && mount === undefined && execution === undefined;
  return { by: isNobody ? null : by, key, journaled };
}

/** The author that was stored with a change. */
export const shownAuthor = (stored: string | null): Author | null =>
  stored === null ? null : author.parse(JSON.parse(stored));

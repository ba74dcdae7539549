/**
 * What a caller may do where. A token's scopes come first (scopes.ts); then the account's role in the workspace. An
 * account without one does not learn that there is such a workspace or node: 404, in the words of what is not there. A
 * role that is too low, or a token bound elsewhere, is a 403 with `grant`. A token of no account counts as an owner.
 */
import { type Author, author } from "../contract/resources.ts";
import { includesRole, type Role } from "../contract/roles.ts";
import type { Context } from "./context.ts";
import { lacksGrant, type ProblemError } from "./problems.ts";
import type { Caller } from "./tokens.ts";

/** Undefined: the caller may not see that it is there. */
export function roleIn(context: Context, caller: Caller, workspace: string): Role | undefined {
  return caller.account === undefined ? "owner" : context.accounts.role(caller.account.id, workspace);
}

/** Throws `unseen` where the caller may not know of what is in the workspace, a 403 where its role or token is not enough. */
export function checkAccess(context: Context, caller: Caller, workspace: string, unseen: () => ProblemError): void {
  const role = roleIn(context, caller, workspace);
  if (role === undefined) throw unseen();
  const needed = caller.needs ?? "viewer";
  if (caller.workspace !== undefined && caller.workspace !== workspace) {
    throw lacksGrant("It is in another workspace than the token is bound to, or workspace= names.", workspace, needed);
  }
  if (includesRole(role, needed)) return;
  throw lacksGrant(`This takes the role ${needed} in the workspace; the account is ${role}.`, workspace, needed);
}

/** What a change of the caller's says of itself (changes.ts). */
export function changeOf({ account, mount, execution }: Caller, key: string | null | undefined, journaled = true) {
  const by: Author = {
    account: account?.name ?? null,
    ...(mount === undefined ? {} : { mount }),
    ...(execution === undefined ? {} : { execution }),
  };
  const isNobody = account === undefined && mount === undefined && execution === undefined;
  return { by: isNobody ? null : by, key, journaled };
}

/** As it was stored with a change. */
export const shownAuthor = (stored: string | null): Author | null =>
  stored === null ? null : author.parse(JSON.parse(stored));

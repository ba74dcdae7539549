/**
 * What an account may do in a workspace: a viewer reads, an editor also writes and runs, an owner also installs and makes
 * keys, triggers and grants. Each includes those before it. A token's scopes say what a program may do for the account;
 * both must allow a call.
 */
export const ROLES = ["viewer", "editor", "owner"] as const;

export type Role = (typeof ROLES)[number];

/** Whether `role` is enough where `needed` is needed. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

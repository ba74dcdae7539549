/**
 * The role of an account in a workspace. A viewer reads; an editor also writes and runs engines; an owner also installs
 * engines and makes keys, triggers and grants. Each role includes those before it. A token's scopes say what a program
 * may do for the account; both must allow a call.
 */
export const ROLES = ["viewer", "editor", "owner"] as const;

export type Role = (typeof ROLES)[number];

/** True if `role` includes `needed`. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

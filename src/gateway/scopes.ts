/** Checks the rights of a token by its scopes. */
import { OPERATIONS, type Operation } from "../contract/operations.ts";
import type { Scope } from "../contract/scopes.ts";
import { missingScope } from "./problems.ts";
import type { Caller } from "./tokens.ts";

/** Throws a 403 that names the first missing scope. */
export function checkScopes(caller: Caller, operation: Operation): void {
  for (const scope of operation.scopes) {
    if (!caller.scopes.has(scope) && !operation.mayLack?.includes(scope)) throw missingScope(scope);
  }
}

/**
 * True if the caller may see nodes and read their content. The right to write alone reveals no existing node.
 */
export function mayRead(caller: Caller): boolean {
  return caller.scopes.has(READ_SCOPE);
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.has(scope)) throw missingScope(scope);
}

export const requireRead = (caller: Caller) => requireScope(caller, READ_SCOPE);

const READ_SCOPE = "node.file.read" satisfies Scope;

/** True if the caller may read journal entries, in a workspace that it may see. */
export function mayReadJournal(caller: Caller): boolean {
  return OPERATIONS.readJournal.scopes.every((scope) => caller.scopes.has(scope));
}

/**
 * True if uploads and new folders append journal entries, which provision them (gateway-spec §4, upload rule
 * 4).
 */
export function mayJournal(caller: Caller): boolean {
  return caller.scopes.has("node.journal.create");
}

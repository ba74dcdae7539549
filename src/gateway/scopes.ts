/** What a token may do, by its scopes. */
import type { Operation } from "../contract/operations.ts";
import { missingScope } from "./problems.ts";
import type { Caller } from "./tokens.ts";

/** 403 naming the first scope that is missing. */
export function checkScopes(caller: Caller, operation: Operation): void {
  for (const scope of operation.scopes) {
    if (!caller.scopes.has(scope) && !operation.mayLack?.includes(scope)) throw missingScope(scope);
  }
}

/** Whether uploads and new folders append journal entries, which provision them (gateway-spec §4, upload rule 4). */
export function mayJournal(caller: Caller): boolean {
  return caller.scopes.has("node.journal.create");
}

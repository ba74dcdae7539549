/** Kinds of journal entries. It does not load zod, because every command line needs this file. */
import { EXECUTION_STATES } from "./execution-states.ts";

/** Kinds of entries about a change. Each change has one such entry, which only the gateway writes. */
export const CHANGE_KINDS = ["created", "updated", "moved", "changed", "deleted", "restored"] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/**
 * The beginning of a kind; the state of the execution follows. Such an entry is an activity of the installation's
 * folder.
 */
export const EXECUTION_KIND = "execution.";

/** All kinds that the gateway writes. Entries of programs have other kinds. */
export const GATEWAY_KINDS: readonly string[] = [
  ...CHANGE_KINDS,
  ...EXECUTION_STATES.map((state) => EXECUTION_KIND + state),
];

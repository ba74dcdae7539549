/** Kinds of journal entries. Knows nothing of zod: every command line is read with it. */
import { EXECUTION_STATES } from "./execution-states.ts";

/** Kinds of entries about a change. Each change has one entry, which the gateway alone writes. */
export const CHANGE_KINDS = ["created", "updated", "moved", "changed", "deleted", "restored"] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** The start of a kind; the state of the execution follows. The entry is an activity of the installation's folder. */
export const EXECUTION_KIND = "execution.";

/** All kinds that the gateway writes. Programs write entries of other kinds. */
export const GATEWAY_KINDS: readonly string[] = [
  ...CHANGE_KINDS,
  ...EXECUTION_STATES.map((state) => EXECUTION_KIND + state),
];

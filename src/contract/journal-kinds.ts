/** Kinds of journal entries. Knows nothing of zod: every command line is read with it. */
import { EXECUTION_STATES } from "./execution-states.ts";

/** What a journal entry tells of a change; one for each, by the gateway alone. */
export const CHANGE_KINDS = ["created", "updated", "moved", "changed", "deleted", "restored"] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** What the journal tells of an execution: an activity of the installation's folder, of this kind and its state. */
export const EXECUTION_KIND = "execution.";

/** All that the gateway tells of itself. Programs write others. */
export const GATEWAY_KINDS: readonly string[] = [
  ...CHANGE_KINDS,
  ...EXECUTION_STATES.map((state) => EXECUTION_KIND + state),
];

/** The states of an execution; apart from the schemas, for those who need no more. */

/**
 * queued → running → one of the others; queued → cancelled too. `interrupted`: the gateway ended while it ran. The last
 * five are final.
 */
export const EXECUTION_STATES = [
  "queued",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "timed-out",
  "interrupted",
] as const;
export type ExecutionState = (typeof EXECUTION_STATES)[number];

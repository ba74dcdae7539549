/** The states of an execution, apart from the schemas for code that needs only these. */

/**
 * queued → running → one of the others; also queued → cancelled. `interrupted`: the gateway ended while it ran. The
 * last five are final.
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

/** The states of an execution. They are no schemas, because journal-kinds.ts must not load zod. */

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

/** The door to engines: their installations in workspaces, and their executions with logs. */

export type { EngineHost, EngineQueue } from "./engine-queue.ts";
export { findExecution, isRunning } from "./execution-rows.ts";
export {
  cancelExecution,
  endOf,
  getExecution,
  listExecutions,
  originOf,
  queueTriggered,
  requiredInstallation,
  startExecution,
} from "./executions.ts";
export { checkSchema } from "./input.ts";
export {
  createInstallation,
  getEngine,
  getInstallation,
  listEngines,
  listInstallations,
  removeInstallation,
} from "./installations.ts";
export { openLogs } from "./logs.ts";
export { createEngineProcesses } from "./processes.ts";
export { createQueue } from "./queue.ts";
export { readLogs, streamLogs } from "./read-logs.ts";

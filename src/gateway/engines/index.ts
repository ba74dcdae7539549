/** The door to engines: their installations in workspaces, and their executions with logs. */

export type { EngineHost, EngineQueue } from "./engine-queue.ts";
export { type ExecutionRow, executionSeen, findExecution, isRunning, showExecution } from "./execution-rows.ts";
export {
  cancelExecution,
  endOf,
  getExecution,
  listExecutions,
  originOf,
  queueTriggered,
  requiredInstallation,
  startExecution,
  type TriggeredExecution,
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
export { type Logs, openLogs } from "./logs.ts";
export { createEngineProcesses, type EngineProcesses } from "./processes.ts";
export { createQueue } from "./queue.ts";
export { readLogs, streamLogs } from "./read-logs.ts";

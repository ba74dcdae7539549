/** A gateway's part that runs engines, as a process that tests kill. Arguments: the folder of executions, that of logs, a script. */
import { openLogs } from "../../../src/gateway/engines/logs.ts";
import { createEngineProcesses } from "../../../src/gateway/engines/processes.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";

const [work = "", logs = "", script = ""] = process.argv.slice(2);
const processes = createEngineProcesses({ folder: work, clock: systemClock, environment: process.env });
const log = openLogs({ folder: logs, clock: systemClock }).open("e");
const command = ["sh", "-c", script];
const environment = { HOLD: process.env.HOLD ?? "" };
processes.start({ id: "e", command, environment, input: "", files: {}, timeLimitMs: 600_000, log });

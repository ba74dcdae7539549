/** `wsfs executions run|list|show|logs|cancel`. */
import type { Execution, Gateway, LogLine } from "../client/index.ts";
import { EXIT, lineOf, withoutOperation } from "./failure.ts";
import type { Values } from "./options.ts";
import { atGateway, inputOf, print, printList, showAuthor } from "./service.ts";
import { fieldLines, showTime } from "./table.ts";
import { formatSize, formatWait, printable } from "./wording.ts";

/** With --follow or --wait, the exit code says whether the execution succeeded. */
export async function executionsRun(values: Values<"executions run">): Promise<number> {
  const input = await inputOf(values.input);
  const { follow, "wait-end": wait, json } = values;
  return atGateway(
    values,
    ["startExecution", ...(follow || wait ? (["getExecution"] as const) : [])],
    async (gateway) => {
      const { id } = await gateway.executions.start(values.positionals.ENGINE, {
        input,
        idempotencyKey: values["idempotency-key"],
      });
      if (!follow && !wait) return print(json, { id }, `${id}\n`);
      process.stderr.write(`execution ${id}\n`);
      if (follow) await printLog(gateway, id, { follow: true, json: false });
      const ended = await gateway.executions.wait(id);
      if (json) process.stdout.write(`${JSON.stringify(ended)}\n`);
      return endOf(ended);
    },
  );
}

/** Prints to standard error why an execution did not succeed. Returns the exit code. */
function endOf({ state, exitCode, detail }: Execution): number {
  if (state === "succeeded") return EXIT.ok;
  const why = detail ?? (exitCode === null ? "" : `exit code ${exitCode}`);
  process.stderr.write(`wsfs: the execution ${wordsOf(state)}${why === "" ? "" : `: ${printable(why)}`}\n`);
  return EXIT.failure;
}

function wordsOf(state: Execution["state"]): string {
  const words: Partial<Record<Execution["state"], string>> = {
    failed: "failed",
    cancelled: "was cancelled",
    "timed-out": "was ended at its time limit",
    interrupted: "was interrupted",
  };
  return words[state] ?? `is ${state}`;
}

export async function executionsList(values: Values<"executions list">): Promise<number> {
  const { state, "engine-filter": engine, limit, json } = values;
  await atGateway(values, ["listExecutions"], (gateway) =>
    printList(gateway.executions.list({ state, engine, ...(limit === 0 ? {} : { pageSize: Math.min(limit, 1000) }) }), {
      json,
      limit,
      heads: ["ID", "ENGINE", "STATE", "STARTED", "TOOK", "BY", "DETAIL"],
      row: (one) => [
        one.id,
        one.engine.name,
        one.state,
        showTime(one.startedAt ?? one.createdAt),
        tookOf(one),
        one.cause === null ? showAuthor(one.by) : "a trigger",
        one.detail ?? "",
      ],
      none:
        state === undefined && engine === undefined
          ? "Nothing has run in the workspace."
          : "There is no such execution in the workspace.",
    }),
  );
  return EXIT.ok;
}

function tookOf({ startedAt, endedAt }: Execution): string {
  if (startedAt === null) return "";
  return formatWait(Math.max(0, (endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt)));
}

export function executionsShow(values: Values<"executions show">): Promise<number> {
  return atGateway({ env: values.env }, ["getExecution"], async (gateway) => {
    const one = await gateway.executions.get(values.positionals.ID);
    const text = fieldLines([
      ["Id", one.id],
      ["Engine", one.engine.name],
      ["Workspace", one.workspace.name],
      ["State", one.state],
      ["Detail", one.detail],
      ["Exit code", one.exitCode === null ? "" : String(one.exitCode)],
      ["Input", one.input === null || one.input === undefined ? "" : JSON.stringify(one.input)],
      ["By", one.cause === null ? showAuthor(one.by) : `trigger ${one.cause.triggerId}`],
      ["For", occasionOf(one.cause)],
      ["Created", showTime(one.createdAt)],
      ["Started", showTime(one.startedAt)],
      ["Ended", showTime(one.endedAt)],
      ["Took", tookOf(one)],
      ["Log", one.logBytes === 0 ? "" : formatSize(one.logBytes)],
    ]);
    return print(values.json, one, text);
  });
}

function occasionOf(cause: Execution["cause"]): string | undefined {
  if (cause?.entry !== undefined) return `${cause.entry.kind} ${cause.entry.name}`;
  return cause?.position === undefined ? cause?.scheduledFor : `journal position ${cause.position}`;
}

export function executionsLogs(values: Values<"executions logs">): Promise<number> {
  const { follow, json } = values;
  return atGateway({ env: values.env }, ["readLogs", "streamLogs", "getExecution"], async (gateway) => {
    const { ID } = values.positionals;
    await printLog(gateway, ID, { follow, json });
    return follow ? endOf(await gateway.executions.get(ID)) : EXIT.ok;
  });
}

async function printLog(
  gateway: Gateway,
  id: string,
  { follow, json }: { readonly follow: boolean; readonly json: boolean },
): Promise<void> {
  const onBreak = (error: Error | undefined) => {
    process.stderr.write(
      `wsfs: the log: ${error === undefined ? "the stream ended" : withoutOperation(lineOf(error))}; going on\n`,
    );
  };
  const lines: AsyncIterable<LogLine> = follow
    ? gateway.executions.follow(id, { onBreak })
    : gateway.executions.log(id, { pageSize: 1000 });
  for await (const line of lines) {
    if (json) process.stdout.write(`${JSON.stringify(line)}\n`);
    else if (line.stream === "out") process.stdout.write(`${line.text}\n`);
    else process.stderr.write(line.stream === "err" ? `${line.text}\n` : `gateway: ${line.text}\n`);
  }
}

export function executionsCancel(values: Values<"executions cancel">): Promise<number> {
  return atGateway({ env: values.env }, ["cancelExecution", "getExecution"], async (gateway) => {
    const { ID } = values.positionals;
    await gateway.executions.cancel(ID);
    const ended = await gateway.executions.wait(ID);
    const text =
      ended.state === "cancelled" ? "The execution is cancelled.\n" : `It had ended already: ${ended.state}.\n`;
    return print(values.json, ended, text);
  });
}

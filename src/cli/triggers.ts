/** `wsfs triggers create|list|show|enable|disable|remove`. */
import type { Trigger, TriggerCondition } from "../client/index.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { atGateway, inputOf, print, printList, showAuthor } from "./service.ts";
import { fieldLines, showTime } from "./table.ts";

export async function triggersCreate(values: Values<"triggers create">): Promise<number> {
  const on = conditionOf(values);
  const input = await inputOf(values.input);
  const { NAME: name } = values.positionals;
  return atGateway(values, ["createTrigger"], async (gateway) => {
    const made = await gateway.triggers.create({
      name,
      engine: values.engine,
      on,
      ...(input === undefined ? {} : { input }),
    });
    return print(
      values.json,
      made,
      `Trigger ${made.name} starts ${made.engine.name} ${wordsOf(made.on)} (${made.id}).\n`,
    );
  });
}

function conditionOf(values: Values<"triggers create">): TriggerCondition {
  const { cron, "on-path": path, "time-zone": timeZone } = values;
  const kinds = [...values["on-kind"], ...values["on-activity"]];
  const isJournal = kinds.length > 0 || path !== undefined;
  const refuse = (message: string) => new Failure(`triggers create: ${message}`, EXIT.usage);
  if (isJournal && cron !== undefined)
    throw refuse("--cron goes with no --on-path, --on-kind or --on-activity: make two triggers");
  if (!isJournal && cron === undefined)
    throw refuse("say when it starts the engine: --on-path, --on-kind or --on-activity, or --cron");
  if (timeZone !== undefined && cron === undefined) throw refuse("--time-zone is for --cron");
  if (cron !== undefined) return { schedule: { cron, ...(timeZone === undefined ? {} : { timeZone }) } };
  return { journal: { ...(kinds.length === 0 ? {} : { kinds }), ...(path === undefined ? {} : { path }) } };
}

function wordsOf(on: TriggerCondition): string {
  if ("schedule" in on)
    return `at "${on.schedule.cron}"${on.schedule.timeZone === undefined ? "" : ` ${on.schedule.timeZone}`}`;
  const { kinds = [], path } = on.journal;
  return `for ${kinds.length === 0 ? "every change" : kinds.join(", ")}${path === undefined ? "" : ` of ${path}`}`;
}

export async function triggersList(values: Values<"triggers list">): Promise<number> {
  await atGateway(values, ["listTriggers"], (gateway) =>
    printList(gateway.triggers.list(), {
      json: values.json,
      heads: ["NAME", "ENGINE", "STATE", "NEXT", "ID", "WHEN"],
      row: (one) => [one.name, one.engine.name, stateOf(one), showTime(one.nextAt), one.id, wordsOf(one.on)],
      none: "The workspace has no trigger.",
    }),
  );
  return EXIT.ok;
}

function stateOf({ isEnabled, failures }: Trigger): string {
  if (!isEnabled) return "off";
  return failures > 0 ? `failing (${failures})` : "on";
}

export function triggersShow(values: Values<"triggers show">): Promise<number> {
  return atGateway({ env: values.env }, ["getTrigger"], async (gateway) => {
    const one = await gateway.triggers.get(values.positionals.ID);
    const text = fieldLines([
      ["Name", one.name],
      ["Id", one.id],
      ["Workspace", one.workspace.name],
      ["Engine", one.engine.name],
      ["When", wordsOf(one.on)],
      ["Input", one.input === null || one.input === undefined ? "" : JSON.stringify(one.input)],
      ["State", stateOf(one)],
      ["Detail", one.detail],
      ["Next", showTime(one.nextAt)],
      ["Last", one.lastExecutionId],
      ["Created", `${showTime(one.createdAt)} ${showAuthor(one.by)}`.trim()],
    ]);
    return print(values.json, one, text);
  });
}

const switched = async (values: Values<"triggers enable">, isEnabled: boolean): Promise<number> =>
  atGateway({ env: values.env }, ["updateTrigger"], async (gateway) => {
    const one = await gateway.triggers.update(values.positionals.ID, { isEnabled });
    return print(values.json, one, `Trigger ${one.name} is ${isEnabled ? "on" : "off"}.\n`);
  });

export const triggersEnable = (values: Values<"triggers enable">) => switched(values, true);
export const triggersDisable = (values: Values<"triggers disable">) => switched(values, false);

export function triggersRemove(values: Values<"triggers remove">): Promise<number> {
  return atGateway({ env: values.env }, ["removeTrigger"], async (gateway) => {
    await gateway.triggers.remove(values.positionals.ID);
    process.stdout.write("The trigger is removed.\n");
    return EXIT.ok;
  });
}

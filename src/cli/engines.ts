/** `wsfs engines list|show` and `wsfs installations list|create|remove`. */
import { EXIT } from "./failure.ts";
import type { Values } from "./options.ts";
import { atGateway, print, printList, showAuthor } from "./service.ts";
import { fieldLines, showTime } from "./table.ts";
import { formatDuration } from "./wording.ts";

export async function enginesList(values: Values<"engines list">): Promise<number> {
  await atGateway({ env: values.env }, ["listEngines"], (gateway) =>
    printList(gateway.engines.list(), {
      json: values.json,
      heads: ["NAME", "LIMIT", "DESCRIPTION"],
      row: ({ name, timeLimitSeconds, description }) => [name, formatDuration(timeLimitSeconds * 1000), description],
      none: "The gateway has no engine. The gateway's owner can add one: wsfs gateway engine add NAME -- COMMAND.",
    }),
  );
  return EXIT.ok;
}

export function enginesShow(values: Values<"engines show">): Promise<number> {
  return atGateway({ env: values.env }, ["getEngine"], async (gateway) => {
    const engine = await gateway.engines.get(values.positionals.ENGINE);
    const text = fieldLines([
      ["Name", engine.name],
      ["Id", engine.id],
      ["Description", engine.description],
      ["Time limit", formatDuration(engine.timeLimitSeconds * 1000)],
      ["Scopes", engine.scopes.join(" ")],
      ["Input", engine.inputSchema === null ? "any JSON" : JSON.stringify(engine.inputSchema)],
      ["Added", showTime(engine.createdAt)],
    ]);
    return print(values.json, engine, text);
  });
}

export async function installationsList(values: Values<"installations list">): Promise<number> {
  await atGateway(values, ["listInstallations"], (gateway) =>
    printList(gateway.installations.list(), {
      json: values.json,
      heads: ["ENGINE", "WORKSPACE", "INSTALLED", "BY", "ID"],
      row: ({ engine, workspace, createdAt, by, id }) => [
        engine.name,
        workspace.name,
        showTime(createdAt),
        showAuthor(by),
        id,
      ],
      none: "No engine is installed in the workspace.",
    }),
  );
  return EXIT.ok;
}

export function installationsCreate(values: Values<"installations create">): Promise<number> {
  const { path } = values;
  return atGateway(values, ["createInstallation"], async (gateway) => {
    const made = await gateway.installations.create(values.positionals.ENGINE, { path });
    return print(values.json, made, `${made.engine.name} is installed in ${made.workspace.name} (${made.id}).\n`);
  });
}

export function installationsRemove(values: Values<"installations remove">): Promise<number> {
  return atGateway({ env: values.env }, ["removeInstallation"], async (gateway) => {
    await gateway.installations.remove(values.positionals.ID);
    process.stdout.write("The engine is removed from the workspace; its folder stays.\n");
    return EXIT.ok;
  });
}

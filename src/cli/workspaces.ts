/** `wsfs workspaces list|create`. */
import { EXIT } from "./failure.ts";
import type { Values } from "./options.ts";
import { atGateway, print, printList } from "./service.ts";
import { formatSize } from "./wording.ts";

export async function workspacesList(values: Values<"workspaces list">): Promise<number> {
  await atGateway({ env: values.env }, ["listWorkspaces"], (gateway) =>
    printList(gateway.workspaces.list(), {
      json: values.json,
      heads: ["NAME", "USED", "QUOTA", "ID"],
      row: ({ name, used, quota, id }) => [
        name,
        used === undefined ? "" : formatSize(used),
        quota === undefined ? "" : formatSize(quota),
        id,
      ],
      none: "There is no workspace that you may see.",
    }),
  );
  return EXIT.ok;
}

export function workspacesCreate(values: Values<"workspaces create">): Promise<number> {
  const { NAME } = values.positionals;
  return atGateway({ env: values.env }, ["createWorkspace"], async (gateway) => {
    const made = await gateway.workspaces.create(NAME);
    return print(values.json, made, `Workspace ${made.name} is made (${made.id}).\n`);
  });
}

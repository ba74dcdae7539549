/** A client without a mount that changes the workspace at the gateway, without conditions. */
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { split } from "./calls.ts";
import { bytesOf, sourceOf } from "./programs.ts";
import type { Step } from "./steps.ts";
import type { World } from "./world.ts";

const SIZE = 40;

export async function edit(world: World, step: Extract<Step, { do: "outside" }>, label: string): Promise<void> {
  try {
    await world.run(carryOut(world, step, label));
  } catch (error) {
    // As a name that is taken, a folder that is not empty, a place that is not there.
    if (!(error instanceof RemoteError)) throw error;
    world.note(`  ${error.message}`);
  }
}

async function carryOut(world: World, { edit: what, path, to }: Extract<Step, { do: "outside" }>, label: string) {
  const { outside } = world;
  const source = sourceOf(bytesOf(`outside${label}`, SIZE));
  const { node, parent, name } = await find(world, path);
  switch (what) {
    case "write":
      if (node?.kind === "file" && node.attributes.type === undefined) await outside.writeContent(node.id, source);
      else if (node === undefined && parent !== undefined) await outside.upload(parent, name, source);
      return;
    case "mkdir":
      if (parent !== undefined) await outside.createFolder(parent, name);
      return;
    case "delete":
      if (node !== undefined) await outside.deleteNode(node.id);
      return;
    case "replace":
      if (node === undefined || parent === undefined) return;
      await outside.deleteNode(node.id);
      await outside.upload(parent, name, source);
      return;
    case "retype":
      if (node === undefined || parent === undefined) return;
      await outside.deleteNode(node.id);
      if (node.kind === "folder") await outside.upload(parent, name, source);
      else await outside.createFolder(parent, name);
      return;
    case "chmod":
      if (node !== undefined) await outside.patchNode(node.id, { attributes: { mode: 0o640 } });
      return;
    case "move": {
      const target = await find(world, to);
      if (node === undefined || target.parent === undefined) return;
      await outside.patchNode(node.id, { parentId: target.parent, name: target.name });
    }
  }
}

/** From the store itself, for paths are late. */
async function find(
  world: World,
  path: string,
): Promise<{ node: Node | undefined; parent: string | undefined; name: string }> {
  const names = split(path);
  const name = names.pop() ?? "";
  const child = world.store.prepare("SELECT id FROM node WHERE parent = ? AND name = ? AND deleted = 0").pluck();
  let parent: string | undefined = world.workspace.root;
  for (const step of names) parent = parent === undefined ? undefined : (child.get(parent, step) as string | undefined);
  const id = parent === undefined ? undefined : (child.get(parent, name) as string | undefined);
  return { node: id === undefined ? undefined : await world.outside.getNode(id), parent, name };
}

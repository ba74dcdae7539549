/** A file moved from a to b: refused, for somebody has taken the name, and carried out late when it is free again. */
import type { HttpRequest } from "../../../src/contract/http.ts";
import { ALL_ARRIVED_MS, begin } from "./one-world.ts";

export const isMove = ({ method, body }: HttpRequest) =>
  method === "PATCH" && body?.kind === "json" && Object.hasOwn(body.value as object, "name");

/** Meanwhile a program moved it on to c, of which nothing gets through until the rules are others. */
export async function movedLate() {
  const it = await begin();
  await it.save("a");
  await it.drain();
  const { outside, workspace } = it.world;
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  const move = it.once("late", isMove);
  await it.rename("a", "b");
  await it.until(move.isSent);
  const taken = await it.world.run(outside.createFolder(workspace.root, "b"));
  await it.until(() => it.asked.includes("PATCH /v1/nodes/ID 409"));
  it.rules.choose = (request) => (isMove(request) ? "silent-before" : undefined);
  // Set aside for the folder.
  const [name = ""] = (await it.names()).filter((one) => one !== "b");
  await it.rename(name, "c");
  await it.world.run(outside.deleteNode(taken.id));
  await it.until(() => it.world.lines.some((line) => line.includes("late: PATCH")), ALL_ARRIVED_MS);
  if (it.asked.at(-1) !== "PATCH /v1/nodes/ID 200") throw new Error(`not carried out: ${it.asked.at(-1)}`);
  return { it, node };
}

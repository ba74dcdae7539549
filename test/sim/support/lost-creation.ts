/** A file or folder whose creation the gateway carried out, and whose answer is lost. */
import type { HttpRequest } from "../../../src/contract/http.ts";
import type { begin } from "./one-world.ts";

export const isCreation = ({ method, path }: HttpRequest) =>
  method === "POST" && (path === "/v1/nodes" || path.startsWith("/v1/files/"));

/** A request without an answer is repeated after ten seconds; the journal tells of its effect sooner. */
export const HEARD_MS = 3_000;

/** Saves `a`, whose creation is not answered, and has somebody call it `e`. Returns the id of its node. */
export async function savedAndRenamed(it: Awaited<ReturnType<typeof begin>>): Promise<string> {
  const { outside, workspace } = it.world;
  await it.drain();
  const birth = it.once("silent-after", isCreation);
  await it.save("a");
  await it.until(birth.isSent);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  if (node === undefined) throw new Error("nothing was born");
  await it.world.run(outside.patchNode(node.id, { name: "e" }));
  return node.id;
}

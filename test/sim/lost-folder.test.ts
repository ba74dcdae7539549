/** A folder whose making was not answered: it is found at the gateway, and known without being listed while nobody answers. */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { begin } from "./one-world.ts";

const isMaking = ({ method, path }: HttpRequest) => method === "POST" && path === "/v1/nodes";
const LACKS: readonly { what: string; lacks: readonly Feature[] }[] = [
  { what: "conditions", lacks: ["conditions"] },
  { what: "keys", lacks: ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] },
];

async function lost(lacks: readonly Feature[]) {
  const it = await begin(true, {}, { lacks });
  const making = it.once("lost-after", isMaking);
  await it.world.run(it.calls().mkdir("d"));
  await it.until(making.isSent);
  return it;
}

test.each(LACKS)("without $what: what is in it is told while nobody answers", async ({ lacks }) => {
  const it = await lost(lacks);
  await it.until(() => it.mount.process?.engine.status().dirty === 0);
  it.mount.weather.isOffline = true;
  await it.world.clock.advance(60_000);
  expect(await it.world.run(it.calls().list("d"))).toEqual([]);
  await it.save("d/a");
  expect(await it.world.run(it.calls().list("d"))).toEqual(["a"]);
  it.mount.weather.isOffline = false;
  await it.ends(["d", "d/a"]);
});

test.each(LACKS)("without $what: what somebody has put into it by then is there", async ({ lacks }) => {
  const it = await lost(lacks);
  const { outside, workspace } = it.world;
  const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.createFolder(folder?.id ?? "", "theirs"));
  await it.ends(["d", "d/theirs"]);
});

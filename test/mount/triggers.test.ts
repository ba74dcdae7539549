/** A trigger on a file that programs save through a mount: each version starts one execution, and the last save is in one. */
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { type Execution, executionPage, logPage } from "../../src/contract/engines.ts";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway } from "../support/wsfs.ts";

const SAVES = 60;
/** After so many all is uploaded: these are a version, or a few. */
const BURST = 20;
/** Prints the content of the version that it was started for. */
const PRINT = `
version=$(grep -o '"head":"[^"]*"' execution.json | head -1 | cut -d '"' -f 4)
node=$(grep -o '"nodeId":"[^"]*"' execution.json | head -1 | cut -d '"' -f 4)
curl -sSf -H "Authorization: Bearer $WSFS_TOKEN" "$WSFS_BASE_URL/v1/nodes/$node/content?version=$version"`;

let place: Place;
afterEach(() => place.cleanUp());

const created = z.looseObject({ id: z.string() });
const versionPage = z.looseObject({ items: z.array(z.looseObject({ id: z.string() })) });

test("each version starts one execution, and the last of saves in quick succession is always in one", async () => {
  place = createPlace();
  const gateway = await place.gateway();
  const engine = ["gateway", "engine", "add", "print", "--data", gateway.data, "--scope", "node.file.read"];
  check(await place.wsfs([...engine, "--", "bash", "-c", PRINT]));
  await post(gateway, "/v1/installations", { engine: "print" });
  await post(gateway, "/v1/triggers", { name: "saves", engine: "print", on: { journal: { path: "/notes.txt" } } });
  const mount = await place.mount(gateway);
  for (let saved = 0; saved < SAVES; saved += BURST) {
    const numbers = `$(seq ${saved + 1} ${saved + BURST})`;
    check(await mount.sh(`for n in ${numbers}; do echo "save $n" > notes.txt; sleep 0.05; done`));
    check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
  }

  const node = created.parse(await get(gateway, "/v1/files/notes.txt"));
  const versions = versionPage.parse(await get(gateway, `/v1/nodes/${node.id}/versions?pageSize=1000`)).items;
  expect(versions.length).toBeGreaterThanOrEqual(SAVES / BURST);
  // Else this shows nothing.
  expect(versions.length).toBeLessThan(SAVES);
  const executions = async () =>
    executionPage.parse(await get(gateway, "/v1/executions?pageSize=1000&orderBy=createdAt")).items;
  await until("all have ended", async () => {
    const all = await executions();
    return all.length >= versions.length && all.every(({ endedAt }) => endedAt !== null);
  });
  const all = await executions();
  expect(all.map(({ state }) => state)).toEqual(versions.map(() => "succeeded"));
  expect(all.map(({ cause }) => cause?.entry?.head).toSorted()).toEqual(versions.map(({ id }) => id).toSorted());
  const said = async ({ id }: Execution) =>
    logPage.parse(await get(gateway, `/v1/executions/${id}/logs`)).items.map(({ text }) => text);
  const seen = (await Promise.all(all.map(said))).flat();
  expect(seen).toEqual(expect.arrayContaining([BURST, 2 * BURST, SAVES].map((n) => `save ${n}`)));
  expect(seen.at(-1)).toBe(`save ${SAVES}`);
}, 180_000);

async function get(gateway: TestGateway, path: string): Promise<unknown> {
  return answer(await fetch(gateway.baseUrl + path, { headers: { authorization: `Bearer ${gateway.token}` } }));
}

async function post(gateway: TestGateway, path: string, json: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${gateway.token}`, "content-type": "application/json" };
  return answer(await fetch(gateway.baseUrl + path, { method: "POST", headers, body: JSON.stringify(json) }));
}

async function answer(given: Response): Promise<unknown> {
  if (!given.ok) throw new Error(`${given.status} ${await given.text()}`);
  return given.json();
}

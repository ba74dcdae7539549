/** Triggers of a gateway as it is served, its programs real processes: many saves at once, and a gateway that ends meanwhile. */
import { expect, onTestFinished, test, vi } from "vitest";
import { executionPage } from "../../../src/contract/engines.ts";
import { openAccounts } from "../../../src/gateway/accounts/index.ts";
import { type RunningGateway, startGateway } from "../../../src/gateway/start.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { ENGINE } from "./support.ts";

const SAVES = 60;

test(`${SAVES} saves at once are ${SAVES} executions, also of a gateway that ends meanwhile`, {
  timeout: 240_000,
}, async () => {
  const dataDir = await temporaryFolder();
  let gateway: RunningGateway = await startGateway({ dataDir, workspaces: ["main"] });
  onTestFinished(() => gateway.close());
  const accounts = openAccounts(dataDir, systemClock);
  accounts.engines.add({ ...ENGINE, name: "nothing" });
  accounts.close();
  const token = await gateway.issueToken({ workspace: "main" });
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${gateway.baseUrl}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
  const post = (path: string, json: object) =>
    call(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(json) });
  const save = async (name: string) => {
    const body = new FormData();
    body.set("file", new Blob([name]), name);
    const answer = await call(`/v1/files/in/${name}`, { method: "POST", body });
    return [name, answer.status];
  };
  await save("first");
  expect((await post("/v1/installations", { engine: "nothing" })).status).toBe(201);
  const on = { journal: { kinds: ["created"], path: "/in/*" } };
  expect((await post("/v1/triggers", { name: "t", engine: "nothing", on })).status).toBe(201);
  const names = Array.from({ length: SAVES }, (_, n) => `${n}`.padStart(3, "0"));
  expect(await Promise.all(names.map(save))).toEqual(names.map((name) => [name, 201]));
  const all = async (query = "") =>
    executionPage.parse(await (await call(`/v1/executions?pageSize=1000&orderBy=createdAt${query}`)).json());
  await vi.waitFor(async () => expect((await all("&state=succeeded")).totalCount).toBeGreaterThan(0), 60_000);
  await gateway.close();
  gateway = await startGateway({ dataDir });
  await vi.waitFor(
    async () => {
      const [queued, running] = await Promise.all([all("&state=queued"), all("&state=running")]);
      expect([queued.totalCount, running.totalCount, (await all()).totalCount]).toEqual([0, 0, SAVES]);
    },
    { timeout: 120_000, interval: 200 },
  );
  expect((await all()).items.map(({ cause }) => cause?.entry?.name).toSorted()).toEqual(names);
});

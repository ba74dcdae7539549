/** `connect` with a profile: a gateway that can do less is used as far as it goes, and nothing is done twice there. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Gateway } from "../../../src/client/connect.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { ProfileFile } from "../../../src/client/profile.ts";
import { BARE_PROFILE } from "../../../src/gateway/start.ts";
import { exampleWritten } from "../support/examples.ts";
import { realGateway } from "../support/real-gateway.ts";
import { json, scripted } from "../support/scripted-transport.ts";
import { failureOf } from "../support/server.ts";

const bare = JSON.parse(readFileSync(BARE_PROFILE, "utf8")) as ProfileFile;

test("files and folders at a bare gateway", async () => {
  const { gateway } = await realGateway({ profile: bare }, { bare: true });
  const made = await gateway.files.upload("/a/b", "content");
  expect(made).toMatchObject({ name: "b", kind: "file" });
  const namesIn = async (parentId: string | null) =>
    (await gateway.nodes.list({ parentId: String(parentId) }).all()).map(({ name }) => name);
  expect(await namesIn(made.parentId)).toEqual(["b"]);
  expect(await (await gateway.files.read(made.id)).text()).toBe("content");
  await gateway.nodes.update(made.id, { parentId: String(made.parentId), name: "c" });
  expect(await namesIn(made.parentId)).toEqual(["c"]);
  expect(await failureOf(gateway.journal.list().all())).toMatchObject({ code: "invalid" });
  await gateway.nodes.delete(made.id);
  expect(await namesIn(made.parentId)).toEqual([]);
});

const lost = () => {
  throw new RemoteError("offline", "the connection broke");
};
const written = json(201, exampleWritten());

test.each([
  ["a folder", (gateway: Gateway) => gateway.nodes.createFolder("root", "d")],
  ["a change", (gateway: Gateway) => gateway.nodes.update("n1", { name: "n" })],
] as const)("at a plain gateway %s whose answer was lost is not sent again", async (_, call) => {
  const keyed = scripted([lost, written]);
  await keyed.run(call(keyed.gateway));
  expect(keyed.requests).toHaveLength(2);
  const unkeyed = scripted([lost, written], { profile: { name: "lesser", tier: "plain" } });
  expect(await failureOf(unkeyed.run(call(unkeyed.gateway)))).toMatchObject({ code: "offline", isAmbiguous: true });
  expect(unkeyed.requests).toHaveLength(1);
});

test("at a plain gateway an upload whose answer was lost is sent again, with its key", async () => {
  const { gateway, run, requests } = scripted([lost, written], { profile: { name: "lesser", tier: "plain" } });
  await run(gateway.files.upload("/f", "x"));
  const keys = requests.map(({ body }) => /"idempotencyKey":"([^"]+)"/.exec(JSON.stringify(body))?.[1]);
  expect(keys).toEqual([expect.any(String), keys[0]]);
});

test("a profile with faults is told by the first call", async () => {
  const profile = { name: "x", features: { nonsense: true } } as unknown as ProfileFile;
  const { gateway, run, requests } = scripted([written], { profile });
  expect(await failureOf(run(gateway.nodes.get("id")))).toMatchObject({ code: "invalid", field: "profile" });
  expect(requests).toEqual([]);
});
